// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "decode/random.hpp"

namespace consonant {

// The model as a search sees it: sequences with their caches, which are copied where a hypothesis branches.
class BranchingModel {
 public:
  struct Piece {
    int sequence;
    std::span<const int32_t> tokens;
  };

  virtual ~BranchingModel() = default;
  virtual int fork(int sequence) = 0;
  virtual void close(int sequence) = 0;

  // Reads the pieces, of different sequences each, in one step. Logits [pieces, vocabulary] after the last token of
  // each, valid until the next call.
  virtual std::span<const float> evaluate(std::span<const Piece> pieces) = 0;
};

struct NextToken {
  int32_t token;
  double logprob;
};

// Which tokens may follow, and how likely each is among those.
class TokenRules {
 public:
  virtual ~TokenRules() = default;

  // The `count` likeliest tokens after `generated`, the likeliest first and of equal ones the lower id; fewer if fewer
  // are allowed, but one at least.
  virtual void best(std::span<const float> logits, std::span<const int32_t> generated, int count,
                    std::vector<NextToken>& to) = 0;

  // One token for each of `randoms`, drawn at a temperature above 0; log probabilities are those at temperature 1.
  virtual void draw(std::span<const float> logits, std::span<const int32_t> generated, double temperature,
                    std::span<Random> randoms, std::vector<NextToken>& to) = 0;
};

struct SearchOptions {
  int32_t end = -1;        // the token that ends a hypothesis
  int64_t max_tokens = 0;  // of a hypothesis, without the end token; at least 1
  int width = 1;           // beams at temperature 0 (1: greedy), independent samples above
  double temperature = 0;
  uint64_t seed = 0;  // of the samples
};

struct Hypothesis {
  std::vector<int32_t> tokens;  // without the end token
  std::vector<float> logprobs;  // of each; of the end token too, if it came
  double sum = 0;               // of them
  bool ended = false;           // by the end token, not by the bound

  double mean() const { return sum / double(tokens.size() + 1); }
};

// One search for the likeliest continuation of a sequence. Beams as Whisper has them: at every step the best `width`
// continuations of all live hypotheses that don't end go on, those that end above them are finished, and the search is
// over when `width` are finished. A hypothesis' rank is the mean log probability of its tokens and the end token.
// A hypothesis with one successor keeps its sequence, so greedy search forks nothing. Samples are one hypothesis as
// long as they say the same: at low temperatures most of them do for long, and what they read is read once.
class Search {
 public:
  // `sequence` has read the prompt; it belongs to the search from now on. `model` and `rules` must outlive it.
  Search(BranchingModel& model, TokenRules& rules, int sequence, const SearchOptions& options);
  ~Search();
  Search(const Search&) = delete;
  Search& operator=(const Search&) = delete;

  void start(std::span<const float> logits);  // that follow the prompt
  bool done() const { return live_.empty(); }

  // Adds what is to be read next: a piece a live hypothesis.
  void ask(std::vector<BranchingModel::Piece>& pieces) const;
  // Their logits, in the same order.
  void take(std::span<const float> logits, size_t vocabulary);

  // The best finished hypothesis, or if there are too few, also those that reached the bound.
  Hypothesis best() const;
  int64_t steps() const { return steps_; }

 private:
  struct Live {
    Hypothesis text;
    int sequence;
    std::vector<Random> samples;  // that say this so far, at a temperature above 0
  };
  struct Successor {
    size_t parent;
    NextToken next;
    double sum;
    std::vector<Random> samples;
  };

  void advance(const std::function<std::span<const float>(size_t)>& row);
  void advance_beams(const std::function<std::span<const float>(size_t)>& row);
  void advance_samples(const std::function<std::span<const float>(size_t)>& row);
  void branch(std::vector<Successor> chosen);
  void end_at_bound();
  void close_all();

  BranchingModel& model_;
  TokenRules& rules_;
  SearchOptions options_;
  std::vector<Live> live_;
  std::vector<Hypothesis> finished_;
  std::vector<NextToken> next_;  // scratch
  int64_t steps_ = 0;
};

// Runs searches to their ends, all live hypotheses of all of them in one step each. `go_on` is asked before each step;
// if it says no, the searches stay unfinished and false is returned.
bool run_searches(BranchingModel& model, std::span<const std::unique_ptr<Search>> searches,
                  const std::function<bool()>& go_on);

}  // namespace consonant
