// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <new>
#include <random>
#include <utility>
#include <vector>

#include "ops/op_case.hpp"

namespace consonant {

// Aligned memory, with a guard behind what a kernel writes; inputs have none, so that a sanitizer sees reads past them.
class Block {
 public:
  static constexpr std::byte mark{0x5A};

  Block(int64_t bytes, std::byte fill, size_t guard = 64);
  std::byte* data() const { return data_.get(); }
  int64_t size() const { return static_cast<int64_t>(bytes_); }
  std::vector<std::byte> content() const { return {data(), data() + bytes_}; }
  bool intact() const { return is_mark(data() + bytes_, guard_); }

  static bool is_mark(const std::byte* data, size_t bytes) {
    return std::all_of(data, data + bytes, [](std::byte b) { return b == mark; });
  }

 private:
  struct Free {
    void operator()(std::byte* p) const { ::operator delete[](p, std::align_val_t{64}); }
  };

  size_t bytes_, guard_;
  std::unique_ptr<std::byte[], Free> data_;
};

// The bytes of each output of a node, or of the state that it replaces.
using Results = std::vector<std::vector<std::byte>>;

// Bytes of a dense value.
int64_t bytes_of(const View& view);

// The same values for tokens first ... last - 1 alone.
std::vector<View> tokens_of(std::vector<View> views, int64_t first, int64_t last);

// A case with its data: what lies before the node is computed once, by the reference.
class Trial {
 public:
  Trial(const OpCase& c, const CaseBuilder::Options& options);

  const Node& node() const { return *result_.node; }
  bool has_slices() const { return builder_.has_slices(); }
  size_t inputs() const { return node().inputs.size(); }
  View input(size_t i) const { return value(i).view; }
  // The memory that an input lies in, which others may share.
  const Block& storage(size_t i) const { return blocks_[value(i).block]; }
  // Whether an input is what a device may pack.
  bool is_matrix(size_t i) const;

  // Memory for the node's outputs. A state, which is replaced in place, is a copy, and `in` is made to show it.
  struct Outputs {
    std::vector<Block> blocks;
    std::vector<View> views;
  };
  Outputs make_outputs(std::vector<View>& in, std::byte poison) const;

  // By the reference.
  Results expected() const;

  // Calls fn(first, last) for the tokens one at a time; for many tokens in pieces that grow. Calls nothing if no input
  // is of tokens.
  template <class F>
  void for_pieces(const F& fn) const {
    const int64_t all = tokens();
    for (int64_t first = 0, n = 1; first < all;) {
      const int64_t last = std::min(all, first + n);
      fn(first, last);
      first = last;
      if (all > 128) ++n;
    }
  }
  bool has_tokens() const { return tokens() >= 0; }
  int64_t tokens() const;  // -1: no input is of tokens

  // The worst difference of two results as a share; infinite where only one of them is a number.
  double distance(const Results& got, const Results& want) const;

 private:
  struct Value {
    View view;
    size_t block;
  };
  const Value& value(const Tensor& x) const { return values_.at({x.node.get(), x.output}); }
  const Value& value(size_t i) const { return value(node().inputs[i]); }
  void compute(const Node& node);
  void run_reference(const Args& args) const;

  const OpCase& case_;
  CaseBuilder builder_;
  Tensor result_;
  std::map<std::pair<const Node*, int>, Value> values_;
  std::vector<Block> blocks_;
  std::mt19937 random_{20};
};

}  // namespace consonant
