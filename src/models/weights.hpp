// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/model_file.hpp"
#include "graph/node.hpp"

namespace consonant {

// The tensors of a model file as leaves of its graphs. Asking for one states its name and its shape, once, here: a
// tensor that is missing or has another shape is bad input that names both.
class Weights {
 public:
  explicit Weights(const ModelFile& file);

  // The tensors of layer `i`: names gain the prefix "blk.<i>.".
  Weights layer(int64_t i) const;
  // Names gain `prefix`, after that of this object: under("enc.").layer(3) finds "enc.blk.3.*".
  Weights under(std::string_view prefix) const;

  Tensor operator()(std::string_view name, const Sizes& sizes) const;  // "<prefix><name>.weight"
  Tensor bias(std::string_view name, const Sizes& sizes) const;        // "<prefix><name>.bias"
  // All numbers of the tensor "<prefix><name>", which is of these sizes, one row after another: as a vector, float32.
  Tensor flat(std::string_view name, const Sizes& sizes) const;
  // Of the matrix "<prefix><name>.weight", which is of these sizes, `count` columns from `first` on: whole blocks.
  Tensor columns(std::string_view name, const Sizes& sizes, int64_t first, int64_t count) const;
  // The tensor "<prefix><name>" as the file has it.
  Tensor named(std::string_view name, const Sizes& sizes) const;
  // The same of plain numbers, which `change` puts into other sizes when they are loaded.
  using Change = std::function<HostTensor(const HostTensor&)>;
  Tensor changed(std::string_view name, const Sizes& sizes, const Sizes& to, Change change) const;
  // Float32 numbers of sizes `to` that are computed from those of "<prefix><name>"; `as` names them, after the prefix.
  using Derive = std::function<std::vector<float>(std::vector<float>)>;
  Tensor derived(std::string_view name, const Sizes& sizes, std::string_view as, const Sizes& to, Derive derive) const;
  // A table that the architecture defines and no file holds; `name` is for reports.
  Tensor constant(const std::string& name, const Sizes& sizes, std::vector<float> numbers) const;

  bool has(std::string_view name) const;  // whether "<prefix><name>.weight" is there
  bool has_bias(std::string_view name) const;

  // Those asked for so far; a leaf's WeightAttr::index counts them.
  const std::vector<const StoredTensor*>& used() const { return shared_->used; }
  // Names of the file's tensors that nobody asked for, in the file's order.
  std::vector<std::string> unused() const;

 private:
  struct Shared {
    const ModelFile* file;
    std::unordered_map<std::string_view, const StoredTensor*> stored;  // by name
    std::vector<const StoredTensor*> used;
    std::unordered_map<std::string, Tensor> leaves;
    std::deque<StoredTensor> made;  // constants, and what the file has in another shape
  };

  const StoredTensor* find(const std::string& name) const;
  const StoredTensor& need(const std::string& name, const Sizes& sizes) const;
  Tensor get(const std::string& name, const Sizes& sizes) const;
  Tensor keep(const StoredTensor& stored) const;

  std::shared_ptr<Shared> shared_;
  std::string prefix_;
};

}  // namespace consonant
