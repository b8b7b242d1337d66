// SPDX-License-Identifier: Apache-2.0
#include "ops/carry/carry.hpp"

#include "ops/test_support.hpp"

namespace consonant {
namespace {

using namespace testing_ops;

Build stream(int32_t before, Edge edge) {
  return [=](CaseBuilder& b) {
    const std::vector<CaseBuilder::Sequence> sequence = {{before, 1}};
    Tensor state = b.slot_state(StateKind::conv, sequence, {3, 1});
    return carry(state, b.numbers("x", {2, 1}, {4, 5}), b.integers("position", {1}, {before}), b.slots(sequence).slots,
                 edge);
  };
}

// The slot holds NaNs where a stream begins.
TEST(Carry, BeginsWithTheEdge) {
  expect_exactly(stream(0, Edge::zeros), {0, 0, 0, 4, 5});
  expect_exactly(stream(0, Edge::repeat), {4, 4, 4, 4, 5});
}

// What one step leaves is what the next one begins with: y of the second is [x of before the last kept, x].
TEST(Carry, KeepsTheLastRows) {
  for (const DeviceKind device : both_devices) {
    const auto y = compute(device, [](CaseBuilder& b) {
      const std::vector<CaseBuilder::Sequence> sequence = {{0, 1}};
      Tensor state = b.slot_state(StateKind::conv, sequence, {3, 1});
      const Tensor slot = b.slots(sequence).slots;
      carry(state, b.numbers("x", {2, 1}, {4, 5}), b.integers("position", {1}, {0}), slot);
      return carry(state, b.numbers("z", {2, 1}, {6, 7}), b.integers("position2", {1}, {2}), slot);
    });
    EXPECT_EQ(y, (std::vector<float>{0, 4, 5, 6, 7})) << name(device);
  }
}

TEST(Carry, CantMirror) {
  EXPECT_THAT(refusal_of(stream(0, Edge::mirror)), HasSubstr("carry: wants state [slot, kept, n] and x [row, n]"));
}

}  // namespace
}  // namespace consonant
