// SPDX-License-Identifier: Apache-2.0
#include "runtime/program.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/test_graph.hpp"

namespace consonant {
namespace {

using namespace testing_runtime;
using testing::HasSubstr;

template <class F>
std::string message_of(F f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// An attention layer over a cache of three pages, so that all inputs of a batch are read.
struct Model : TestGraph {
  Model() : TestGraph(8) {
    for (Buffer* buffer : {&keys, &values}) *buffer = Buffer(3 * kv_page_bytes(DType::f32, 1, 64));
    const Tensor x = embed(), q = split_heads(x, 1);
    const Mask mask{pos, seq, pages};
    KvState kv{state({StateKind::keys, 0}, DType::f32, {3, 1, 64, kv_page}),
               state({StateKind::values, 0}, DType::f32, {3, 1, kv_page, 64})};
    const auto [k, v] = kv_append(kv, q, q, mask);
    const Tensor y = rows(merge_heads(attend(q, k, v, mask, 0.125f)), wanted);
    PlanOptions o = options();
    o.states = [this](const StateAttr& s) {
      const bool is_keys = s.kind == StateKind::keys;
      const Shape shape = is_keys ? Shape{3, 1, 64, kv_page} : Shape{3, 1, kv_page, 64};
      return View{(is_keys ? keys : values).data(), DType::f32, shape, dense(DType::f32, shape).strides};
    };
    program = std::make_unique<Program>(make_plan({y, kv.keys, kv.values}, o));
  }

  std::vector<float> run(const Batch& batch) {
    program->run(batch, pool);
    return numbers(program->output(0));
  }

  Buffer keys, values;
  std::unique_ptr<Program> program;
};

TEST(Program, RunsStepsOfAnySizeUpToItsCapacity) {
  Model m;
  const std::vector<float> whole = m.run(TestGraph::batch(8));
  ASSERT_EQ(whole.size(), 64u);
  for (int32_t first = 0; first < 8; first += 3) {  // the same tokens in steps of three
    Batch part = TestGraph::batch(8);
    const auto cut = [&](std::vector<int32_t>& x) { x = {x.begin() + first, x.begin() + std::min(first + 3, 8)}; };
    cut(part.tokens), cut(part.positions), cut(part.sequences);
    part.wanted = {static_cast<int32_t>(part.tokens.size()) - 1};
    const std::vector<float> last = m.run(part);
    if (first == 6) {
      EXPECT_EQ(last, whole);
    }
  }
  Batch none = TestGraph::batch(0);
  none.wanted = {};
  EXPECT_TRUE(m.run(none).empty());
}

TEST(Program, RefusesABatchPastItsCapacityAndGoesOn) {
  Model m;
  const std::vector<float> want = m.run(TestGraph::batch(8));
  EXPECT_THAT(message_of([&] { m.run(TestGraph::batch(9)); }), HasSubstr("9 numbers for the input tokens [token<=8]"));
  Batch batch = TestGraph::batch(8);
  batch.wanted.assign(9, 0);
  EXPECT_THAT(message_of([&] { m.run(batch); }), HasSubstr("9 numbers for the input wanted [wanted<=8]"));
  batch = TestGraph::batch(8);
  batch.pages.assign(9, 0);
  EXPECT_THAT(message_of([&] { m.run(batch); }), HasSubstr("3 x 3 pages for the input [2, 3]"));
  batch = TestGraph::batch(8);
  batch.pages.assign(8, 0), batch.pages_per_sequence = 4;
  EXPECT_THAT(message_of([&] { m.run(batch); }), HasSubstr("2 x 4 pages"));
  batch = TestGraph::batch(8);
  batch.positions.pop_back();
  EXPECT_THAT(message_of([&] { m.run(batch); }), HasSubstr("8 tokens, 7 positions and 8 sequence numbers"));
  EXPECT_EQ(m.run(TestGraph::batch(8)), want);
}

// A step refused halfway must leave nothing behind that the next one of its size would use.
TEST(Program, IsUnharmedByAFirstBatchThatIsRefused) {
  Model m;
  Batch bad = TestGraph::batch(5);
  bad.pages.assign(9, 0);
  EXPECT_NE(message_of([&] { m.run(bad); }), "no error");
  EXPECT_EQ(m.run(TestGraph::batch(5)).size(), 64u);
}

TEST(Program, RefusesInputsThatNoBatchHas) {
  TestGraph g;
  const Tensor other = input("weather", DType::i32, Shape({8}, Axis::token));
  const Tensor y = rows(g.weight_of("w", DType::f32, {16, 4}), other);  // before the options, which load the weights
  Program program(make_plan({y}, g.options()));
  EXPECT_THAT(message_of([&] { program.run(TestGraph::batch(2), g.pool); }), HasSubstr("'weather'"));
}

}  // namespace
}  // namespace consonant
