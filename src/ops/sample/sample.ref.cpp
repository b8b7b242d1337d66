// SPDX-License-Identifier: Apache-2.0
#include "ops/sample/row.hpp"
#include "ops/sample/shares.hpp"

namespace consonant {

namespace {

struct Candidate {
  int32_t token;
  float value;
  float weight = 0, key = 0;
};

// The best, by key and then by token, whose shares (or number, if `counts`) reach the target; in order of token.
void keep_best(std::vector<Candidate>& all, bool counts, uint64_t target) {
  std::stable_sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) { return a.key < b.key; });
  uint64_t sum = 0;
  size_t kept = 0;
  while (kept < all.size() && sum < target) {
    sum += counts ? 1 : share_of(all[kept].weight);
    ++kept;
  }
  all.resize(kept);
  std::sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) { return a.token < b.token; });
}

uint64_t mass_of(const std::vector<Candidate>& all) {
  uint64_t mass = 0;
  for (const Candidate& c : all) mass += share_of(c.weight);
  return mass;
}

void filter(std::vector<Candidate>& all, const DrawOptions& options, size_t n, float top) {
  for (Candidate& c : all) c.key = -c.value, c.weight = exp_of_negative(c.value - top);
  if (options.top_k > 0 && static_cast<size_t>(options.top_k) < n)
    keep_best(all, true, static_cast<uint64_t>(options.top_k));
  if (options.typical < 1) {
    uint64_t moment = 0;
    for (const Candidate& c : all) moment += moment_of(c.weight, top - c.value);
    const double mean = mean_of(moment, mass_of(all));
    for (Candidate& c : all) c.key = gap_of(mean, top - c.value);
    keep_best(all, false, part_of(options.typical, mass_of(all)));
    for (Candidate& c : all) c.key = -c.value;
  }
  if (options.top_p < 1) keep_best(all, false, part_of(options.top_p, mass_of(all)));
  if (options.min_p > 0) {
    float best = 0;
    for (const Candidate& c : all) best = std::max(best, c.weight);
    std::erase_if(all, [&](const Candidate& c) { return c.weight < options.min_p * best; });
  }
}

int32_t draw(std::vector<Candidate>& all, float temperature, uint64_t number) {
  float top = -INFINITY;
  for (const Candidate& c : all) top = std::max(top, c.value);
  for (Candidate& c : all) c.weight = exp_of_negative((c.value - top) / temperature);
  const uint64_t place = place_in(mass_of(all), number);
  uint64_t sum = 0;
  for (const Candidate& c : all)
    if ((sum += share_of(c.weight)) > place) return c.token;
  return all.back().token;
}

void run(const Args& args, int64_t, std::byte*) {
  for (int64_t r = 0; r < args.in[0].rows(); ++r) {
    const SampleRow row = sample_row(args, r);
    std::vector<float> logits(row.logits.begin(), row.logits.end());
    const DrawOptions& o = row.options;
    for (const Adjustment& a : row.adjustments) {
      float& logit = logits[static_cast<size_t>(a.token)];
      logit = adjusted_logit(logit, a.bias, a.count, o.repeat_penalty, o.frequency_penalty, o.presence_penalty);
    }
    for (float& logit : logits) logit /= o.first_temperature;
    std::vector<Candidate> all;
    bool broken = false;
    for (size_t i = 0; i < logits.size(); ++i) {
      if (!(logits[i] < INFINITY)) broken = true;
      if (logits[i] > -INFINITY) all.push_back({static_cast<int32_t>(i), logits[i]});
    }
    if (broken || all.empty()) {
      give(args, r, broken ? broken_logits : all_excluded, NAN);
      continue;
    }
    const Candidate best = *std::max_element(all.begin(), all.end(),
                                             [](const Candidate& a, const Candidate& b) { return a.value < b.value; });
    int32_t token = best.token;
    if (o.temperature > 0) {
      filter(all, o, logits.size(), best.value);
      token = draw(all, o.temperature, row.number);
    }
    const float top = *std::max_element(row.logits.begin(), row.logits.end());
    double sum = 0;
    for (const float logit : row.logits) sum += std::exp(double{logit} - top);
    give(args, r, token, static_cast<float>(double{row.logits[static_cast<size_t>(token)]} - top - std::log(sum)));
  }
}

}  // namespace

extern const Kernel sample_ref = {DeviceKind::reference, Op::sample, wants_sample, whole, run};

}  // namespace consonant
