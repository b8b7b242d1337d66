// SPDX-License-Identifier: Apache-2.0
#include "decode/beam.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/error.hpp"

namespace consonant {
namespace {

constexpr int32_t end = 0;
constexpr size_t vocabulary = 7;

using Tokens = std::vector<int32_t>;

// Log probabilities that depend on the whole text and a salt, as a random model's.
std::vector<float> scores(uint64_t salt, const Tokens& text) {
  uint64_t hash = salt;
  for (const int32_t t : text) hash = hash * 1000003 + uint64_t(t) + 1;
  Random random(hash);
  std::vector<float> x(vocabulary);
  for (float& value : x) value = float(3 * random.uniform());
  double sum = 0;
  for (const float value : x) sum += std::exp(double(value));
  for (float& value : x) value -= float(std::log(sum));
  return x;
}

// Sequences that know their text; their logits are log probabilities.
class FakeModel : public BranchingModel {
 public:
  ~FakeModel() override { EXPECT_TRUE(texts_.empty()) << texts_.size() << " sequences were left open"; }
  int open(uint64_t salt) {
    texts_[++last_] = {salt, {}};
    return last_;
  }
  std::vector<float> logits(int sequence) const {
    return scores(texts_.at(sequence).first, texts_.at(sequence).second);
  }
  int fork(int sequence) override {
    ++forks;
    texts_[++last_] = texts_.at(sequence);
    return last_;
  }
  void close(int sequence) override { EXPECT_EQ(texts_.erase(sequence), 1u); }
  std::span<const float> evaluate(std::span<const Piece> pieces) override {
    ++steps;
    rows += int(pieces.size());
    rows_.clear();
    for (const Piece& p : pieces) {
      auto& text = texts_.at(p.sequence).second;
      text.insert(text.end(), p.tokens.begin(), p.tokens.end());
      const auto row = logits(p.sequence);
      rows_.insert(rows_.end(), row.begin(), row.end());
    }
    if (steps == fail_at) throw_error(Exit::failed, "as the test wants");
    return rows_;
  }
  int forks = 0, steps = 0, rows = 0, fail_at = -1;

 private:
  std::map<int, std::pair<uint64_t, Tokens>> texts_;
  int last_ = 0;
  std::vector<float> rows_;
};

struct AllAllowed : TokenRules {
  void best(std::span<const float> logits, std::span<const int32_t>, int count, std::vector<NextToken>& to) override {
    to.clear();
    for (size_t i = 0; i < logits.size(); ++i) to.push_back({int32_t(i), double(logits[i])});
    std::stable_sort(to.begin(), to.end(), [](auto& a, auto& b) { return a.logprob > b.logprob; });
    to.resize(std::min(to.size(), size_t(count)));
  }
  void draw(std::span<const float> logits, std::span<const int32_t>, double temperature, std::span<Random> randoms,
            std::vector<NextToken>& to) override {
    to.clear();
    for (Random& random : randoms) to.push_back(drawn(logits, temperature, random));
  }
  static NextToken drawn(std::span<const float> logits, double temperature, Random& random) {
    double left = 0;
    for (const float x : logits) left += std::exp(double(x) / temperature);
    left *= random.uniform();
    for (size_t i = 0; i + 1 < logits.size(); ++i) {
      if ((left -= std::exp(double(logits[i]) / temperature)) < 0) return {int32_t(i), double(logits[i])};
    }
    return {int32_t(vocabulary) - 1, double(logits.back())};
  }
};

struct NeverEnds : AllAllowed {
  void best(std::span<const float> logits, std::span<const int32_t>, int count, std::vector<NextToken>& to) override {
    to.clear();
    for (int i = 1; i <= count; ++i) to.push_back({i, double(logits[size_t(i)])});
  }
  void draw(std::span<const float> logits, std::span<const int32_t>, double, std::span<Random> randoms,
            std::vector<NextToken>& to) override {
    to.assign(randoms.size(), {1, double(logits[1])});
  }
};

// The reference's beam search: texts in maps, no sequences.
std::pair<Tokens, double> reference(uint64_t salt, int width, int64_t bound) {
  std::map<Tokens, double> live = {{{}, 0.0}}, finished;
  for (int64_t length = 0; length < bound && finished.size() < size_t(width); ++length) {
    std::vector<std::pair<double, Tokens>> all;
    for (const auto& [text, sum] : live) {
      const auto row = scores(salt, text);
      for (size_t t = 0; t < vocabulary; ++t) {
        Tokens longer = text;
        longer.push_back(int32_t(t));
        all.push_back({sum + double(row[t]), longer});
      }
    }
    std::stable_sort(all.begin(), all.end(), [](auto& a, auto& b) { return a.first > b.first; });
    live.clear();
    for (const auto& [sum, text] : all) {
      if (text.back() == end) {
        if (finished.size() < size_t(width)) finished[text] = sum;
      } else {
        live[text] = sum;
        if (live.size() == size_t(width)) break;
      }
    }
  }
  std::vector<std::pair<double, Tokens>> rest;
  for (const auto& [text, sum] : live) rest.push_back({sum, text});
  std::stable_sort(rest.begin(), rest.end(), [](auto& a, auto& b) { return a.first > b.first; });
  for (const auto& [sum, text] : rest) {
    if (finished.size() >= size_t(width)) break;
    Tokens ended = text;
    ended.push_back(end);
    finished[ended] = sum;
  }
  std::pair<Tokens, double> best{{}, -1e300};
  for (const auto& [text, sum] : finished) {
    if (sum / double(text.size()) > best.second)
      best = {Tokens(text.begin(), text.end() - 1), sum / double(text.size())};
  }
  return best;
}

std::unique_ptr<Search> begin(FakeModel& model, TokenRules& rules, uint64_t salt, const SearchOptions& options) {
  const int sequence = model.open(salt);
  auto search = std::make_unique<Search>(model, rules, sequence, options);
  search->start(model.logits(sequence));
  return search;
}

bool always() { return true; }

TEST(Beam, FindsWhatTheReferenceFinds) {
  rc::check([] {
    const auto salt = *rc::gen::arbitrary<uint64_t>();
    const int width = *rc::gen::inRange(1, 7);
    const auto bound = *rc::gen::inRange<int64_t>(1, 9);
    FakeModel model;
    AllAllowed rules;
    std::vector<std::unique_ptr<Search>> one;
    one.push_back(begin(model, rules, salt, {.end = end, .max_tokens = bound, .width = width}));
    RC_ASSERT(run_searches(model, one, always));
    const Hypothesis best = one[0]->best();
    const auto wanted = reference(salt, width, bound);
    RC_ASSERT(best.tokens == wanted.first);
    RC_ASSERT(std::fabs(best.mean() - wanted.second) < 1e-6);
    double sum = 0;
    for (const float p : best.logprobs) sum += double(p);
    RC_ASSERT(std::fabs(sum - best.sum) < 1e-5);
    RC_ASSERT(best.logprobs.size() == best.tokens.size() + (best.ended ? 1 : 0));
    if (width == 1) RC_ASSERT(model.forks == 0);
    RC_ASSERT(model.steps <= bound);
  });
}

TEST(Beam, SearchesTogetherFindWhatEachFindsAlone) {
  rc::check([] {
    const auto salt = *rc::gen::arbitrary<uint64_t>();
    const double temperature = *rc::gen::element(0.0, 0.7);
    const SearchOptions options{.end = end, .max_tokens = 12, .width = 4, .temperature = temperature, .seed = salt};
    FakeModel model;
    AllAllowed rules;
    std::vector<std::unique_ptr<Search>> together;
    for (uint64_t i = 0; i < 5; ++i) together.push_back(begin(model, rules, salt + i, options));
    RC_ASSERT(run_searches(model, together, always));
    const int steps = model.steps;
    int most = 0;
    for (uint64_t i = 0; i < 5; ++i) {
      model.steps = 0;
      std::vector<std::unique_ptr<Search>> alone;
      alone.push_back(begin(model, rules, salt + i, options));
      RC_ASSERT(run_searches(model, alone, always));
      RC_ASSERT(alone[0]->best().tokens == together[i]->best().tokens);
      RC_ASSERT(alone[0]->best().sum == together[i]->best().sum);
      most = std::max(most, model.steps);
    }
    RC_ASSERT(steps == most);  // windows of a batch share their steps
  });
}

TEST(Beam, SamplesDependOnTheSeed) {
  FakeModel model;
  AllAllowed rules;
  std::map<Tokens, int> texts;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    std::vector<std::unique_ptr<Search>> one;
    one.push_back(begin(model, rules, 3, {.end = end, .max_tokens = 6, .temperature = 1, .seed = seed}));
    ASSERT_TRUE(run_searches(model, one, always));
    ++texts[one[0]->best().tokens];
  }
  EXPECT_GT(texts.size(), 10u);
  EXPECT_EQ(model.forks, 0);
}

// Samples share what they say alike, and each says what it says alone.
TEST(Beam, SamplesPartOnlyWhereTheyDiffer) {
  rc::check([] {
    const auto salt = *rc::gen::arbitrary<uint64_t>();
    const double temperature = *rc::gen::element(0.05, 0.5, 1.0);
    const int width = 5;
    FakeModel model;
    AllAllowed rules;
    std::vector<std::unique_ptr<Search>> search;
    search.push_back(begin(model, rules, salt,
                           {.end = end, .max_tokens = 12, .width = width, .temperature = temperature, .seed = salt}));
    RC_ASSERT(run_searches(model, search, always));

    Hypothesis best;
    std::set<Tokens> prefixes;  // that the model has to read
    for (int i = 0; i < width; ++i) {
      Random random(salt + uint64_t(i) * 0x9e3779b97f4a7c15u);
      Hypothesis text;
      while (!text.ended && text.tokens.size() < 12) {
        if (!text.tokens.empty()) prefixes.insert(text.tokens);
        const NextToken next = AllAllowed::drawn(scores(salt, text.tokens), temperature, random);
        text.sum += next.logprob;
        text.ended = next.token == end;
        if (!text.ended) text.tokens.push_back(next.token);
      }
      if (i == 0 || text.mean() > best.mean()) best = text;
    }
    RC_ASSERT(search[0]->best().tokens == best.tokens);
    RC_ASSERT(std::fabs(search[0]->best().mean() - best.mean()) < 1e-9);
    RC_ASSERT(model.rows == int(prefixes.size()));
    RC_ASSERT(model.forks < width);
  });
}

TEST(Beam, StoppedOrFailedSearchesLeaveNoSequence) {
  NeverEnds rules;
  for (const double temperature : {0.0, 0.5}) {
    const SearchOptions options{.end = end, .max_tokens = 30, .width = 3, .temperature = temperature};
    FakeModel model;  // its destructor counts
    {
      std::vector<std::unique_ptr<Search>> one;
      one.push_back(begin(model, rules, 11, options));
      int left = 2;
      EXPECT_FALSE(run_searches(model, one, [&] { return left-- > 0; }));
    }
    std::vector<std::unique_ptr<Search>> one;
    one.push_back(begin(model, rules, 11, options));
    model.fail_at = model.steps + 2;
    EXPECT_THROW(run_searches(model, one, always), Error);
  }
}

}  // namespace
}  // namespace consonant
