// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "formats/gguf_writer.hpp"
#include "formats/model_file.hpp"

namespace consonant {

// A copy of a small model's file with a head for further tokens behind its last layer: the tensors of one of its layers
// (for nemotron_h_moe of two: attention and experts), and what brings token and hidden state together, which is random.
class HeadFile {
 public:
  HeadFile(const std::string& from, const std::string& architecture) : model_(open_model(from)) {
    const Meta& meta = *model_.meta;
    blocks_ = meta.integer(architecture + ".block_count");
    for (const StoredTensor& t : model_.tensors) add(t.name, t);
    const int64_t d = meta.integer(architecture + ".embedding_length");
    const std::string head = "blk." + std::to_string(blocks_) + ".";
    random(head + "nextn.eh_proj.weight", {d, 2 * d}, 1 / std::sqrt(static_cast<double>(d)), 0);
    for (const char* norm : {"nextn.enorm", "nextn.hnorm", "nextn.shared_head_norm"})
      random(head + norm + ".weight", {d}, 0.1, 1);
    for (const auto& [key, value] : meta.entries()) meta_.add(key, value);
    set(architecture + ".block_count", blocks_ + 1);
    set(architecture + ".nextn_predict_layers", 1);
  }
  ~HeadFile() { std::filesystem::remove(path_); }

  // The tensors of layer `i` again, as those of the head; those that begin with `from` begin with `to`.
  void copy_layer(int64_t i, const std::string& from = "", const std::string& to = "") {
    const std::string old = "blk." + std::to_string(i) + "." + from;
    for (const StoredTensor& t : model_.tensors)
      if (t.name.starts_with(old)) add("blk." + std::to_string(blocks_) + "." + to + t.name.substr(old.size()), t);
  }
  // A number of the head's block behind those of a list of one a layer.
  void extend(const std::string& key, int64_t number) {
    MetaValue value = *meta_.find(key);
    std::get<MetaInts>(value.value).push_back(number);
    meta_.replace(key, value);
  }
  void set(const std::string& key, int64_t number) { meta_.replace(key, {MetaType::u32, false, number}); }

  std::string write() {
    std::vector<GgufTensorPlan> plan;
    for (const Made& t : tensors_) plan.push_back(t.plan);
    write_gguf(path_, meta_, plan, [&](size_t i, const ByteSink& sink) { sink(tensors_[i].load().bytes); });
    return path_.string();
  }

 private:
  struct Made {
    GgufTensorPlan plan;
    std::function<HostTensor()> load;
  };
  void add(const std::string& name, const StoredTensor& t) { tensors_.push_back({{name, t.type, t.sizes}, t.load}); }
  void random(const std::string& name, const Sizes& sizes, double deviation, double mean) {
    HostTensor tensor = HostTensor::allocate(DType::f32, sizes);
    std::normal_distribution<float> normal(static_cast<float>(mean), static_cast<float>(deviation));
    for (size_t i = 0; i < tensor.mutable_bytes().size(); i += sizeof(float)) {
      const float number = normal(generator_);
      std::memcpy(tensor.mutable_bytes().data() + i, &number, sizeof number);
    }
    tensors_.push_back({{name, DType::f32, sizes}, [tensor] { return tensor; }});
  }
  ModelFile model_;
  int64_t blocks_ = 0;
  Meta meta_;
  std::vector<Made> tensors_;
  std::mt19937 generator_{7};
  std::filesystem::path path_ =
      std::filesystem::temp_directory_path() / ("head-" + std::to_string(::getpid()) + ".gguf");
};

}  // namespace consonant
