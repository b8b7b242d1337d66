// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/linear_set/linear_set.hpp"
#include "runtime/passes/passes.hpp"
#include "runtime/test_graph.hpp"

namespace consonant {
namespace {

using namespace testing_runtime;
using testing::ElementsAre;

struct Layer : TestGraph {
  Tensor x = embed(), norm = weight_of("norm", DType::f32, {64}), y = rms_norm(x, norm, 1e-5f);
  Tensor product(const Tensor& from, const std::string& name, int64_t outputs = 32) {
    return linear(from, weight_of(name, DType::f32, {outputs, 64}));
  }
  static std::vector<Tensor> fused(const std::vector<Tensor>& outputs) {
    name_nodes(outputs);
    return fuse_linear_sets(fuse_epilogue(fuse_gated(outputs)));
  }
};

TEST(FuseLinearSets, JoinsProductsOfOneValueAndItsNorm) {
  Layer g;
  const Tensor q = g.product(g.y, "q", 64), k = g.product(g.y, "k"), v = g.product(g.y, "v");
  const Tensor bias = g.weight_of("k_bias", DType::f32, {32});
  const auto fused = Layer::fused({q, k + bias, v});
  const std::shared_ptr<Node>& node = fused[0].node;
  ASSERT_TRUE(is(*node, Op::linear_set));
  EXPECT_THAT(fused, ElementsAre(Tensor{node, 0}, Tensor{node, 1}, Tensor{node, 2}));
  EXPECT_THAT(node->inputs, ElementsAre(g.x, g.norm, q.node->inputs[1], k.node->inputs[1], v.node->inputs[1], bias));
  const auto& attr = node->attr<LinearSetAttr>();
  EXPECT_TRUE(attr.norm);
  EXPECT_EQ(attr.epsilon, 1e-5f);
  EXPECT_THAT(attr.bias, ElementsAre(false, true, false));
  EXPECT_THAT(node->covers, ElementsAre("rms_norm(norm)", "linear(k)", "linear(q)", "add(k_bias)", "linear(v)"));
}

TEST(FuseLinearSets, JoinsAGateAndItsProduct) {
  Layer g;
  const Tensor gate = g.product(g.y, "gate"), up = g.product(g.y, "up");
  const auto fused = Layer::fused({silu(gate) * up});
  ASSERT_TRUE(is(*fused[0].node, Op::linear_set));
  EXPECT_TRUE(fused[0].node->attr<LinearSetAttr>().gated);
  EXPECT_THAT(fused[0].node->inputs, ElementsAre(g.x, g.norm, gate.node->inputs[1], up.node->inputs[1]));
  EXPECT_EQ(fused[0].name(), "mul");
  EXPECT_TRUE(nodes_of(fused, Op::linear).empty());
}

TEST(FuseLinearSets, LeavesWhatOthersUse) {
  Layer g;
  const Tensor q = g.product(g.y, "q"), k = g.product(g.y, "k");
  const auto kept = Layer::fused({q, k, g.y});
  EXPECT_FALSE(kept[0].node->attr<LinearSetAttr>().norm) << "the norm is asked for too";
  EXPECT_EQ(kept[0].node->inputs[0], g.y);
  const auto gated = Layer::fused({silu(q) * k, k});
  EXPECT_TRUE(is(*gated[0].node, Op::gated)) << "a factor is asked for too";
}

TEST(FuseLinearSets, LeavesAProductAloneAndThoseWithAResidual) {
  Layer g;
  EXPECT_TRUE(is(*Layer::fused({g.product(g.x, "q")})[0].node, Op::linear));
  const auto fused = Layer::fused({g.x + g.product(g.y, "o", 64), g.product(g.y, "q"), g.product(g.y, "k")});
  EXPECT_TRUE(is(*fused[0].node, Op::linear));
  EXPECT_EQ(fused[0].node->inputs[0], g.y) << "which the norm stays for";
}

TEST(FuseLinearSets, HasThreeAtMost) {
  Layer g;
  std::vector<Tensor> outputs;
  for (const char* name : {"a", "b", "c", "d"}) outputs.push_back(g.product(g.x, name));
  const auto fused = Layer::fused(outputs);
  EXPECT_EQ(fused[0].node, fused[2].node);
  EXPECT_TRUE(is(*fused[3].node, Op::linear));
}

}  // namespace
}  // namespace consonant
