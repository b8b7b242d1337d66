// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>

#include "graph/node.hpp"
#include "ops/activation.hpp"

namespace consonant {

// Inputs of a node: x, the norm's weight, then the matrices, then the biases that there are.
struct LinearSetAttr {
  static constexpr int most = 3;
  int count = 1;       // matrices
  bool norm = false;   // x is normalised first, as by rms_norm
  float epsilon = 0;   // of it
  bool gated = false;  // two matrices, one output: activation(w0 x) * (w1 x)
  Activation activation = Activation::silu;
  std::array<bool, most> bias{};
};

// What one launch can do for several linear layers of one input: what fusion makes on accelerators of
// linear(rms_norm(x, norm), w) for up to three w, or of gated(linear(x, w0), linear(x, w1)).
struct LinearSet {
  Tensor x;     // [token, inputs] float32
  Tensor norm;  // [inputs], or empty
  float epsilon = 0;
  std::vector<Tensor> weights;  // [outputs, inputs] each
  std::vector<Tensor> biases;   // as many, empty where there is none; or none at all
};

// [token, outputs] float32 for each weight.
std::vector<Tensor> linear_set(const LinearSet& set, Location at = Location::current());

// activation(linear(x, w0)) * linear(x, w1): two weights of equal shape, no biases; silu or gelu.
Tensor linear_gated(const LinearSet& set, Activation activation, Location at = Location::current());

// Where the inputs of a node are.
int weight_input(const LinearSetAttr& attr, int i);
int bias_input(const LinearSetAttr& attr, int i);  // -1: none

}  // namespace consonant
