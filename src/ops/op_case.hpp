// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "graph/inputs.hpp"
#include "ops/kernel.hpp"

namespace consonant {

// Makes the leaves that a case's node reads, and remembers how each is filled. A role names what a leaf is for the op:
// "x", "weights", "cache".
class CaseBuilder {
 public:
  // Writes a leaf's numbers; called only if the case is run.
  using Fill = std::function<void(const View& leaf, std::mt19937& random)>;
  struct Leaf {
    std::shared_ptr<Node> node;
    Fill fill;
  };
  struct Options {
    bool apart = false;        // values of several tokens are slices of a wider tensor, amid NaNs
    std::string probed;        // leaves of this role
    DType probe = DType::f32;  // have this type instead
  };

  CaseBuilder() = default;
  explicit CaseBuilder(Options options) : options_(std::move(options)) {}

  // Float32 values: normally distributed, or the numbers given, over and over.
  Tensor values(const std::string& role, const Shape& shape, float spread = 1);
  Tensor numbers(const std::string& role, const Shape& shape, std::vector<float> numbers);
  Tensor integers(const std::string& role, const Shape& shape, int32_t least, int32_t greatest);
  Tensor integers(const std::string& role, const Shape& shape, std::vector<int32_t> numbers);
  Tensor matrix(const std::string& role, DType type, int64_t rows, int64_t columns);
  Tensor matrices(const std::string& role, DType type, const Shape& shape);  // [matrix, rows, columns]
  Tensor vector(const std::string& role, int64_t n);

  // Tokens of several sequences and their cache. Each sequence has `before` positions in the cache and `tokens` in the
  // batch; its pages lie scattered. With keys of no numbers there are values only. All that no token may see is NaN:
  // other pages, and positions past the last.
  struct Sequence {
    int64_t before, tokens;
  };
  struct Cache {
    int64_t tokens;
    KvState kv;
    Mask mask;
  };
  Cache cache(DType type, int64_t heads, int64_t key_dim, int64_t value_dim, const std::vector<Sequence>& sequences,
              bool holds_batch);

  // Tokens of several sequences and their slots, which lie scattered among others.
  Slots slots(const std::vector<Sequence>& sequences);
  // A state of those sequences' slots, of the sizes [...] a slot. What no token may see is NaN: slots of others, and of
  // sequences that begin.
  Tensor slot_state(StateKind kind, const std::vector<Sequence>& sequences, std::initializer_list<int64_t> sizes);

  bool has_slices() const { return has_slices_; }
  const std::vector<Leaf>& leaves() const { return leaves_; }
  const std::vector<std::string>& roles() const { return roles_; }

 private:
  DType type_of(const std::string& role, DType usual);
  Tensor keep(Tensor leaf, Fill fill);
  Tensor floats(const std::string& role, const Shape& shape, std::function<float(std::mt19937&)> next);

  Options options_;
  bool has_slices_ = false;
  std::vector<Leaf> leaves_;
  std::vector<std::string> roles_;  // in the order of their first use
};

// A node to run a kernel on. Nodes that lie between it and the leaves are computed by their reference kernels.
struct OpCase {
  std::string name;
  std::function<Tensor(CaseBuilder&)> build;
  int64_t reduction = 1;  // terms of the longest sum behind a number of the output
  double magnitude = 1;   // about the sum of their magnitudes' root mean square: what rounding errors scale with
};

// Sizes with a batch's leading dimension.
inline Shape per_token(int64_t tokens, int64_t n) { return Shape({tokens, n}, Axis::token); }
inline Shape per_token(int64_t tokens, int64_t heads, int64_t dim) { return Shape({tokens, heads, dim}, Axis::token); }

// The cases of each op, which `<op>.cases.cpp` lists.
#define OP(name) std::vector<OpCase> name##_cases();
#include "ops/all.def"
#undef OP
std::vector<OpCase> cases_of(Op op);

}  // namespace consonant
