// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "ops/cases.hpp"
#include "ops/sample/sample.hpp"

namespace consonant {

namespace {

struct Options {
  float temperature = 1, top_p = 1, min_p = 0, typical = 1, repeat = 1, frequency = 0, presence = 0;
  int32_t top_k = 0;
  float first_temperature = 1;
};

constexpr float inf = std::numeric_limits<float>::infinity();

// Rows of one setting, or of several by turns. Numbers of the draws are any.
std::pair<Tensor, Tensor> draw(CaseBuilder& b, const Tensor& logits, const std::vector<Options>& rows, int64_t slots) {
  const Shape& shape = logits.shape();
  std::vector<float> numbers;
  std::vector<int32_t> integers;
  std::mt19937 random(9);
  for (int i = 0; i < 64; ++i) {
    const Options& o = rows[static_cast<size_t>(i) % rows.size()];
    numbers.insert(numbers.end(), {o.temperature, o.top_p, o.min_p, o.typical, o.repeat, o.frequency, o.presence,
                                   o.first_temperature});
    integers.insert(integers.end(), {o.top_k, static_cast<int32_t>(random() >> 11), static_cast<int32_t>(random())});
  }
  // Slots of different tokens, the last one past the vocabulary, some empty.
  std::vector<int32_t> adjusted;
  for (int64_t s = 0; s < slots; ++s)
    adjusted.insert(adjusted.end(), {static_cast<int32_t>(s % 5 == 4 ? -1 : s * 3), static_cast<int32_t>(s % 4)});
  const auto like = [&](int64_t n) { return Shape({shape[0], n}, shape.axis()); };
  return sample(logits, b.numbers("numbers", like(SampleNumbers::count), numbers),
                b.integers("integers", like(SampleIntegers::count), integers),
                b.integers("adjusted", Shape({shape[0], slots, SampleAdjustment::count}, shape.axis()), adjusted),
                b.numbers("bias", like(slots), {0, 1.5f, -2, 0, -inf, 0.25f}));
}

}  // namespace

std::vector<OpCase> sample_cases() {
  std::vector<OpCase> cases;
  const std::vector<std::pair<std::string, Options>> settings = {
      {"greedy", {.temperature = 0}},
      {"temperature", {.temperature = 0.8f}},
      {"top-k", {.top_k = 7}},
      {"top-p", {.top_p = 0.8f}},
      {"min-p", {.min_p = 0.1f}},
      {"typical", {.typical = 0.6f}},
      {"penalties", {.repeat = 1.3f, .frequency = 0.2f, .presence = 0.1f}},
      {"greedy after penalties", {.temperature = 0, .repeat = 1.3f, .frequency = 0.2f, .presence = 0.1f}},
      {"temperature first", {.top_p = 0.8f, .top_k = 20, .first_temperature = 0.7f}},
      {"all of them",
       {.temperature = 1.3f,
        .top_p = 0.9f,
        .min_p = 0.02f,
        .typical = 0.9f,
        .repeat = 1.1f,
        .frequency = 0.1f,
        .presence = 0.1f,
        .top_k = 40,
        .first_temperature = 0.9f}}};
  std::vector<Options> mixed;
  for (const auto& [name, options] : settings) mixed.push_back(options);
  const auto add = [&](const std::string& name, int64_t rows, int64_t n, const std::vector<Options>& options) {
    cases.push_back(
        {fmt::format("{} [{}, {}]", name, rows, n),
         [=](CaseBuilder& b) { return draw(b, b.values("logits", per_token(rows, n), 3), options, 1 + n / 9).first; },
         n});
  };
  for (const auto& [name, options] : settings) add(name, 5, 301, {options});
  for (int64_t n : {1, 2, 33, 1025, 5000}) add("mixed", 9, n, mixed);
  add("mixed", 3, 66001, {mixed[0], mixed[9], mixed[3]});
  add("mixed", 0, 100, mixed);
  const auto of = [&](const std::string& name, const std::vector<float>& numbers) {
    cases.push_back(
        {name, [=](CaseBuilder& b) { return draw(b, b.numbers("logits", per_token(9, 700), numbers), mixed, 3).first; },
         700});
  };
  of("few values", {1, 0, 2, 2, -1});
  of("all equal", {-3});
  of("minus infinity here and there", {1, -inf, 2.5f, -inf, 0, -3});
  of("nothing but minus infinity", {-inf});
  of("large magnitudes", {3e38f, -3e38f, 1e20f, 1});
  of("a NaN", {1, 2, std::numeric_limits<float>::quiet_NaN(), 3, 4});
  of("infinity", {1, 2, inf, 3, 4});
  return cases;
}

}  // namespace consonant
