// SPDX-License-Identifier: Apache-2.0
#include "ops/sample/stages.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "ops/sample/cut.hpp"
#include "ops/sample/shares.hpp"

namespace consonant {

namespace {

constexpr size_t lanes = 8;  // maxima run in eight interleaved parts, which the compiler keeps in vectors

uint64_t sum_of(std::span<const uint64_t> shares) {
  uint64_t sum = 0;
  for (const uint64_t share : shares) sum += share;
  return sum;
}

void share_out(std::span<const float> weights, std::vector<uint64_t>& shares) {
  shares.resize(weights.size());
  for (size_t i = 0; i < weights.size(); ++i) shares[i] = share_of(weights[i]);
}

}  // namespace

float greatest_logit(std::span<const float> logits) {
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
  if (std::find(ordered.begin(), ordered.end(), 0) != ordered.end()) return NAN;
  return *std::max_element(top.begin(), top.end());
}

float log_probability_of(std::span<const float> logits, float greatest, int32_t token) {
  std::array<float, 512> weights;  // a loop over the exponential alone vectorises
  uint64_t sum = 0;
  for (size_t first = 0; first < logits.size(); first += weights.size()) {
    const size_t n = std::min(weights.size(), logits.size() - first);
    for (size_t i = 0; i < n; ++i) weights[i] = exp_of_negative(logits[first + i] - greatest);
    for (size_t i = 0; i < n; ++i) sum += share_of(weights[i]);
  }
  return log_share(logits[size_t(token)], greatest, sum);
}

float Stages::adjust(std::span<const float> logits, const DrawOptions& options,
                     std::span<const Adjustment> adjustments) {
  logits_.assign(logits.begin(), logits.end());
  for (const Adjustment& a : adjustments) {
    float& logit = logits_[size_t(a.token)];
    logit = adjusted_logit(logit, a.bias, a.count, options.repeat_penalty, options.frequency_penalty,
                           options.presence_penalty);
  }
  if (options.first_temperature != 1)
    for (float& logit : logits_) logit /= options.first_temperature;
  top_ = greatest_logit(logits_);
  return top_;
}

int32_t Stages::best() const { return int32_t(std::find(logits_.begin(), logits_.end(), top_) - logits_.begin()); }

template <class Predicate>
void Stages::keep_if(Predicate predicate) {
  size_t kept = 0;
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const bool stays = predicate(i);
    tokens_[kept] = tokens_[i];
    values_[kept] = values_[i];
    if (!weights_.empty()) {
      weights_[kept] = weights_[i];
      shares_[kept] = shares_[i];
    }
    kept += size_t(stays);
  }
  tokens_.resize(kept);
  values_.resize(kept);
  if (!weights_.empty()) {
    weights_.resize(kept);
    shares_.resize(kept);
  }
}

void Stages::filter(const DrawOptions& options) {
  weights_.clear();
  if (options.top_k > 0 && size_t(options.top_k) < logits_.size()) {
    collect_top_k(size_t(options.top_k));
  } else {
    collect();
  }
  if (options.typical == 1 && options.top_p == 1 && options.min_p == 0) return;
  weigh();
  if (options.typical < 1) keep_typical(options.typical);
  if (options.top_p < 1) keep_top(options.top_p);
  // The best weight need not be 1: the typical stage may have dropped the token that has it.
  if (options.min_p > 0) {
    const float least = options.min_p * *std::max_element(weights_.begin(), weights_.end());
    keep_if([&](size_t i) { return weights_[i] >= least; });
  }
}

// One scan that carries only tokens above the k-th best logit so far. A later token of an equal logit ranks below.
void Stages::collect_top_k(size_t k) {
  const size_t n = logits_.size(), room = 2 * k + 1024;
  tokens_.clear();
  values_.clear();
  float threshold = -INFINITY;
  const auto reduce = [&] {
    if (tokens_.size() <= k) return;
    keys_.resize(values_.size());
    for (size_t i = 0; i < keys_.size(); ++i) keys_[i] = -values_[i];
    const Cut cut = find_cut(keys_, {}, k);
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
void Stages::collect() {
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

void Stages::weigh() {
  weights_.resize(values_.size());
  for (size_t i = 0; i < values_.size(); ++i) weights_[i] = exp_of_negative(values_[i] - top_);
  share_out(weights_, shares_);
}

// Locally typical sampling (Meister et al., 2022): tokens whose surprise -log p is nearest to the entropy
// H = -sum p log p come first. With log p = logit - log Z and the logits counted from the greatest one, the difference
// (-log p) - H is (greatest - logit) - sum(p (greatest - logit)), in which log Z has cancelled.
void Stages::keep_typical(float typical) {
  uint64_t moment = 0;
  for (size_t i = 0; i < values_.size(); ++i) moment += moment_of(weights_[i], top_ - values_[i]);
  const uint64_t mass = sum_of(shares_);
  const double mean = mean_of(moment, mass);
  keys_.resize(values_.size());
  for (size_t i = 0; i < keys_.size(); ++i) keys_[i] = gap_of(mean, top_ - values_[i]);
  const Cut cut = find_cut(keys_, shares_, part_of(typical, mass));
  keep_if([&](size_t i) { return cut.keeps(keys_[i], i); });
}

void Stages::keep_top(float top_p) {
  const uint64_t mass = sum_of(shares_), target = part_of(top_p, mass);
  // Tokens below (mass - target) / n have together less than mass - target: the others reach the target without them.
  // Half of it, since of two logits that are almost equal the lower one may have the greater weight, by a rounding.
  const uint64_t floor = (mass - target) / tokens_.size() / 2;
  keep_if([&](size_t i) { return shares_[i] >= floor; });
  keys_.resize(values_.size());
  for (size_t i = 0; i < keys_.size(); ++i) keys_[i] = -values_[i];
  const Cut cut = find_cut(keys_, shares_, target);
  keep_if([&](size_t i) { return cut.keeps(keys_[i], i); });
}

uint64_t Stages::temper(float temperature) {
  const float top = *std::max_element(values_.begin(), values_.end());
  weights_.resize(values_.size());
  for (size_t i = 0; i < values_.size(); ++i) weights_[i] = exp_of_negative((values_[i] - top) / temperature);
  share_out(weights_, shares_);
  return sum_of(shares_);
}

int32_t Stages::draw(uint64_t sum, uint64_t number) const {
  uint64_t left = place_in(sum, number);
  size_t i = 0;
  while (left >= shares_[i]) left -= shares_[i++];
  return tokens_[i];
}

}  // namespace consonant
