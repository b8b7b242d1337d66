// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <any>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/location.hpp"
#include "graph/shape.hpp"
#include "tensor/dtype.hpp"

namespace consonant {

struct Node;

// The kind of a node. Kinds of the graph itself are here; `ops/op.hpp` numbers the ops of all.def from `first_op` on.
using OpId = uint16_t;
enum : OpId { op_input, op_weight, op_state, op_view, first_op };

// A value in a graph: one output of a node. Cheap to copy; a graph lives as long as somebody holds its outputs.
struct Tensor {
  std::shared_ptr<Node> node;
  int output = 0;

  explicit operator bool() const { return node != nullptr; }
  const Shape& shape() const;
  DType type() const;
  const std::string& name() const;
  bool operator==(const Tensor&) const = default;
};

// A value and the place that used it: what an operator takes as its left operand, since operators have no defaults.
struct Located {
  Tensor value;
  Location at;
  Located(Tensor value, Location at = Location::current()) : value(std::move(value)), at(at) {}
};

// What a node makes. `strides` are in elements and say where the value lies in the storage of the node that made it.
struct Output {
  DType type = DType::f32;
  Shape shape;
  std::array<int64_t, Shape::max_rank> strides{};
  int alias = -1;      // input whose storage this output is (views, state appends), or -1: storage of its own
  int64_t offset = 0;  // elements from the start of that storage
};

Output dense(DType type, const Shape& shape);

struct Node {
  OpId op;
  std::string name;  // scope + op + weight: "blk.3/linear(attn_q)"
  Location location;
  std::vector<Tensor> inputs;
  std::vector<Output> outputs;
  std::any attributes;              // of the op's own type
  std::string key;                  // nodes with equal op, inputs and key (not empty) make equal values: kept once
  std::vector<std::string> covers;  // names of the nodes a fused node stands for, in order; empty if none

  Node() = default;
  Node(const Node&) = default;
  Node& operator=(const Node&) = default;
  ~Node();  // frees what only this node holds without recursion: a graph is as deep as its model

  template <class T>
  const T& attr() const {
    return *std::any_cast<T>(&attributes);
  }
};

// A leaf filled anew each step with a few integers: "tokens", "positions", ...
struct InputAttr {
  std::string name;
};

// A leaf that holds a weight: [rows, columns] for matrices, [n] for vectors. `index` is the owner's number for it.
struct WeightAttr {
  std::string name;  // GGUF's
  int index = -1;
};

// A leaf that holds state which outlives the step. A model may have several caches: of its own positions, and of those
// of another sequence that it looks at.
enum class StateKind : uint8_t { keys, values, conv, ssm };
enum class CacheRole : uint8_t { self, cross };
struct StateAttr {
  StateKind kind;
  int layer;
  CacheRole cache = CacheRole::self;
};

// Makes a node; its name is the present scope, `label` and the name of its weight input, if any.
std::shared_ptr<Node> make_node(OpId op, std::string_view label, std::vector<Tensor> inputs,
                                std::vector<Output> outputs, std::any attributes, Location location);
Tensor input(std::string name, DType type, const Shape& shape);
Tensor weight(std::string name, DType type, const Shape& shape, int index);
Tensor state(const StateAttr& state, DType type, const Shape& shape);

// Names the nodes made while it lives: Scope blk("blk", 3) prefixes "blk.3/".
class Scope {
 public:
  explicit Scope(std::string_view name);
  Scope(std::string_view name, int index);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  size_t length_;
};

// Views: no work, the same storage seen otherwise. Splitting heads: [token, head * dim] -> [token, head, dim].
Tensor split_heads(Tensor x, int64_t heads, Location at = Location::current());
Tensor merge_heads(Tensor x, Location at = Location::current());
// Rows in groups: [group * time, n] -> [group, time, n]. x must be of a fixed size.
Tensor split_rows(Tensor x, int64_t groups, Location at = Location::current());
// Overlapping windows over rows: [time, n] -> [(time - kernel) / stride + 1, kernel * n], whose row t is rows t *
// stride to t * stride + kernel - 1 one after another. x must be dense and of a fixed size.
Tensor unfold(Tensor x, int64_t kernel, int64_t stride, Location at = Location::current());
// Parts of the last dimension: [..., a + b] -> [..., a] and [..., b].
std::vector<Tensor> split(Tensor x, const std::vector<int64_t>& sizes, Location at = Location::current());

// Nodes that `outputs` need, in the order they run: a walk from the outputs, operands left to right, each node once.
// Independent of the order in which the nodes were made.
std::vector<Node*> walk(const std::vector<Tensor>& outputs);

// For shape rules: an error (Exit::failed) that starts with the op's name and quotes the shapes.
[[noreturn]] void shape_error(std::string_view op, std::string_view what, const std::vector<Tensor>& inputs,
                              Location location);

}  // namespace consonant
