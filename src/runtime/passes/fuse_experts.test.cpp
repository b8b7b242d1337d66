// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/op.hpp"
#include "runtime/passes/passes.hpp"
#include "runtime/test_graph.hpp"

namespace consonant {
namespace {

using namespace testing_runtime;
using testing::ElementsAre;

struct Experts {
  TestGraph g;
  Tensor x = g.embed(), ids = top_k(x, 2).second;
  Tensor w(const std::string& name) { return g.weight_of(name, DType::f32, {64, 48, 64}); }
};

TEST(FuseExperts, MakesOneOfAGatedPair) {
  Experts e;
  const Tensor y = silu(linear_of(e.ids, e.x, e.w("gate"))) * linear_of(e.ids, e.x, e.w("up"));
  const auto fused = fuse_experts(fuse_gated({y}));
  const Node& node = *fused[0].node;
  ASSERT_TRUE(is(node, Op::linear_of));
  EXPECT_TRUE(node.attr<LinearOfAttr>().gated);
  EXPECT_THAT(node.covers, ElementsAre("linear_of(gate)", "linear_of(up)", "silu", "mul"));
  EXPECT_EQ(node.inputs.size(), 4u);
}

TEST(FuseExperts, LeavesWhatOthersReadOrWhatHasOtherInputs) {
  Experts e;
  const Tensor gate = linear_of(e.ids, e.x, e.w("gate")), up = linear_of(e.ids, e.x, e.w("up"));
  EXPECT_FALSE(is(*fuse_experts(fuse_gated({silu(gate) * up, up}))[0].node, Op::linear_of));
  const Tensor other = linear_of(e.ids, silu(e.x), e.w("other"));
  EXPECT_FALSE(is(*fuse_experts(fuse_gated({silu(gate) * other}))[0].node, Op::linear_of));
}

}  // namespace
}  // namespace consonant
