// SPDX-License-Identifier: Apache-2.0
// The passes that fuse nothing: name_nodes, merge_equal, quantize_activations.
#include "runtime/passes/passes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/test_graph.hpp"

namespace consonant {
namespace {

using namespace testing_runtime;
using testing::ElementsAre;

TEST(NameNodes, NumbersEqualNamesInTheOrderOfTheWalk) {
  TestGraph g;
  const Tensor x = g.embed(), b = scale(x, 2), a = scale(x, 3), sum = a + b;
  name_nodes({sum});
  EXPECT_EQ(a.name(), "scale");
  EXPECT_EQ(b.name(), "scale.2");
  EXPECT_EQ(sum.name(), "add");
  EXPECT_EQ(g.tokens.name(), "tokens");
}

TEST(MergeEqual, KeepsEqualAnglesOnce) {
  TestGraph g;
  const Rotary one{32, 10000}, other{32, 500000};
  const Tensor q = split_heads(g.embed(), 2);
  const Tensor y = rope(rope(rope(q, g.pos, one), g.pos, other), g.pos, one);
  EXPECT_EQ(nodes_of({y}, Op::rope_angles).size(), 3u);
  const auto merged = merge_equal({y});
  EXPECT_EQ(nodes_of(merged, Op::rope_angles).size(), 2u);
  EXPECT_EQ(nodes_of(merged, Op::rope).size(), 3u) << "nodes without a key stay";
  const Tensor last = merged[0].node->inputs[1], first = merged[0].node->inputs[0].node->inputs[0].node->inputs[1];
  EXPECT_EQ(last, first);
  EXPECT_EQ(g.run({y}, g.options()), g.run(merged, g.options()));
}

TEST(MergeEqual, TellsInputsApart) {
  TestGraph g;
  const Rotary r{32, 10000};
  Rotary divided = r;
  divided.divisors = g.weight_of("rope_freqs", DType::f32, {16});
  const Tensor q = split_heads(g.embed(), 2);
  const auto merged = merge_equal({rope(q, g.pos, r), rope(q, g.seq, r), rope(q, g.pos, divided)});
  EXPECT_EQ(nodes_of(merged, Op::rope_angles).size(), 3u);
}

TEST(QuantizeActivations, IsDoneOnceForAllProductsOfAValueThatWantItsType) {
  TestGraph g;
  const Tensor x = g.embed();
  const auto product = [&](DType type) { return linear(x, g.weight_of("w", type, {32, 64})); };
  const Tensor a = product(DType::q4_1), b = product(DType::q4_0), c = product(DType::q8_0), d = product(DType::f16);
  const auto small = quantize_activations({a, b, c, d});
  EXPECT_EQ(nodes_of(small, Op::quantize).size(), 2u);
  EXPECT_EQ(small[0].node->inputs[0], small[1].node->inputs[0]);
  EXPECT_EQ(small[0].node->inputs[0].type(), DType::q16_x);
  EXPECT_EQ(small[0].node->inputs[0].name(), x.name() + "/quantize(q16_x)");
  EXPECT_EQ(small[2].node->inputs[0].type(), DType::q8_x);
  EXPECT_EQ(small[2].node->inputs[0].name(), x.name() + "/quantize(q8_x)");
  EXPECT_EQ(small[3].node->inputs[0], x) << "weights in float meet floats";
  EXPECT_EQ(small[0].name(), a.name());
  EXPECT_EQ(a.node->inputs[0], x) << "the graph itself stays";
}

// The experts' products of a value share it too, and so do those of a value that each slot has its own of.
TEST(QuantizeActivations, TakesTheProductsOfExperts) {
  TestGraph g;
  const Tensor x = g.embed(), ids = top_k(x, 2).second;
  const Tensor w = g.weight_of("w", DType::q4_k, {4, 256, 64 * 4}), up = g.weight_of("up", DType::q8_0, {4, 256, 64});
  const Tensor h = linear_of(ids, x, up), same = linear_of(ids, x, g.weight_of("gate", DType::q8_0, {4, 256, 64}));
  const auto small = quantize_activations({linear_of(ids, h, w), same});
  const Node& last = *small[0].node;
  ASSERT_TRUE(is(last, Op::linear_of));
  EXPECT_EQ(last.inputs[1].type(), DType::q16_x);
  EXPECT_EQ(last.inputs[1].shape().rank(), 3);
  EXPECT_EQ(nodes_of(small, Op::quantize).size(), 2u);
  EXPECT_EQ(small[1].node->inputs[1].type(), DType::q8_x);
}

// Logits decide, so their activations keep 16 bits whatever the weights.
TEST(QuantizeActivations, KeepsSixteenBitsForTheRowsThatAreWanted) {
  TestGraph g;
  const Tensor x = rows(g.embed(), g.wanted), w = g.weight_of("w", DType::q8_0, {32, 64});
  EXPECT_EQ(quantize_activations({linear(x, w)})[0].node->inputs[0].type(), DType::q16_x);
}

TEST(QuantizeActivations, KeepsAnEpilogue) {
  TestGraph g;
  const Tensor x = g.embed(), w = g.weight_of("w", DType::q4_1, {64, 64});
  const auto small = quantize_activations({linear_epilogue(x, w, {}, x)});
  ASSERT_EQ(small[0].node->inputs.size(), 3u);
  EXPECT_EQ(small[0].node->inputs[2], x);
  EXPECT_EQ(small[0].node->inputs[0].type(), DType::q16_x);
}

}  // namespace
}  // namespace consonant
