// SPDX-License-Identifier: Apache-2.0
#include "tasks/whisper_rules.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <limits>
#include <map>

#include "base/error.hpp"
#include "tasks/fake_window_model.hpp"

namespace consonant {
namespace {

using testing::HasSubstr;

constexpr double none = -std::numeric_limits<double>::infinity();

// The rules as their definition reads, one mask after the other over all logits.
std::vector<double> reference(const WhisperVocabulary& v, const std::vector<float>& logits,
                              const std::vector<int32_t>& text, bool timestamps) {
  std::vector<double> x(logits.begin(), logits.end());
  const auto n = static_cast<int32_t>(x.size());
  const auto hide = [&](int32_t from, int32_t to) {
    for (int32_t i = from; i < to; ++i) x[size_t(i)] = none;
  };
  for (const int32_t id : v.suppress) hide(id, id + 1);
  hide(v.end + 1, v.first_timestamp);
  if (text.empty()) {
    for (const int32_t id : v.suppress_at_begin) hide(id, id + 1);
  }
  const int32_t zero = v.first_timestamp;
  if (!timestamps) {
    hide(zero, n);
  } else if (text.empty()) {
    hide(0, zero);
    hide(zero + 51, n);
  } else {
    const bool last = text.back() >= zero, before = text.size() < 2 || text[text.size() - 2] >= zero;
    if (last && before) hide(zero, n);
    if (last && !before) hide(0, v.end);
    int32_t seen = -1;
    for (const int32_t id : text) seen = id >= zero ? id : seen;
    if (seen >= 0) hide(zero, last && !before ? seen : seen + 1);
  }
  const auto log_sum = [&](int32_t from, int32_t to) {
    double top = none, sum = 0;
    for (int32_t i = from; i < to; ++i) top = std::max(top, x[size_t(i)]);
    if (top == none) return none;
    for (int32_t i = from; i < to; ++i) sum += std::exp(x[size_t(i)] - top);
    return top + std::log(sum);
  };
  if (timestamps) {
    double best = none;
    for (int32_t i = 0; i < zero; ++i) best = std::max(best, x[size_t(i)]);
    if (log_sum(zero, n) > best) hide(0, zero);
  }
  const double all = log_sum(0, n);
  for (double& value : x) value -= all;
  return x;
}

// Texts as a decoder that keeps the rules may have written them.
std::vector<int32_t> a_text(const WhisperVocabulary& v) {
  std::vector<int32_t> text;
  const auto stamps = static_cast<int>(v.size) - v.first_timestamp;
  int32_t at = 0;
  const int length = *rc::gen::inRange(0, 12);
  for (int i = 0; i < length; ++i) {
    if (*rc::gen::inRange(0, 3) == 0 && at < stamps) {
      at += *rc::gen::inRange(0, stamps - at);
      text.push_back(v.first_timestamp + at);
    } else {
      text.push_back(*rc::gen::inRange(0, v.end));
    }
  }
  return text;
}

TEST(WhisperRules, ReferenceRulesOnAnyLogits) {
  const WhisperVocabulary v = fake_vocabulary();
  rc::check([&] {
    std::vector<float> logits(size_t(v.size));
    Random random(*rc::gen::arbitrary<uint64_t>());
    const double spread = *rc::gen::element(1.0, 8.0, 60.0), lift = *rc::gen::element(-20.0, -4.0, 0.0);
    for (size_t i = 0; i < logits.size(); ++i) {
      logits[i] = float(spread * (random.uniform() - 0.5) + (int32_t(i) >= v.first_timestamp ? lift : 0));
    }
    const bool timestamps = *rc::gen::arbitrary<bool>();
    const std::vector<int32_t> text = a_text(v);
    const auto wanted = reference(v, logits, text, timestamps);
    WhisperRules rules(v, timestamps);
    std::vector<NextToken> got;
    rules.best(logits, text, 6, got);
    std::vector<NextToken> ranked;
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (wanted[i] > none) ranked.push_back({int32_t(i), wanted[i]});
    }
    std::stable_sort(ranked.begin(), ranked.end(), [](auto& a, auto& b) { return a.logprob > b.logprob; });
    ranked.resize(std::min<size_t>(ranked.size(), 6));
    RC_ASSERT(got.size() == ranked.size());
    for (size_t i = 0; i < got.size(); ++i) {
      RC_ASSERT(got[i].token == ranked[i].token);
      RC_ASSERT(std::fabs(got[i].logprob - ranked[i].logprob) < 1e-5);
    }
    std::vector<Random> randoms = {random, Random(1), random};
    rules.draw(logits, text, 0.4, randoms, got);
    RC_ASSERT(got.size() == 3u);
    for (const NextToken& drawn : got) RC_ASSERT(std::fabs(drawn.logprob - wanted[size_t(drawn.token)]) < 1e-5);
    RC_ASSERT(got[0].token == got[2].token);
  });
}

TEST(WhisperRules, DrawsInProportion) {
  const WhisperVocabulary v = fake_vocabulary();
  WhisperRules rules(v, false);
  std::vector<float> logits(size_t(v.size), -200.0f);
  logits['a'] = 0, logits['b'] = 1, logits['z'] = 2;
  Random random(7);
  std::map<int32_t, int> counts;
  const int draws = 20000;
  const std::vector<int32_t> text = {'x'};
  std::vector<NextToken> drawn;
  for (int i = 0; i < draws; ++i) {
    rules.draw(logits, text, 0.5, {&random, 1}, drawn);
    ++counts[drawn[0].token];
  }
  const double all = 1 + std::exp(2.0) + std::exp(4.0);
  EXPECT_EQ(counts.size(), 3u);
  EXPECT_NEAR(counts['a'], draws / all, 80);
  EXPECT_NEAR(counts['b'], draws * std::exp(2.0) / all, 200);
  EXPECT_NEAR(counts['z'], draws * std::exp(4.0) / all, 200);
}

TEST(WhisperRules, FirstTimestampIsAtMostOneSecond) {
  const WhisperVocabulary v = fake_vocabulary();
  WhisperRules rules(v, true);
  std::vector<float> logits(size_t(v.size), 0.0f);
  logits[size_t(v.first_timestamp) + 51] = 50;
  logits[size_t(v.first_timestamp) + 50] = 5;
  std::vector<NextToken> best;
  rules.best(logits, {}, 100, best);
  EXPECT_EQ(best.size(), 51u);
  EXPECT_EQ(best[0].token, v.first_timestamp + 50);
}

TEST(WhisperRules, NumbersThatAreNoneAreRefused) {
  const WhisperVocabulary v = fake_vocabulary();
  WhisperRules rules(v, false);
  std::vector<NextToken> best;
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (const size_t at : {size_t(3), size_t('x'), size_t(v.end)}) {
      std::vector<float> logits(size_t(v.size), 0.0f);
      logits[at] = bad;
      try {
        rules.best(logits, std::vector<int32_t>{'a'}, 1, best);
        FAIL() << "took " << bad << " at " << at;
      } catch (const Error& error) {
        EXPECT_EQ(error.exit(), Exit::failed);
        EXPECT_THAT(error.what(), HasSubstr("not numbers"));
      }
    }
  }
  EXPECT_THROW(rules.best(std::vector<float>(10), {}, 1, best), Error);
  EXPECT_THROW(rules.best(std::vector<float>(size_t(v.size), float(none)), {}, 1, best), Error);
}

}  // namespace
}  // namespace consonant
