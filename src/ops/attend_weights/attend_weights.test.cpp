// SPDX-License-Identifier: Apache-2.0
#include "ops/attend_weights/attend_weights.hpp"

#include "ops/kv_pack/kv_pack.hpp"
#include "ops/test_support.hpp"

namespace consonant {
namespace {

using namespace testing_ops;

Tensor of_head(CaseBuilder& b, std::vector<int64_t> heads) {
  const Tensor keys =
      kv_pack(b.numbers("k", {2, 2, 1}, {0, 0, 1, 2}), b.numbers("v", {2, 2, 1}, {1}), DType::f32).first;
  const Mask mask{b.integers("pos", Shape({1}, Axis::token), std::vector<int32_t>{1}),
                  b.integers("seq", Shape({1}, Axis::token), std::vector<int32_t>{0}),
                  b.integers("pages", {1, 1}, std::vector<int32_t>{0}), 0};
  return attend_weights(b.numbers("q", per_token(1, 2, 1), {1.0986123f, 0.5493061f}), keys, mask, 2, 1, heads);
}

// exp(ln 3 * 1) : exp(0) = 3 : 1, and of the other head exp(ln 3 / 2 * 2).
TEST(AttendWeights, IsASoftmaxForEachChosenHead) {
  expect_near([](CaseBuilder& b) { return of_head(b, {1, 0}); }, {0.25f, 0.75f, 0.25f, 0.75f});
}

TEST(AttendWeights, RefusesHeadsThatAreNotThere) {
  EXPECT_THAT(refusal_of([](CaseBuilder& b) { return of_head(b, {2}); }), HasSubstr("some of q's heads"));
}

}  // namespace
}  // namespace consonant
