// SPDX-License-Identifier: Apache-2.0
#include "ops/latent_append/latent_append.hpp"

#include "ops/attend_latent/attend_latent.hpp"
#include "ops/test_support.hpp"

namespace consonant {
namespace {

using namespace testing_ops;

TEST(LatentAppend, PutsBothPartsSideBySide) {
  // Two tokens, rows of two numbers and one that turns: attention with a query of zeros is the mean of what is seen.
  for (const DType type : {DType::f32, DType::f16})
    expect_near(
        [=](CaseBuilder& b) {
          CaseBuilder::Cache c = b.cache(type, 1, 0, 3, {{0, 2}}, false);
          const Tensor rows = latent_append(c.kv, b.numbers("latent", per_token(2, 2), {1, 2, 3, 8}),
                                            b.numbers("turned", per_token(2, 1), {50}), c.mask);
          EXPECT_EQ(c.kv.values, rows);
          return attend_latent(b.numbers("q", per_token(2, 1, 2), {0}), b.numbers("r", per_token(2, 1, 1), {0}), rows,
                               c.mask, 1);
        },
        {1, 2, 2, 5});
}

TEST(LatentAppend, RefusesPartsThatMakeNoRow) {
  EXPECT_THAT(refusal_of([](CaseBuilder& b) {
                CaseBuilder::Cache c = b.cache(DType::f32, 1, 0, 80, {{0, 2}}, false);
                return latent_append(c.kv, b.values("latent", per_token(2, 64)), b.values("turned", per_token(2, 15)),
                                     c.mask);
              }),
              HasSubstr("latent_append: wants rows [page, 1, 64, n + m]"));
  EXPECT_THAT(refusal_of([](CaseBuilder& b) {
                CaseBuilder::Cache c = b.cache(DType::bf16, 1, 0, 80, {{0, 2}}, false);
                return latent_append(c.kv, b.values("latent", per_token(2, 64)), b.values("turned", per_token(2, 16)),
                                     c.mask);
              }),
              HasSubstr("a cache of f32, f16 or q8_0"));
}

}  // namespace
}  // namespace consonant
