// SPDX-License-Identifier: Apache-2.0
#include "verify/forced_routing.hpp"

#include <gtest/gtest.h>

#include "runtime/backends.hpp"
#include "runtime/test_graph.hpp"

namespace consonant {
namespace {

using namespace testing_runtime;

// Tokens routed to two of eight experts.
struct Router : TestGraph {
  Router() : TestGraph(16) {
    const Tensor logits = linear(embed(32), weight_of("router", DType::f32, {8, 32}));
    y = route(logits, {}, RouteAttr{.used = 2}).weights;
  }

  void run(const Program::Observer& seen) { Program(make_plan({y}, options())).run_observed(batch(9), pool, seen); }

  Tensor y;
};

TEST(ForcedRouting, TakesTheReferencesExpertsAndCountsThem) {
  Router graph;
  ForcedRouting forced;
  std::vector<int32_t> wanted;
  std::vector<float> weights;
  const auto is_route = [](const PlannedNode& planned) { return planned.op() == "route"; };
  const Program::Observer reference = forced.reference(), device = forced.device();
  graph.run([&](const PlannedNode& planned, std::span<const View> outputs) {
    if (is_route(planned)) {
      const auto* const ids = outputs[0].row<int32_t>(0);
      wanted.assign(ids, ids + 18);
      weights.assign(outputs[1].row<float>(0), outputs[1].row<float>(0) + 18);
    }
    return reference(planned, outputs);
  });

  graph.run([&](const PlannedNode& planned, std::span<const View> outputs) {
    if (!is_route(planned)) return device(planned, outputs);
    int32_t* const ids = outputs[0].row<int32_t>(0);
    std::swap(ids[2], ids[3]);  // the same two in another order are no other choice
    int32_t other = 0;
    while (other == ids[8] || other == ids[9]) ++other;
    ids[8] = other;
    const bool changed = device(planned, outputs);
    EXPECT_TRUE(changed);
    EXPECT_EQ(ids[8], wanted[8]);
    EXPECT_EQ(ids[9], wanted[9]);
    EXPECT_EQ(ids[2], wanted[3]);
    EXPECT_EQ(outputs[1].row<float>(4)[0], weights[8]);
    return changed;
  });
  EXPECT_EQ(forced.choices(), 9);
  EXPECT_EQ(forced.differing(), 1);
  EXPECT_EQ(forced.worst_drift(), 0);  // the logits were the same
}

}  // namespace
}  // namespace consonant
