// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "graph/node.hpp"

namespace consonant {

// A pass takes a graph's outputs and returns those of an equivalent graph. Fused nodes carry the name of the node
// that made their first output, and the names of all that they cover in `covers`: last, and in the order of their
// outputs, those that made them.
using Pass = std::vector<Tensor> (*)(const std::vector<Tensor>& outputs);

// Gives each node a name of its own: the second "blk.0/add" becomes "blk.0/add.2". Runs first, so that the names of one
// graph agree whatever is fused later.
void name_nodes(const std::vector<Tensor>& outputs);

// Nodes that make equal values (same op, inputs and key) become one.
std::vector<Tensor> merge_equal(const std::vector<Tensor>& outputs);

// mul(silu(a), b), mul(gelu(a), b) -> gated(a, b).
std::vector<Tensor> fuse_gated(const std::vector<Tensor>& outputs);

// add(linear(x, w), bias) and add(residual, linear(x, w)) -> linear with an epilogue. Bit-equal to the plain nodes.
std::vector<Tensor> fuse_epilogue(const std::vector<Tensor>& outputs);

// Linear layers of one value, up to three, with the rms_norm before them if nothing else reads it -> linear_set; and
// gated(linear(x, w0), linear(x, w1)) -> linear_gated. For accelerators.
std::vector<Tensor> fuse_linear_sets(const std::vector<Tensor>& outputs);

// gated(linear_of(ids, x, gate), linear_of(ids, x, up)) -> linear_of_gated. For accelerators, where launches count.
std::vector<Tensor> fuse_experts(const std::vector<Tensor>& outputs);

// attend(rope(rms_norm(q)), kv_append(rope(rms_norm(k)), v)), each norm optional -> the same of rope_append(q, k, v).
// Bit-equal to the plain nodes on accelerators, where launches count.
std::vector<Tensor> fuse_heads(const std::vector<Tensor>& outputs);

// linear(x, w) with a quantised w -> linear(quantize(x), w), and linear_of alike: activations in 8 bits, in 16 where
// weights have 4 or fewer. What
// --precision auto means on the CPU.
std::vector<Tensor> quantize_activations(const std::vector<Tensor>& outputs);

}  // namespace consonant
