// SPDX-License-Identifier: Apache-2.0
// The op `sample` picks what the sampler picks, on the processor and by the reference; devices are compared with these.
#include <gtest/gtest.h>

#include <cmath>

#include "decode/sampler.hpp"
#include "ops/kernel.hpp"
#include "ops/sample/sample.hpp"

namespace consonant {
namespace {

struct Picked {
  int32_t token = -9;
  float log_probability = 0;
};

Picked run(DeviceKind device, std::vector<float> logits, const Sampler& sampler, uint64_t number,
           std::vector<Adjustment> adjustments) {
  adjustments.resize(adjustments.size() + 2, {-1, 3, 7.0f});  // empty slots
  const DrawOptions& o = sampler.options();
  std::vector<float> numbers = {
      o.temperature,      o.top_p, o.min_p, o.typical, o.repeat_penalty, o.frequency_penalty, o.presence_penalty,
      o.first_temperature};
  std::vector<int32_t> integers = {o.top_k, int32_t(number >> 32), int32_t(uint32_t(number))}, slots;
  std::vector<float> bias;
  for (const Adjustment& a : adjustments) {
    slots.insert(slots.end(), {a.token, a.count});
    bias.push_back(a.bias);
  }
  const int64_t n = int64_t(logits.size()), s = int64_t(bias.size());
  const auto [token, log_probability] =
      sample(input("logits", DType::f32, {1, n}), input("numbers", DType::f32, {1, SampleNumbers::count}),
             input("integers", DType::i32, {1, SampleIntegers::count}),
             input("adjusted", DType::i32, {1, s, SampleAdjustment::count}), input("bias", DType::f32, {1, s}));
  const auto view = [](auto& data, DType type, const Shape& shape) {
    return View{reinterpret_cast<std::byte*>(&data[0]), type, shape, dense(type, shape).strides, Layout::plain};
  };
  Picked picked[1];
  const View in[] = {view(logits, DType::f32, {1, n}), view(numbers, DType::f32, {1, SampleNumbers::count}),
                     view(integers, DType::i32, {1, SampleIntegers::count}), view(slots, DType::i32, {1, s, 2}),
                     view(bias, DType::f32, {1, s})};
  View out[] = {view(picked, DType::i32, {1}), view(picked, DType::f32, {1})};
  out[1].data += offsetof(Picked, log_probability);
  const Choice choice = choose_kernel(*token.node, device);
  EXPECT_TRUE(choice.kernel) << choice.refusal.reason;
  choice.kernel->run({token.node.get(), in, out}, 0, nullptr);
  return picked[0];
}

std::vector<float> any_logits(Random& random) {
  const auto below = [&](double n) { return random.uniform() * n; };
  std::vector<float> logits(1 + size_t(below(2) < 1 ? below(40) : below(3000)));
  const double levels = below(2) < 1 ? 1e6 : 1 + below(40), width = below(2) < 1 ? 20 : 4;  // few levels: many ties
  for (float& x : logits) x = float(std::floor(below(levels)) * width / levels - width / 2);
  if (below(4) < 1) logits[size_t(below(double(logits.size())))] = -INFINITY;
  if (below(8) < 1) logits[size_t(below(double(logits.size())))] = -1e30f;
  if (below(8) < 1) logits[size_t(below(double(logits.size())))] = 1e30f;
  if (logits.size() == 1) logits[0] = 2;
  return logits;
}

Sampling any_sampling(Random& random, size_t vocabulary) {
  const auto below = [&](double n) { return random.uniform() * n; };
  const auto sometimes = [&](auto off, double value) { return below(2) < 1 ? off : decltype(off)(value); };
  Sampling s;
  s.temperature = sometimes(1.0f, below(8) < 1 ? 0 : 0.05 + below(3));
  s.top_k = sometimes(0, below(2) < 1 ? 1 + below(50) : below(3000));
  s.top_p = sometimes(1.0f, 0.01 + below(0.99));
  s.min_p = sometimes(0.0f, below(1) * below(1));
  s.typical = sometimes(1.0f, 0.01 + below(0.99));
  s.repeat_penalty = sometimes(1.0f, 0.5 + below(1.5));
  s.frequency_penalty = sometimes(0.0f, below(1) - 0.3);
  s.presence_penalty = sometimes(0.0f, below(1) - 0.3);
  s.temper_first = below(2) < 1;
  for (int i = int(below(4)); i > 0; --i)
    s.logit_bias.push_back(
        {int32_t(below(double(vocabulary))), below(4) < 1 && vocabulary > 8 ? -INFINITY : float(below(6) - 3)});
  s.seed = random.next();
  return s;
}

TEST(SampleOp, PicksWhatTheSamplerPicks) {
  Random random(11);
  int drawn = 0;
  for (int i = 0; i < 4000; ++i) {
    const std::vector<float> logits = any_logits(random);
    const Sampling sampling = any_sampling(random, logits.size());
    std::vector<int32_t> history;
    for (int t = int(random.uniform() * 100); t > 0; --t)
      history.push_back(int32_t(random.uniform() * double(logits.size())));
    Sampler sampler(sampling), same(sampling);
    const int32_t token = sampler.pick(logits, history);
    const float log_probability = consonant::log_probability(logits, token);
    const std::vector<Adjustment> adjustments = same.adjustments(history, logits.size());
    const uint64_t number = same.next_number();
    const Picked cpu = run(DeviceKind::cpu, logits, same, number, adjustments);
    ASSERT_EQ(cpu.token, token) << "case " << i;
    ASSERT_EQ(cpu.log_probability, log_probability) << "case " << i;
    ASSERT_EQ(run(DeviceKind::reference, logits, same, number, adjustments).token, token) << "case " << i;
    drawn += sampling.temperature > 0;
  }
  EXPECT_GT(drawn, 3000);
}

TEST(SampleOp, NamesWhatCannotBeDrawnFrom) {
  const Sampler sampler({.temperature = 1});
  for (const DeviceKind device : {DeviceKind::cpu, DeviceKind::reference}) {
    EXPECT_EQ(run(device, {1, NAN, 2}, sampler, 5, {}).token, broken_logits);
    EXPECT_EQ(run(device, {1, INFINITY, 2}, sampler, 5, {}).token, broken_logits);
    EXPECT_EQ(run(device, {-INFINITY, -INFINITY}, sampler, 5, {}).token, all_excluded);
    EXPECT_EQ(run(device, {4, -INFINITY}, sampler, 5, {{0, 0, -INFINITY}}).token, all_excluded);
    EXPECT_TRUE(std::isnan(run(device, {1, NAN, 2}, sampler, 5, {}).log_probability));
  }
}

}  // namespace
}  // namespace consonant
