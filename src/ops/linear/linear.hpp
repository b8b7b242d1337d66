// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/node.hpp"

namespace consonant {

// Inputs of a linear node: x, w, then bias and residual where the flags say so.
struct LinearAttr {
  bool bias = false;      // + bias [outputs], after the product
  bool residual = false;  // + residual [token, outputs], last
};

// y = x w^T: x [token, inputs] float32, q8_x or q16_x, w [outputs, inputs] of any weight type -> [token, outputs]
// float32. Float activations are multiplied in float32 with the decoded weights, in the order of the inputs; q8_x ones
// block by block of 32 inputs in integers, the blocks' values added in float32 in their order.
Tensor linear(Tensor x, Tensor w, Location at = Location::current());

// The same with an epilogue: what fusion makes of linear(x, w) + bias and residual + linear(x, w).
Tensor linear_epilogue(Tensor x, Tensor w, Tensor bias, Tensor residual, Location at = Location::current());

}  // namespace consonant
