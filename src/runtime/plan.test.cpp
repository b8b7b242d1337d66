// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "runtime/test_graph.hpp"

namespace consonant {
namespace {

using namespace testing_runtime;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(Plan, RefusesWithEveryNodeThatHasNoKernel) {
  TestGraph g;
  const Tensor x = g.embed();
  const Tensor bad = input("tokens", DType::i32, Shape({8, 64}, Axis::token));
  Scope scope("blk", 2);
  const Tensor first = silu(bad);
  const int first_line = __LINE__ - 1;
  const Tensor second = scale(bad, 2);
  const int second_line = __LINE__ - 1;
  try {
    make_plan({x + (first + second)}, g.options());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit(), Exit::device);
    EXPECT_THAT(error.what(), HasSubstr("cpu can't run this model"));
    EXPECT_THAT(error.what(),
                HasSubstr(fmt::format("blk.2/silu (plan.test.cpp:{}): silu i32[token<=8, 64]: input 0 is i32, not f32",
                                      first_line)));
    EXPECT_THAT(error.what(), HasSubstr(fmt::format("blk.2/scale (plan.test.cpp:{}): ", second_line)));
    EXPECT_EQ(std::string(error.what()).find("add"), std::string::npos) << "only what can't run is listed";
  }
}

TEST(Plan, RunsANodeAfterAllThatItReads) {
  TestGraph g;
  Tensor x = g.embed();
  for (int i = 0; i < 4; ++i) {
    const Tensor w = g.weight_of("w", DType::q8_0, {128, 64}), down = g.weight_of("d", DType::q8_0, {64, 128}),
                 norm = g.weight_of("n", DType::f32, {64});
    const Tensor n = rms_norm(x, norm, 1e-5f);
    const auto parts = split(linear(n, w), {64, 64});
    x = x + linear(silu(linear(n, w)) * linear(n, w), down);
    x = x + mul(parts[0], silu(parts[1]));
  }
  const Plan plan = make_plan({x}, g.options());
  std::map<const Node*, size_t> wave_of;
  for (size_t w = 0; w < plan.waves.size(); ++w) {
    EXPECT_FALSE(plan.waves[w].empty());
    for (const PlannedNode& planned : plan.waves[w]) wave_of[planned.node.get()] = w;
  }
  const auto made_in = [&](Tensor in) {  // through views
    while (in.node->op == op_view) in = in.node->inputs[0];
    const auto at = wave_of.find(in.node.get());
    return at == wave_of.end() ? -1 : static_cast<int>(at->second);
  };
  for (const auto& [node, wave] : wave_of)
    for (const Tensor& in : node->inputs) EXPECT_LT(made_in(in), static_cast<int>(wave)) << node->name;
  EXPECT_EQ(plan.waves[2].size(), 3u) << "three products of one value run together";
}

// The memory plan may give a dead value's bytes to another, but never those of a tap.
TEST(Plan, KeepsTheValuesOfTaps) {
  TestGraph g;
  Tensor x = g.embed();
  std::vector<Tensor> all;
  for (int i = 0; i < 6; ++i) {
    Scope blk("blk", i);
    all.push_back(x = scale(x, 1.5f));
  }
  PlanOptions options = g.options();
  options.taps = {"blk.1/*", "blk.3/scale", "nothing"};
  Program tapped(make_plan({x}, options));
  ASSERT_EQ(tapped.plan().taps.size(), 2u);
  EXPECT_EQ(tapped.plan().taps[0].name, "blk.1/scale");
  EXPECT_THAT(tapped.plan().taps[0].source, testing::StartsWith("plan.test.cpp:"));
  tapped.run(TestGraph::batch(3), g.pool);
  EXPECT_EQ(TestGraph::numbers(tapped.tap(0)), g.run({all[1]}, g.options(), 3));
  EXPECT_EQ(TestGraph::numbers(tapped.tap(1)), g.run({all[3]}, g.options(), 3));
  EXPECT_EQ(TestGraph::numbers(tapped.output(0)), g.run({x}, g.options(), 3));
  EXPECT_GT(tapped.arena_bytes(), make_plan({x}, g.options()).arena_bytes);
}

TEST(Plan, RefusesToReadAStateThatAnAppendHasOverwritten) {
  TestGraph g;
  const Mask mask{g.pos, g.seq, g.pages, 0};
  KvState kv{state({StateKind::keys, 0}, DType::f32, {6, 1, 64, kv_page}),
             state({StateKind::values, 0}, DType::f32, {6, 1, kv_page, 64})};
  const KvState before = kv;
  const Tensor x = split_heads(g.embed(), 1), later = split_heads(scale(merge_heads(x), 2), 1);
  kv_append(kv, x, x, mask);
  const Tensor y = attend(later, before.keys, before.values, mask, 1);
  try {
    make_plan({y, kv.keys, kv.values}, g.options());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit(), Exit::failed);
    EXPECT_THAT(error.what(), testing::MatchesRegex("attend .* would see what kv_append .* writes over.*"));
  }
  KvState twice = before;
  kv_append(twice, later, later, mask);
  EXPECT_THROW(make_plan({kv.keys, kv.values, twice.keys, twice.values}, g.options()), Error)
      << "two values of one state";
}

TEST(Plan, PlansDeepGraphs) {
  TestGraph g;
  Tensor x = g.embed();
  for (int i = 0; i < 20000; ++i) x = scale(x, 1);
  EXPECT_EQ(make_plan({x}, g.options()).waves.size(), 20001u);
}

TEST(Plan, OfTheReferenceFusesNothing) {
  TestGraph g;
  const Tensor x = g.embed(), w = g.weight_of("w", DType::q8_0, {64, 64}), y = x + linear(silu(x) * x, w);
  const auto ops = [](const Plan& plan) {
    std::multiset<std::string> found;
    for (const auto& wave : plan.waves)
      for (const PlannedNode& planned : wave) found.insert(std::string(op_name(planned.node->op)));
    return found;
  };
  EXPECT_THAT(ops(make_plan({y}, g.options(DeviceKind::reference))),
              ElementsAre("add", "linear", "mul", "rows", "silu"));
  PlanOptions options = g.options();
  options.small_activations = true;
  EXPECT_THAT(ops(make_plan({y}, options)), ElementsAre("gated", "linear", "quantize", "rows"));
}

}  // namespace
}  // namespace consonant
