// SPDX-License-Identifier: Apache-2.0
#include "decode/beam.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace consonant {

Search::Search(BranchingModel& model, TokenRules& rules, int sequence, const SearchOptions& options)
    : model_(model), rules_(rules), options_(options) {
  live_.push_back({{}, sequence, {}});
  if (options.width >= 1 && options.max_tokens >= 1) return;
  close_all();
  bad_usage("a search of {} hypotheses of up to {} tokens; wanted 1 or more of each", options.width,
            options.max_tokens);
}

Search::~Search() { close_all(); }

void Search::close_all() {
  for (const Live& one : live_) {
    if (one.sequence >= 0) model_.close(one.sequence);
  }
  live_.clear();
}

void Search::start(std::span<const float> logits) {
  if (options_.temperature > 0) {
    // Each sample has its own random numbers, so that it doesn't depend on what becomes of the others.
    for (int i = 0; i < options_.width; ++i)
      live_[0].samples.push_back(Random(options_.seed + uint64_t(i) * 0x9e3779b97f4a7c15u));
  }
  advance([&](size_t) { return logits; });
}

void Search::ask(std::vector<BranchingModel::Piece>& pieces) const {
  for (const Live& one : live_) pieces.push_back({one.sequence, std::span(&one.text.tokens.back(), 1)});
}

void Search::take(std::span<const float> logits, size_t vocabulary) {
  advance([&](size_t i) { return logits.subspan(i * vocabulary, vocabulary); });
}

void Search::advance(const std::function<std::span<const float>(size_t)>& row) {
  ++steps_;
  if (options_.temperature > 0) {
    advance_samples(row);
  } else {
    advance_beams(row);
  }
  end_at_bound();
}

namespace {

Hypothesis extended(Hypothesis text, const NextToken& next, bool ends) {
  text.logprobs.push_back(float(next.logprob));
  text.sum += next.logprob;
  if (ends) {
    text.ended = true;
  } else {
    text.tokens.push_back(next.token);
  }
  return text;
}

}  // namespace

void Search::advance_samples(const std::function<std::span<const float>(size_t)>& row) {
  std::vector<Successor> chosen;
  for (size_t i = 0; i < live_.size(); ++i) {
    Live& one = live_[i];
    rules_.draw(row(i), one.text.tokens, options_.temperature, one.samples, next_);
    const size_t first = chosen.size();
    bool ends = false;
    for (size_t s = 0; s < next_.size(); ++s) {
      const NextToken& next = next_[s];
      if (next.token == options_.end) {
        if (!ends) finished_.push_back(extended(one.text, next, true));
        ends = true;
        continue;
      }
      const auto same = std::find_if(chosen.begin() + std::ptrdiff_t(first), chosen.end(),
                                     [&](const Successor& other) { return other.next.token == next.token; });
      if (same != chosen.end()) {
        same->samples.push_back(one.samples[s]);
      } else {
        chosen.push_back({i, next, one.text.sum + next.logprob, {one.samples[s]}});
      }
    }
  }
  branch(std::move(chosen));
}

void Search::advance_beams(const std::function<std::span<const float>(size_t)>& row) {
  const auto width = size_t(options_.width);
  std::vector<Successor> all;
  for (size_t i = 0; i < live_.size(); ++i) {
    // One more than there are beams, since one of them may be the end. Greedy takes the first whatever it is.
    rules_.best(row(i), live_[i].text.tokens, width == 1 ? 1 : options_.width + 1, next_);
    for (const NextToken& next : next_) all.push_back({i, next, live_[i].text.sum + next.logprob, {}});
  }
  std::stable_sort(all.begin(), all.end(), [](const Successor& a, const Successor& b) { return a.sum > b.sum; });
  std::vector<Successor> chosen;
  for (const Successor& s : all) {
    if (s.next.token != options_.end) {
      chosen.push_back(s);
      if (chosen.size() == width) break;
    } else if (finished_.size() < width) {
      finished_.push_back(extended(live_[s.parent].text, s.next, true));
    }
  }
  if (finished_.size() >= width) {
    close_all();
  } else {
    branch(std::move(chosen));
  }
}

// The last successor of a hypothesis goes on in its sequence, those before it get copies. Sequences without a successor
// are closed first, so that copies can take their place.
void Search::branch(std::vector<Successor> chosen) {
  std::vector<int> taken(live_.size(), 0);
  for (const Successor& s : chosen) ++taken[s.parent];
  for (size_t i = 0; i < live_.size(); ++i) {
    if (taken[i] == 0) model_.close(std::exchange(live_[i].sequence, -1));
  }
  std::vector<Live> next;
  next.reserve(chosen.size());
  try {
    for (Successor& s : chosen) {
      Live& parent = live_[s.parent];
      const int sequence = --taken[s.parent] > 0 ? model_.fork(parent.sequence) : std::exchange(parent.sequence, -1);
      next.push_back({extended(parent.text, s.next, false), sequence, std::move(s.samples)});
    }
  } catch (...) {
    for (const Live& one : next) model_.close(one.sequence);
    throw;
  }
  live_ = std::move(next);
}

// Hypotheses that hold as many tokens as they may; all live ones are of one length.
void Search::end_at_bound() {
  if (live_.empty() || int64_t(live_[0].text.tokens.size()) < options_.max_tokens) return;
  std::stable_sort(live_.begin(), live_.end(), [](const Live& a, const Live& b) { return a.text.sum > b.text.sum; });
  for (Live& one : live_) {
    if (finished_.size() < size_t(options_.width)) finished_.push_back(std::move(one.text));
  }
  close_all();
}

Hypothesis Search::best() const {
  const auto lower = [](const Hypothesis& a, const Hypothesis& b) { return a.mean() < b.mean(); };
  const auto found = std::max_element(finished_.begin(), finished_.end(), lower);
  if (found == finished_.end()) throw_error(Exit::failed, "a search was asked for its result before it had one");
  return *found;
}

bool run_searches(BranchingModel& model, std::span<const std::unique_ptr<Search>> searches,
                  const std::function<bool()>& go_on) {
  std::vector<BranchingModel::Piece> pieces;
  std::vector<size_t> rows(searches.size());
  for (;;) {
    pieces.clear();
    for (size_t i = 0; i < searches.size(); ++i) {
      const size_t before = pieces.size();
      searches[i]->ask(pieces);
      rows[i] = pieces.size() - before;
    }
    if (pieces.empty()) return true;
    if (!go_on()) return false;
    const auto logits = model.evaluate(pieces);
    const size_t vocabulary = logits.size() / pieces.size();
    size_t at = 0;
    for (size_t i = 0; i < searches.size(); ++i) {
      if (rows[i] > 0) searches[i]->take(logits.subspan(at * vocabulary, rows[i] * vocabulary), vocabulary);
      at += rows[i];
    }
  }
}

}  // namespace consonant
