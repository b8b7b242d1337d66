// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/passes/passes.hpp"
#include "runtime/test_graph.hpp"

namespace consonant {
namespace {

using namespace testing_runtime;
using testing::ElementsAre;

struct Layer : TestGraph {
  Tensor x = embed(), w = weight_of("blk.0.w.weight", DType::q4_1, {64, 64}), b = weight_of("bias", DType::f32, {64});
};

TEST(FuseEpilogue, TakesTheBiasThenTheResidual) {
  Layer g;
  const auto fused = fuse_epilogue({g.x + add(linear(g.x, g.w), g.b)});
  const Node& node = *fused[0].node;
  ASSERT_TRUE(is(node, Op::linear));
  EXPECT_TRUE(node.attr<LinearAttr>().bias);
  EXPECT_TRUE(node.attr<LinearAttr>().residual);
  EXPECT_THAT(node.inputs, ElementsAre(g.x, g.w, g.b, g.x));
  EXPECT_THAT(node.covers, ElementsAre("linear(w)", "add(bias)", "add"));
  EXPECT_EQ(node.name, "add");
}

TEST(FuseEpilogue, TakesAResidualFromEitherSide) {
  Layer g;
  for (const bool left : {false, true}) {
    const Tensor y = linear(g.x, g.w);
    const auto fused = fuse_epilogue({left ? y + g.x : g.x + y});
    ASSERT_TRUE(is(*fused[0].node, Op::linear));
    EXPECT_THAT(fused[0].node->inputs, ElementsAre(g.x, g.w, g.x));
    EXPECT_FALSE(fused[0].node->attr<LinearAttr>().bias);
    EXPECT_THAT(fused[0].node->covers, ElementsAre("linear(w)", "add"));
  }
}

TEST(FuseEpilogue, LeavesWhatOthersUse) {
  Layer g;
  const Tensor y = linear(g.x, g.w), sum = add(y, g.b);
  for (const auto& outputs : {std::vector<Tensor>{sum, y}, {sum, silu(y)}, {add(y, y)}}) {
    const auto kept = fuse_epilogue(outputs);
    EXPECT_TRUE(is(*kept[0].node, Op::add));
  }
  // The bias is joined, but its sum is used twice, so the residual isn't.
  const auto some = fuse_epilogue({g.x + sum, sum});
  EXPECT_TRUE(is(*some[0].node, Op::add));
  EXPECT_EQ(nodes_of(some, Op::linear).size(), 1u);
  EXPECT_TRUE(nodes_of(some, Op::linear)[0]->attr<LinearAttr>().bias);
}

// (product + residual) + bias isn't what the fused node computes.
TEST(FuseEpilogue, KeepsTheOrderOfTheSum) {
  Layer g;
  const auto fused = fuse_epilogue({add(g.x + linear(g.x, g.w), g.b)});
  EXPECT_TRUE(is(*fused[0].node, Op::add));
  EXPECT_FALSE(nodes_of(fused, Op::linear)[0]->attr<LinearAttr>().bias);
}

TEST(FuseEpilogue, ChangesNoBit) {
  Layer g;
  for (const bool small : {false, true}) {
    const Tensor y = linear(g.x, g.w), sum = add(y, g.b), all = g.x + sum;
    PlanOptions options = g.options();
    options.small_activations = small;
    const auto fused = g.run({all}, options);
    Program plain(make_plan({all, sum, y}, options));
    plain.run(TestGraph::batch(5), g.pool);
    EXPECT_EQ(fused, TestGraph::numbers(plain.output(0)));
  }
}

// A bias is float32 on the device, whatever the file holds.
TEST(FuseEpilogue, TakesABiasOfAnyType) {
  for (const DType type : {DType::f16, DType::bf16}) {
    TestGraph g;
    const Tensor x = g.embed(), w = g.weight_of("w", DType::q4_1, {64, 64}), b = g.weight_of("b", type, {64});
    const Tensor y = linear(x, w), sum = add(y, b);
    Program plain(make_plan({sum, y}, g.options()));
    plain.run(TestGraph::batch(5), g.pool);
    EXPECT_EQ(g.run({sum}, g.options()), TestGraph::numbers(plain.output(0))) << name(type);
  }
}

}  // namespace
}  // namespace consonant
