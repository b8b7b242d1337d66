// SPDX-License-Identifier: Apache-2.0
#include "ops/attend_latent/attend_latent.hpp"

#include <cmath>

#include "ops/latent_append/latent_append.hpp"
#include "ops/test_support.hpp"

namespace consonant {
namespace {

using namespace testing_ops;

// Three tokens, rows of one number and one that turns. A query of `q` and 0.5 scores 0, ln 2 and ln 4 by the second
// numbers alone.
Build weighed(float q, int64_t window, std::vector<float> values) {
  return [=](CaseBuilder& b) {
    CaseBuilder::Cache c = b.cache(DType::f32, 1, 0, 2, {{0, 3}}, false);
    const Tensor rows =
        latent_append(c.kv, b.numbers("latent", per_token(3, 1), values),
                      b.numbers("turned", per_token(3, 1), {0, std::log(2.0f), std::log(4.0f)}), c.mask);
    return attend_latent(b.numbers("q", per_token(3, 1, 1), {q}), b.numbers("r", per_token(3, 1, 1), {0.5f}), rows,
                         c.mask.sliding(window), 2);
  };
}

TEST(AttendLatent, WeighsRowsByAllTheirNumbersAndMixesTheFirst) {
  expect_near(weighed(0, 0, {7, 14, 28}), {7, (7 + 28) / 3.0f, (7 + 28 + 112) / 7.0f});
  expect_near(weighed(0, 2, {7, 14, 28}), {7, (7 + 28) / 3.0f, (28 + 112) / 6.0f});
  // The first numbers count for the scores as well: here they undo what the second ones make of it.
  const float x = std::log(2.0f);
  expect_near(weighed(-0.5f, 0, {0, x, 2 * x}), {0, x / 2, x});
}

// What a later token brings must not reach an earlier one, not even as 0 * infinity.
TEST(AttendLatent, KeepsWhatIsNoNumberToThoseWhoSeeIt) {
  for (const DeviceKind device : both_devices) {
    const std::vector<float> y = compute(device, weighed(0, 0, {7, 14, NAN}));
    EXPECT_NEAR(y[0], 7, 1e-5f) << name(device);
    EXPECT_NEAR(y[1], 35 / 3.0f, 1e-5f) << name(device);
    EXPECT_TRUE(std::isnan(y[2])) << name(device);
  }
}

TEST(AttendLatent, AgreesOnEveryInstructionSet) { expect_on_every_instruction_set(weighed(0, 0, {1})); }

TEST(AttendLatent, RefusesRowsOfAnotherSize) {
  EXPECT_THAT(refusal_of([](CaseBuilder& b) {
                const CaseBuilder::Cache c = b.cache(DType::f16, 1, 0, 80, {{0, 4}}, true);
                return attend_latent(b.values("q", per_token(4, 3, 64)), b.values("r", per_token(4, 3, 32)),
                                     c.kv.values, c.mask, 1);
              }),
              HasSubstr("attend_latent: wants q [token, head, n], turned [token, head, m]"));
  CaseBuilder b;
  const CaseBuilder::Cache c = b.cache(DType::bf16, 1, 0, 80, {{0, 4}}, true);
  const Tensor y =
      attend_latent(b.values("q", per_token(4, 3, 64)), b.values("r", per_token(4, 3, 16)), c.kv.values, c.mask, 1);
  for (const DeviceKind device : both_devices)
    EXPECT_THAT(choose_kernel(*y.node, device).refusal.reason, HasSubstr("the cache is bf16")) << name(device);
}

}  // namespace
}  // namespace consonant
