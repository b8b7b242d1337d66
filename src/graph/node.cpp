// SPDX-License-Identifier: Apache-2.0
#include "graph/node.hpp"

#include <new>
#include <unordered_set>
#include <utility>

#include "base/error.hpp"

namespace consonant {

const Shape& Tensor::shape() const { return node->outputs[static_cast<size_t>(output)].shape; }
DType Tensor::type() const { return node->outputs[static_cast<size_t>(output)].type; }
const std::string& Tensor::name() const { return node->name; }

Node::~Node() {
  std::vector<Tensor> left = std::move(inputs);
  while (!left.empty()) {
    const std::shared_ptr<Node> node = std::move(left.back().node);
    left.pop_back();
    if (!node || node.use_count() > 1) continue;
    try {
      left.insert(left.end(), node->inputs.begin(), node->inputs.end());
      node->inputs.clear();
    } catch (const std::bad_alloc&) {
      // Without memory for the list, the node's own destructor goes on from here.
    }
  }
}

Output dense(DType type, const Shape& shape) {
  Output out{type, shape, {}, -1, 0};
  int64_t stride = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    out.strides[static_cast<size_t>(i)] = stride;
    stride *= shape[i];
  }
  return out;
}

namespace {

thread_local std::string scope;

// "blk.3.attn_q.weight", "enc.blk.3.attn_q.weight" -> "attn_q": what a report needs beside the scope.
std::string short_weight_name(std::string_view name) {
  if (name.ends_with(".weight")) name.remove_suffix(7);
  if (const size_t block = name.find("blk."); block != std::string_view::npos) {
    const size_t dot = name.find('.', block + 4);
    if (dot != std::string_view::npos) name.remove_prefix(dot + 1);
  }
  return std::string(name);
}

}  // namespace

std::shared_ptr<Node> make_node(OpId op, std::string_view label, std::vector<Tensor> inputs,
                                std::vector<Output> outputs, std::any attributes, Location location) {
  auto node = std::make_shared<Node>();
  node->op = op;
  node->name = scope + std::string(label);
  for (const Tensor& in : inputs)
    if (in.node && in.node->op == op_weight) {
      node->name += "(" + short_weight_name(in.node->name) + ")";
      break;
    }
  node->location = location;
  node->inputs = std::move(inputs);
  node->outputs = std::move(outputs);
  node->attributes = std::move(attributes);
  return node;
}

namespace {

Tensor leaf(OpId op, std::string name, DType type, const Shape& shape, std::any attributes) {
  auto node = std::make_shared<Node>();
  node->op = op;
  node->name = std::move(name);
  node->outputs = {dense(type, shape)};
  node->attributes = std::move(attributes);
  return {node, 0};
}

}  // namespace

Tensor input(std::string name, DType type, const Shape& shape) {
  return leaf(op_input, name, type, shape, InputAttr{name});
}

Tensor weight(std::string name, DType type, const Shape& shape, int index) {
  return leaf(op_weight, name, type, shape, WeightAttr{name, index});
}

Tensor state(const StateAttr& state, DType type, const Shape& shape) {
  std::string name = fmt::format("{}.{}/{}", state.cache == CacheRole::self ? "state" : "cross", state.layer,
                                 state.kind == StateKind::keys ? "keys" : "values");
  return leaf(op_state, std::move(name), type, shape, state);
}

Scope::Scope(std::string_view name) : length_(scope.size()) {
  scope += name;
  scope += '/';
}

Scope::Scope(std::string_view name, int index) : Scope(fmt::format("{}.{}", name, index)) {}

Scope::~Scope() { scope.resize(length_); }

namespace {

Tensor view(std::string_view label, const Tensor& x, const int64_t* sizes, const int64_t* strides, int rank,
            int64_t offset, Location at) {
  Output out;
  out.type = x.type();
  out.shape = make_shape(sizes, rank, x.shape().axis());
  for (int i = 0; i < rank; ++i) out.strides[static_cast<size_t>(i)] = strides[i];
  out.alias = 0;
  out.offset = offset;
  return {make_node(op_view, label, {x}, {out}, {}, at), 0};
}

const Output& output_of(const Tensor& x) { return x.node->outputs[static_cast<size_t>(x.output)]; }

}  // namespace

Tensor split_heads(Tensor x, int64_t heads, Location at) {
  const Shape& s = x.shape();
  if (s.rank() != 2 || heads < 1 || s[1] % heads != 0)
    shape_error("split_heads", fmt::format("{} heads", heads), {x}, at);
  const Output& o = output_of(x);
  const int64_t dim = s[1] / heads;
  const int64_t sizes[] = {s[0], heads, dim}, strides[] = {o.strides[0], dim * o.strides[1], o.strides[1]};
  return view("split_heads", x, sizes, strides, 3, 0, at);
}

Tensor merge_heads(Tensor x, Location at) {
  const Shape& s = x.shape();
  const Output& o = output_of(x);
  if (s.rank() != 3 || o.strides[1] != s[2] * o.strides[2])
    shape_error("merge_heads", "heads that lie side by side", {x}, at);
  const int64_t sizes[] = {s[0], s[1] * s[2]}, strides[] = {o.strides[0], o.strides[2]};
  return view("merge_heads", x, sizes, strides, 2, 0, at);
}

Tensor split_rows(Tensor x, int64_t groups, Location at) {
  const Shape& s = x.shape();
  if (s.rank() != 2 || s.axis() != Axis::fixed || groups < 1 || s[0] % groups != 0)
    shape_error("split_rows", fmt::format("x [time, n] of a fixed size in {} groups", groups), {x}, at);
  const Output& o = output_of(x);
  const int64_t time = s[0] / groups;
  const int64_t sizes[] = {groups, time, s[1]}, strides[] = {time * o.strides[0], o.strides[0], o.strides[1]};
  return view("split_rows", x, sizes, strides, 3, 0, at);
}

Tensor unfold(Tensor x, int64_t kernel, int64_t stride, Location at) {
  const Shape& s = x.shape();
  const Output& o = output_of(x);
  if (s.rank() != 2 || s.axis() != Axis::fixed || kernel < 1 || stride < 1 || s[0] < kernel || o.strides[1] != 1 ||
      o.strides[0] != s[1])
    shape_error("unfold", fmt::format("dense x [time, n] of a fixed size, {} rows at least", kernel), {x}, at);
  const int64_t sizes[] = {(s[0] - kernel) / stride + 1, kernel * s[1]}, strides[] = {stride * s[1], 1};
  return view("unfold", x, sizes, strides, 2, 0, at);
}

std::vector<Tensor> split(Tensor x, const std::vector<int64_t>& sizes, Location at) {
  const Shape& s = x.shape();
  const Output& o = output_of(x);
  std::vector<Tensor> parts;
  int64_t begin = 0;
  for (int64_t size : sizes) {
    if (s.rank() < 2 || size < 0 || begin + size > s.last()) break;
    const Shape part = s.with_last(size);
    int64_t dims[Shape::max_rank];
    for (int i = 0; i < s.rank(); ++i) dims[i] = part[i];
    const int64_t step = o.strides[static_cast<size_t>(s.rank() - 1)];
    parts.push_back(view("split", x, dims, o.strides.data(), s.rank(), begin * step, at));
    begin += size;
  }
  if (s.rank() < 2 || parts.size() != sizes.size() || begin != s.last())
    shape_error("split", "parts that add up to the last size", {x}, at);
  return parts;
}

std::vector<Node*> walk(const std::vector<Tensor>& outputs) {
  std::vector<Node*> order;
  std::unordered_set<Node*> seen;
  struct Frame {
    Node* node;
    size_t next;
  };
  std::vector<Frame> stack;
  const auto enter = [&](Node* node) {
    if (node && seen.insert(node).second) stack.push_back({node, 0});
  };
  for (const Tensor& out : outputs) {
    enter(out.node.get());
    while (!stack.empty()) {
      Frame& top = stack.back();
      if (top.next < top.node->inputs.size()) {
        Node* next = top.node->inputs[top.next++].node.get();
        enter(next);
      } else {
        order.push_back(top.node);
        stack.pop_back();
      }
    }
  }
  return order;
}

void shape_error(std::string_view op, std::string_view what, const std::vector<Tensor>& inputs, Location location) {
  std::string text = fmt::format("{}: wants {}; got", op, what);
  for (const Tensor& x : inputs)
    text += x ? fmt::format(" {} {}{}", x.name(), name(x.type()), to_string(x.shape())) : " nothing";
  throw_error(Exit::failed, "{} ({}:{})", text, location.file_name(), location.line);
}

}  // namespace consonant
