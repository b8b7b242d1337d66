// SPDX-License-Identifier: Apache-2.0
#include "ops/attend/attend.hpp"

#include <hwy/targets.h>

#include <cmath>

#include "ops/kv_append/kv_append.hpp"
#include "ops/test_support.hpp"

namespace consonant {
namespace {

using namespace testing_ops;

// Three tokens, one head of one number: keys 0, ln 2, ln 4, so that a query of one weighs them 1, 2, 4.
Build weighed(DType type, float query, int64_t window, std::vector<float> values) {
  return [=](CaseBuilder& b) {
    CaseBuilder::Cache c = b.cache(type, 1, 1, 1, {{0, 3}}, false);
    const Tensor k = b.numbers("k", per_token(3, 1, 1), {0, std::log(2.0f), std::log(4.0f)}),
                 v = b.numbers("v", per_token(3, 1, 1), values);
    const auto [keys, seen] = kv_append(c.kv, k, v, c.mask);
    return attend(b.numbers("q", per_token(3, 1, 1), {query}), keys, seen, c.mask.sliding(window), 2);
  };
}

TEST(Attend, WeighsWhatATokenSeesBySoftmax) {
  expect_near(weighed(DType::f32, 0.5f, 0, {7, 14, 28}), {7, (7 + 28) / 3.0f, (7 + 28 + 112) / 7.0f});
  expect_near(weighed(DType::f32, 0.5f, 2, {7, 14, 28}), {7, (7 + 28) / 3.0f, (28 + 112) / 6.0f});
  expect_near(weighed(DType::f32, 0.5f, 1, {7, 14, 28}), {7, 14, 28});
  expect_near(weighed(DType::f16, 0, 0, {6, 12, 24}), {6, 9, 14});
}

// What a later token brings must not reach an earlier one, not even as 0 * infinity: alone, the earlier one wouldn't
// have met it.
TEST(Attend, KeepsWhatIsNoNumberToThoseWhoSeeIt) {
  for (const DeviceKind device : both_devices) {
    const std::vector<float> y = compute(device, weighed(DType::f32, 0.5f, 0, {7, 14, NAN}));
    EXPECT_NEAR(y[0], 7, 1e-5f) << name(device);
    EXPECT_NEAR(y[1], 35 / 3.0f, 1e-5f) << name(device);
    EXPECT_TRUE(std::isnan(y[2])) << name(device);
    const std::vector<float> sliding = compute(device, weighed(DType::f16, 0.5f, 1, {INFINITY, 14, 28}));
    EXPECT_FALSE(std::isfinite(sliding[0])) << name(device);
    EXPECT_NEAR(sliding[1], 14, 1e-5f) << name(device);
    EXPECT_NEAR(sliding[2], 28, 1e-5f) << name(device);
  }
}

TEST(Attend, ShowsQueriesThatAreNoNumber) {
  for (const DeviceKind device : both_devices)
    for (const float y : compute(device, weighed(DType::f32, NAN, 0, {7, 14, 28}))) EXPECT_TRUE(std::isnan(y));
}

TEST(Attend, AgreesOnEveryInstructionSet) {
  ThreadPool pool(1);
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    const auto cases = cases_of(Op::attend);
    for (size_t i = 0; i < cases.size(); i += 4) {
      CaseBuilder probe;
      const Tensor y = cases[i].build(probe);
      const CaseResult result = run_case(*choose_kernel(*y.node, DeviceKind::cpu).kernel, cases[i], {}, pool);
      EXPECT_EQ(result.fault, "") << cases[i].name;
    }
  }
  hwy::SetSupportedTargetsForTest(0);
}

TEST(Attend, RefusesHeadsThatDoNotDivide) {
  const std::string text = refusal_of([](CaseBuilder& b) {
    const CaseBuilder::Cache c = b.cache(DType::f16, 2, 64, 64, {{0, 4}}, true);
    return attend(b.values("q", per_token(4, 3, 64)), c.kv.keys, c.kv.values, c.mask, 1);
  });
  EXPECT_THAT(text, HasSubstr("attend: wants q [token, head, dim]"));
  EXPECT_THAT(text, HasSubstr("q f32[token<=4, 3, 64] state.0/keys f16[3, 2, 64, 64]"));
}

TEST(Attend, RefusesCachesThatAreNone) {
  EXPECT_THAT(refusal_of([](CaseBuilder& b) {  // pages of another size
                const CaseBuilder::Cache c = b.cache(DType::f16, 1, 64, 64, {{0, 4}}, true);
                return attend(b.values("q", per_token(4, 3, 64)),
                              state({StateKind::keys, 0}, DType::f16, {2, 1, 64, 32}), c.kv.values, c.mask, 1);
              }),
              HasSubstr("f16[2, 1, 64, 32]"));
  EXPECT_THAT(refusal_of([](CaseBuilder& b) {  // positions of another batch
                const CaseBuilder::Cache c = b.cache(DType::f16, 1, 64, 64, {{0, 4}}, true);
                return attend(b.values("q", per_token(5, 3, 64)), c.kv.keys, c.kv.values, c.mask, 1);
              }),
              HasSubstr("pos i32[token<=4]"));
  CaseBuilder b;
  const CaseBuilder::Cache c = b.cache(DType::bf16, 1, 64, 64, {{0, 4}}, true);
  const Tensor y = attend(b.values("q", per_token(4, 3, 64)), c.kv.keys, c.kv.values, c.mask, 1);
  for (const DeviceKind device : both_devices)
    EXPECT_THAT(choose_kernel(*y.node, device).refusal.reason, HasSubstr("the cache is bf16")) << name(device);
}

}  // namespace
}  // namespace consonant
