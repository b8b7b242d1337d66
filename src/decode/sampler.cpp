// SPDX-License-Identifier: Apache-2.0
#include "decode/sampler.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>

#include "base/error.hpp"
#include "decode/cut.hpp"
#include "decode/exponential.hpp"

namespace consonant {
namespace {

constexpr size_t lanes = 8;  // sums and maxima run in eight interleaved parts: vectorised, and in one order everywhere

// The greatest logit. Minus infinity stands for "never"; anything else that isn't finite comes from a broken run.
float greatest(std::span<const float> logits) {
  if (logits.empty()) throw_error(Exit::failed, "sampling: there are no logits");
  std::array<float, lanes> top;
  top.fill(-INFINITY);
  std::array<int, lanes> ordered;
  ordered.fill(1);
  const size_t whole = logits.size() / lanes * lanes;
  for (size_t i = 0; i < whole; i += lanes)
    for (size_t j = 0; j < lanes; ++j) {
      const float x = logits[i + j];
      top[j] = x > top[j] ? x : top[j];
      ordered[j] &= int(x < INFINITY);
    }
  for (size_t i = whole; i < logits.size(); ++i) {
    top[0] = std::max(top[0], logits[i]);
    ordered[0] &= int(logits[i] < INFINITY);
  }
  if (std::find(ordered.begin(), ordered.end(), 0) != ordered.end()) {
    size_t at = 0;
    while (logits[at] < INFINITY) ++at;
    throw_error(Exit::failed,
                "sampling: the logit of token {} of {} is {}: the model's weights or its arithmetic are broken", at,
                logits.size(), std::isnan(logits[at]) ? "NaN" : "infinite");
  }
  const float result = *std::max_element(top.begin(), top.end());
  if (result == -INFINITY) throw_error(Exit::failed, "sampling: every one of {} tokens is excluded", logits.size());
  return result;
}

double sum_of(std::span<const float> values) {
  std::array<double, lanes> sums{};
  const size_t whole = values.size() / lanes * lanes;
  for (size_t i = 0; i < whole; i += lanes)
    for (size_t j = 0; j < lanes; ++j) sums[j] += double(values[i + j]);
  for (size_t i = whole; i < values.size(); ++i) sums[0] += double(values[i]);
  double sum = 0;
  for (const double part : sums) sum += part;
  return sum;
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
}

int32_t Sampler::best(float top) const {
  return int32_t(std::find(logits_.begin(), logits_.end(), top) - logits_.begin());
}

int32_t Sampler::pick(std::span<const float> logits, std::span<const int32_t> history) {
  const float top = adjust(logits, history);
  if (greedy()) return best(top);
  filter(top);
  double left = random_.uniform() * temper();
  int32_t token = tokens_.front();
  for (size_t i = 0; i < tokens_.size(); ++i) {
    if (weights_[i] == 0) continue;
    token = tokens_[i];  // rounding can carry `left` past the last one: that one is taken then
    left -= double(weights_[i]);
    if (left < 0) break;
  }
  return token;
}

std::vector<Candidate> Sampler::distribution(std::span<const float> logits, std::span<const int32_t> history) {
  const float top = adjust(logits, history);
  if (greedy()) return {{best(top), 1.0}};
  filter(top);
  const double sum = temper();
  std::vector<Candidate> result;
  for (size_t i = 0; i < tokens_.size(); ++i)
    if (weights_[i] > 0) result.push_back({tokens_[i], double(weights_[i]) / sum});
  return result;
}

// Copies the logits with biases and penalties applied; returns the greatest.
float Sampler::adjust(std::span<const float> logits, std::span<const int32_t> history) {
  greatest(logits);  // refuses broken logits before anything can hide them
  logits_.assign(logits.begin(), logits.end());
  for (const auto& [token, bias] : sampling_.logit_bias) {
    if (token < 0 || size_t(token) >= logits_.size())
      bad_usage("logit bias for token {}, but the model's tokens go from 0 to {}", token, logits_.size() - 1);
    logits_[size_t(token)] += bias;
  }
  penalise(history);
  return greatest(logits_);
}

// Repetition (Keskar et al., 2019): a positive logit is divided, a negative one multiplied. Frequency and presence:
// logit - count * frequency - presence.
void Sampler::penalise(std::span<const int32_t> history) {
  const Sampling& s = sampling_;
  if (s.repeat_penalty == 1 && s.frequency_penalty == 0 && s.presence_penalty == 0) return;
  if (s.penalty_window >= 0 && history.size() > size_t(s.penalty_window))
    history = history.last(size_t(s.penalty_window));
  std::unordered_map<int32_t, int> counts;
  for (const int32_t token : history) ++counts[token];
  for (const auto& [token, count] : counts) {
    if (token < 0 || size_t(token) >= logits_.size())
      throw_error(Exit::failed, "sampling: token {} of the history is none of the model's {}", token, logits_.size());
    float& logit = logits_[size_t(token)];
    logit = logit > 0 ? logit / s.repeat_penalty : logit * s.repeat_penalty;
    logit -= float(count) * s.frequency_penalty + s.presence_penalty;
  }
}

template <class Predicate>
void Sampler::keep_if(Predicate predicate) {
  size_t kept = 0;
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const bool stays = predicate(i);
    tokens_[kept] = tokens_[i];
    values_[kept] = values_[i];
    if (!weights_.empty()) weights_[kept] = weights_[i];
    kept += size_t(stays);
  }
  tokens_.resize(kept);
  values_.resize(kept);
  if (!weights_.empty()) weights_.resize(kept);
}

void Sampler::filter(float top) {
  const Sampling& s = sampling_;
  weights_.clear();
  const bool some = s.top_k > 0 && size_t(s.top_k) < logits_.size();
  if (some) {
    collect_top_k(size_t(s.top_k));
  } else {
    collect();
  }
  if (s.typical == 1 && s.top_p == 1 && s.min_p == 0) return;
  weigh(top);
  if (s.typical < 1) keep_typical();
  if (s.top_p < 1) {
    // Tokens below (1 - p) / n of the mass have together less than 1 - p of it: the others reach p without them.
    const double mass = sum_of(weights_), floor = (1 - double(s.top_p)) * mass / double(tokens_.size());
    keep_if([&](size_t i) { return double(weights_[i]) >= floor; });
    keys_.resize(values_.size());
    for (size_t i = 0; i < keys_.size(); ++i) keys_[i] = -values_[i];
    const Cut cut = find_cut(keys_, weights_, s.top_p * mass);
    keep_if([&](size_t i) { return cut.keeps(keys_[i], i); });
  }
  // The best weight need not be 1: the typical stage may have dropped the token that has it.
  if (s.min_p > 0) {
    const float least = s.min_p * *std::max_element(weights_.begin(), weights_.end());
    keep_if([&](size_t i) { return weights_[i] >= least; });
  }
}

// One scan that carries only tokens above the k-th best logit so far. A later token of an equal logit ranks below.
void Sampler::collect_top_k(size_t k) {
  const size_t n = logits_.size(), room = 2 * k + 1024;
  tokens_.clear();
  values_.clear();
  float threshold = -INFINITY;
  const auto reduce = [&] {
    if (tokens_.size() <= k) return;
    keys_.resize(values_.size());
    for (size_t i = 0; i < keys_.size(); ++i) keys_[i] = -values_[i];
    const Cut cut = find_cut(keys_, {}, double(k));
    threshold = -cut.key;
    keep_if([&](size_t i) { return cut.keeps(keys_[i], i); });
  };
  for (size_t i = 0; i < n; i += lanes) {
    const size_t end = std::min(i + lanes, n);
    int above = 0;
    if (end - i == lanes) {
      for (size_t j = 0; j < lanes; ++j) above |= int(logits_[i + j] > threshold);
    } else {
      above = 1;
    }
    if (!above) continue;
    for (size_t t = i; t < end; ++t)
      if (logits_[t] > threshold) {
        tokens_.push_back(int32_t(t));
        values_.push_back(logits_[t]);
      }
    if (tokens_.size() >= room) reduce();
  }
  reduce();
}

// Every token that isn't excluded.
void Sampler::collect() {
  const size_t n = logits_.size();
  tokens_.resize(n);
  values_.resize(n);
  size_t kept = 0;
  for (size_t i = 0; i < n; ++i) {
    tokens_[kept] = int32_t(i);
    values_[kept] = logits_[i];
    kept += size_t(logits_[i] > -INFINITY);
  }
  tokens_.resize(kept);
  values_.resize(kept);
}

void Sampler::weigh(float top) {
  weights_.resize(values_.size());
  for (size_t i = 0; i < values_.size(); ++i) weights_[i] = exp_of_negative(values_[i] - top);
}

// Locally typical sampling (Meister et al., 2022): tokens whose surprise -log p is nearest to the entropy
// H = -sum p log p come first. With log p = logit - log Z, the difference (-log p) - H is sum(p logit) - logit, in
// which log Z has cancelled.
void Sampler::keep_typical() {
  const double mass = sum_of(weights_);
  double mean = 0;
  for (size_t i = 0; i < values_.size(); ++i) mean += double(weights_[i]) * double(values_[i]);
  mean /= mass;
  keys_.resize(values_.size());
  for (size_t i = 0; i < keys_.size(); ++i) keys_[i] = std::abs(float(mean - double(values_[i])));
  const Cut cut = find_cut(keys_, weights_, sampling_.typical * mass);
  keep_if([&](size_t i) { return cut.keeps(keys_[i], i); });
}

// Sets the weights to exp((logit - greatest) / temperature), and returns their sum.
double Sampler::temper() {
  const float top = *std::max_element(values_.begin(), values_.end()), temperature = sampling_.temperature;
  weights_.resize(values_.size());
  for (size_t i = 0; i < values_.size(); ++i) weights_[i] = exp_of_negative((values_[i] - top) / temperature);
  return sum_of(weights_);
}

float log_probability(std::span<const float> logits, int32_t token) {
  const float top = greatest(logits);
  if (token < 0 || size_t(token) >= logits.size())
    throw_error(Exit::failed, "log-probability of token {}, but the model has {}", token, logits.size());
  std::vector<float> weights(logits.size());
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = exp_of_negative(logits[i] - top);
  return float(double(logits[size_t(token)]) - double(top) - std::log(sum_of(weights)));
}

}  // namespace consonant
