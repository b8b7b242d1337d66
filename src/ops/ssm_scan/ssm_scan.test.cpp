// SPDX-License-Identifier: Apache-2.0
#include "ops/ssm_scan/ssm_scan.hpp"

#include "ops/test_support.hpp"

namespace consonant {
namespace {

using namespace testing_ops;

SsmInputs inputs(CaseBuilder& b, int64_t tokens, int64_t heads, int64_t dim, int64_t groups, int64_t states) {
  return {b.values("x", per_token(tokens, heads, dim)),
          b.values("dt", per_token(tokens, heads)),
          b.values("b", per_token(tokens, groups, states)),
          b.values("c", per_token(tokens, groups, states)),
          b.vector("dt_bias", heads),
          b.vector("a", heads),
          b.vector("d", heads)};
}

// softplus(0.5413249) = 1, so with a = ln 2 / -1 each token halves the state. It begins at zero, whatever the slot
// holds.
TEST(SsmScan, DecaysAndAdds) {
  expect_near(
      [](CaseBuilder& b) {
        Tensor state = b.slot_state(StateKind::ssm, {{0, 3}}, {1, 2, 1});
        SsmInputs in;
        in.x = b.numbers("x", per_token(3, 1, 1), {8, 0, 2});
        in.dt = b.numbers("dt", per_token(3, 1), {0.2413249f});
        in.b = b.numbers("b", per_token(3, 1, 2), {1, 10, 1, 1, 3, 1});
        in.c = b.numbers("c", per_token(3, 1, 2), {1, 0, 1, 1, 0, 1});
        in.dt_bias = b.numbers("dt_bias", {1}, {0.3f});
        in.a = b.numbers("a", {1}, {-0.6931472f});
        in.d = b.numbers("d", {1}, {100});
        return ssm_scan(state, in, b.slots({{0, 3}}));
      },
      {8 + 800, 4 + 40, 20 + 2 + 200}, 1e-5f);
}

TEST(SsmScan, AgreesOnEveryInstructionSet) {
  expect_on_every_instruction_set([](CaseBuilder& b) {
    Tensor state = b.slot_state(StateKind::ssm, {{0, 1}}, {1, 1, 1});
    return ssm_scan(state, inputs(b, 1, 1, 1, 1, 1), b.slots({{0, 1}}));
  });
}

TEST(SsmScan, RefusesWhatDoesNotFit) {
  const auto with = [](int64_t heads, int64_t dim, int64_t groups, int64_t states, int64_t tokens = 2) {
    return refusal_of([=](CaseBuilder& b) {
      Tensor state = b.slot_state(StateKind::ssm, {{0, 2}}, {4, states < 300 ? 6 : states, 5});
      return ssm_scan(state, inputs(b, tokens, heads, dim, groups, states), b.slots({{0, 2}}));
    });
  };
  EXPECT_EQ(with(4, 5, 2, 6), "no error");
  for (const std::string& text : {with(3, 5, 1, 6), with(4, 4, 2, 6), with(4, 5, 3, 6), with(4, 5, 2, 7)})
    EXPECT_THAT(text, HasSubstr("ssm_scan: wants state [slot, head, state, dim]"));
  EXPECT_THAT(with(4, 5, 2, 300), HasSubstr("ssm_scan: wants 1 to 256 states"));
  EXPECT_THAT(with(4, 5, 2, 6, 3), HasSubstr("pos [token], seq [token] and slots [sequence] in i32"));
}

}  // namespace
}  // namespace consonant
