// SPDX-License-Identifier: Apache-2.0
#include "decode/sampler.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.hpp"
#include "ops/sample/sample.hpp"

namespace consonant {
namespace {

// The greatest logit. Minus infinity stands for "never"; anything else that isn't finite comes from a broken run.
float checked_greatest(float greatest, std::span<const float> logits) {
  if (logits.empty()) throw_error(Exit::failed, "sampling: there are no logits");
  if (int64_t(logits.size()) > most_drawn_from)
    throw_error(Exit::failed, "sampling: {} logits, but at most {} are sampled from", logits.size(), most_drawn_from);
  if (std::isnan(greatest)) {
    size_t at = 0;
    while (at < logits.size() && logits[at] < INFINITY) ++at;
    if (at == logits.size()) throw_error(Exit::failed, "sampling: the penalties make a logit infinite");
    throw_error(Exit::failed,
                "sampling: the logit of token {} of {} is {}: the model's weights or its arithmetic are broken", at,
                logits.size(), std::isnan(logits[at]) ? "NaN" : "infinite");
  }
  if (greatest == -INFINITY) throw_error(Exit::failed, "sampling: every one of {} tokens is excluded", logits.size());
  return greatest;
}

void check(bool good, const char* option, double value, const char* wanted) {
  if (!good) bad_usage("{} is {}, but has to be {}", option, value, wanted);
}

}  // namespace

Sampler::Sampler(Sampling sampling) : sampling_(std::move(sampling)), random_(sampling_.seed) {
  const Sampling& s = sampling_;
  check(s.temperature >= 0 && std::isfinite(s.temperature), "temperature", s.temperature, "0 or greater");
  check(s.top_k >= 0, "top-k", s.top_k, "0 (off) or greater");
  check(s.top_p > 0 && s.top_p <= 1, "top-p", s.top_p, "above 0 and at most 1 (off)");
  check(s.min_p >= 0 && s.min_p <= 1, "min-p", s.min_p, "from 0 (off) to 1");
  check(s.typical > 0 && s.typical <= 1, "typical", s.typical, "above 0 and at most 1 (off)");
  check(s.repeat_penalty > 0 && std::isfinite(s.repeat_penalty), "repeat penalty", s.repeat_penalty,
        "above 0 (1: off)");
  check(std::isfinite(s.frequency_penalty), "frequency penalty", s.frequency_penalty, "finite (0: off)");
  check(std::isfinite(s.presence_penalty), "presence penalty", s.presence_penalty, "finite (0: off)");
  check(s.penalty_window >= -1, "penalty window", s.penalty_window, "-1 (all), 0 (off) or greater");
  for (const auto& [token, bias] : s.logit_bias)
    if (!(bias < INFINITY)) bad_usage("logit bias of token {} is {}, but has to be a number or -inf", token, bias);
  options_ = {s.temperature,      s.top_k, s.top_p, s.min_p, s.typical, s.repeat_penalty, s.frequency_penalty,
              s.presence_penalty, 1};
  if (s.temper_first && s.temperature > 0) options_.first_temperature = s.temperature, options_.temperature = 1;
  std::map<int32_t, float> biases;
  for (const auto& [token, bias] : s.logit_bias) biases[token] += bias;
  for (const auto& [token, bias] : biases) biases_.push_back({token, 0, bias});
}

void Sampler::draw_as(const Sampler& other) {
  sampling_ = other.sampling_, options_ = other.options_, biases_ = other.biases_, random_ = other.random_;
}

std::vector<Adjustment> Sampler::adjustments(std::span<const int32_t> history, size_t vocabulary) const {
  for (const Adjustment& a : biases_)
    if (a.token < 0 || size_t(a.token) >= vocabulary)
      bad_usage("logit bias for token {}, but the model's tokens go from 0 to {}", a.token, vocabulary - 1);
  const Sampling& s = sampling_;
  if (s.repeat_penalty == 1 && s.frequency_penalty == 0 && s.presence_penalty == 0) return biases_;
  if (s.penalty_window >= 0 && history.size() > size_t(s.penalty_window))
    history = history.last(size_t(s.penalty_window));
  std::map<int32_t, Adjustment> all;
  for (const Adjustment& a : biases_) all[a.token] = a;
  for (const int32_t token : history) {
    if (token < 0 || size_t(token) >= vocabulary)
      throw_error(Exit::failed, "sampling: token {} of the history is none of the model's {}", token, vocabulary);
    Adjustment& a = all.try_emplace(token, Adjustment{token, 0, 0}).first->second;
    ++a.count;
  }
  std::vector<Adjustment> result;
  for (const auto& [token, adjustment] : all) result.push_back(adjustment);
  return result;
}

void Sampler::adjust(std::span<const float> logits, std::span<const int32_t> history) {
  checked_greatest(greatest_logit(logits), logits);  // refuses broken logits before anything can hide them
  checked_greatest(stages_.adjust(logits, options_, adjustments(history, logits.size())), logits);
}

int32_t Sampler::pick(std::span<const float> logits, std::span<const int32_t> history) {
  adjust(logits, history);
  if (greedy()) return stages_.best();
  stages_.filter(options_);
  const uint64_t sum = stages_.temper(options_.temperature);
  return stages_.draw(sum, next_number());
}

std::vector<Candidate> Sampler::distribution(std::span<const float> logits, std::span<const int32_t> history) {
  adjust(logits, history);
  if (greedy()) return {{stages_.best(), 1.0}};
  stages_.filter(options_);
  stages_.temper(options_.temperature);
  double sum = 0;
  for (const float weight : stages_.weights()) sum += double(weight);
  std::vector<Candidate> result;
  for (size_t i = 0; i < stages_.tokens().size(); ++i)
    if (stages_.weights()[i] > 0) result.push_back({stages_.tokens()[i], double(stages_.weights()[i]) / sum});
  return result;
}

float log_probability(std::span<const float> logits, int32_t token) {
  const float top = checked_greatest(greatest_logit(logits), logits);
  if (token < 0 || size_t(token) >= logits.size())
    throw_error(Exit::failed, "log-probability of token {}, but the model has {}", token, logits.size());
  return log_probability_of(logits, top, token);
}

Drawn draw_from(std::span<const float> logits, const Draw& draw) {
  const int32_t token = draw.sampler->pick(logits, draw.history);
  return {token, draw.log_probability ? log_probability(logits, token) : NAN};
}

}  // namespace consonant
