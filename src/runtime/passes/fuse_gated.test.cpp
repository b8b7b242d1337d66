// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/passes/passes.hpp"
#include "runtime/test_graph.hpp"

namespace consonant {
namespace {

using namespace testing_runtime;
using testing::ElementsAre;

TEST(FuseGated, JoinsAnActivationAndItsProductOnEitherSide) {
  TestGraph g;
  const Tensor x = g.embed(), y = scale(x, 3);
  for (const bool is_gelu : {false, true})
    for (const bool left : {false, true}) {
      const Tensor a = is_gelu ? gelu(x) : silu(x), product = left ? a * y : y * a;
      const auto fused = fuse_gated({product});
      ASSERT_TRUE(is(*fused[0].node, Op::gated));
      EXPECT_EQ(fused[0].node->attr<GatedAttr>().activation, is_gelu ? Activation::gelu : Activation::silu);
      EXPECT_THAT(fused[0].node->inputs, ElementsAre(x, y));
      EXPECT_EQ(fused[0].name(), "mul");
      EXPECT_THAT(fused[0].node->covers, ElementsAre(is_gelu ? "gelu" : "silu", "mul"));
      EXPECT_EQ(fused[0].node->location.line, product.node->location.line);
      EXPECT_TRUE(is(*product.node, Op::mul)) << "the graph itself stays";
      EXPECT_EQ(fused[0].shape(), product.shape());
    }
}

TEST(FuseGated, LeavesWhatOthersUse) {
  TestGraph g;
  const Tensor x = g.embed(), a = silu(x), product = a * scale(x, 3);
  for (const auto& outputs : {std::vector<Tensor>{product, a}, {product, scale(a, 2)}, {mul(a, a)}}) {
    const auto kept = fuse_gated(outputs);
    EXPECT_TRUE(is(*kept[0].node, Op::mul));
    EXPECT_TRUE(nodes_of(kept, Op::gated).empty());
  }
}

TEST(FuseGated, LeavesProductsWithAVector) {
  TestGraph g;
  const Tensor w = g.weight_of("w", DType::f32, {64});
  EXPECT_TRUE(nodes_of(fuse_gated({mul(silu(g.embed()), w)}), Op::gated).empty());
}

TEST(FuseGated, ChangesNoBit) {
  TestGraph g;
  const Tensor x = g.embed(), product = silu(scale(x, 3)) * x;
  const auto fused = g.run({product}, g.options());
  // Asked for as well, the activation stays a node of its own.
  Program plain(make_plan({product, product.node->inputs[0]}, g.options()));
  plain.run(TestGraph::batch(5), g.pool);
  EXPECT_EQ(fused, TestGraph::numbers(plain.output(0)));
}

}  // namespace
}  // namespace consonant
