// SPDX-License-Identifier: Apache-2.0
#include "ops/kv_pack/kv_pack.hpp"

#include "ops/attend/attend.hpp"
#include "ops/test_support.hpp"

namespace consonant {
namespace {

using namespace testing_ops;

TEST(KvPack, TurnsKeysAndFillsThePageWithZeros) {
  for (const DeviceKind device : both_devices) {
    const auto packed = compute(device, [](CaseBuilder& b) {
      return kv_pack(b.numbers("k", {2, 1, 2}, {1, 2, 3, 4}), b.numbers("v", {2, 1, 2}, {5, 6, 7, 8}), DType::f32)
          .first;
    });
    ASSERT_EQ(packed.size(), 128u) << name(device);
    for (size_t i = 0; i < packed.size(); ++i)
      EXPECT_EQ(packed[i], i == 0 ? 1 : i == 1 ? 3 : i == 64 ? 2 : i == 65 ? 4 : 0) << name(device) << ' ' << i;
  }
}

// Over both positions with equal scores: the mean of the values.
TEST(KvPack, IsWhatAttentionReads) {
  expect_near(
      [](CaseBuilder& b) {
        const auto [keys, values] =
            kv_pack(b.numbers("k", {2, 1, 2}, {1, 2, 1, 2}), b.numbers("v", {2, 1, 2}, {5, 6, 7, 10}), DType::f32);
        const Mask mask{b.integers("pos", Shape({1}, Axis::token), std::vector<int32_t>{1}),
                        b.integers("seq", Shape({1}, Axis::token), std::vector<int32_t>{0}),
                        b.integers("pages", {1, 1}, std::vector<int32_t>{0}), 0};
        return attend(b.numbers("q", per_token(1, 1, 2), {3, 4}), keys, values, mask, 1);
      },
      {6, 8});
}

TEST(KvPack, RefusesBlockTypes) {
  EXPECT_THAT(refusal_of([](CaseBuilder& b) {
                return kv_pack(b.values("k", {2, 1, 32}), b.values("v", {2, 1, 32}), DType::q8_0).first;
              }),
              HasSubstr("packed as f32 or f16"));
}

}  // namespace
}  // namespace consonant
