// SPDX-License-Identifier: Apache-2.0
#include "ops/linear_set/linear_set.hpp"

#include "ops/op.hpp"

namespace consonant {

namespace {

std::shared_ptr<Node> make(const LinearSet& set, LinearSetAttr attr, Location at) {
  const Shape& s = set.x.shape();
  if (s.rank() != 2 || set.weights.empty() || set.weights.size() > LinearSetAttr::most)
    shape_error("linear_set", "x [token, inputs] and one to three w", {set.x}, at);
  attr.count = static_cast<int>(set.weights.size()), attr.norm = static_cast<bool>(set.norm);
  attr.epsilon = set.epsilon;
  std::vector<Tensor> inputs = {set.x};
  if (set.norm) {
    if (set.norm.shape().rank() != 1 || set.norm.shape()[0] != s[1])
      shape_error("linear_set", "norm [inputs]", {set.x, set.norm}, at);
    inputs.push_back(set.norm);
  }
  std::vector<Output> outputs;
  for (const Tensor& w : set.weights) {
    if (w.shape().rank() != 2 || w.shape()[1] != s[1])
      shape_error("linear_set", "x [token, inputs] and w [outputs, inputs]", {set.x, w}, at);
    inputs.push_back(w);
    outputs.push_back(dense(DType::f32, s.with_last(w.shape()[0])));
  }
  for (size_t i = 0; i < set.biases.size(); ++i) {
    const Tensor& bias = set.biases[i];
    if (!bias) continue;
    if (i >= set.weights.size() || bias.shape().rank() != 1 || bias.shape()[0] != set.weights[i].shape()[0])
      shape_error("linear_set", "bias [outputs]", {set.x, bias}, at);
    attr.bias[i] = true;
    inputs.push_back(bias);
  }
  if (attr.gated) outputs.resize(1);
  return make_node(id(Op::linear_set), "linear_set", std::move(inputs), std::move(outputs), attr, at);
}

}  // namespace

std::vector<Tensor> linear_set(const LinearSet& set, Location at) {
  const std::shared_ptr<Node> node = make(set, {}, at);
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < node->outputs.size(); ++i) outputs.push_back({node, static_cast<int>(i)});
  return outputs;
}

Tensor linear_gated(const LinearSet& set, Activation activation, Location at) {
  if (set.weights.size() != 2 || set.weights[0].shape() != set.weights[1].shape() || !set.biases.empty())
    shape_error("linear_gated", "two equal w and no bias", set.weights, at);
  return {make(set, {.gated = true, .activation = activation}, at), 0};
}

int weight_input(const LinearSetAttr& attr, int i) { return (attr.norm ? 2 : 1) + i; }

int bias_input(const LinearSetAttr& attr, int i) {
  if (!attr.bias[static_cast<size_t>(i)]) return -1;
  int at = weight_input(attr, attr.count);
  for (int before = 0; before < i; ++before) at += attr.bias[static_cast<size_t>(before)];
  return at;
}

}  // namespace consonant
