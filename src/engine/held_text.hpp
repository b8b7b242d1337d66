// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/runner.hpp"

namespace consonant {

// A sequence of a runner, and the tokens that it holds. Where the model's state is one of all positions, it can go back
// to places that were marked and to no others.
class HeldText {
 public:
  // It can go back to the last `places` that `remember` was called at. The runner's only sequence, and with
  // RunnerOptions::marks as `marks_for` has it.
  HeldText(Runner& runner, int places) : runner_(runner), sequence_(runner.open()), places_(places) {}
  // With `guesses`, the place before a guess is another one. 0 for models that can be cut anywhere.
  static int marks_for(const LanguageModel& model, int places, bool guesses);

  ~HeldText() { runner_.close(sequence_); }
  HeldText(const HeldText&) = delete;
  HeldText& operator=(const HeldText&) = delete;

  int sequence() const { return sequence_; }
  int64_t size() const { return static_cast<int64_t>(tokens_.size()); }
  std::span<const int32_t> tokens() const { return tokens_; }

  // Goes back to the longest beginning of `text`, of `most` tokens at most, that the sequence can be brought to without
  // reading; returns its length.
  int64_t keep(std::span<const int32_t> text, int64_t most);
  // Marks the present end as a place to come back to.
  void remember();

  // Gets the hidden states, if the runner has them, of the tokens from position `first` on, whenever some were read.
  using OnHidden = std::function<void(int64_t first, std::span<const float> rows)>;
  void on_hidden(OnHidden on_hidden) { on_hidden_ = std::move(on_hidden); }

  std::span<const float> step(std::span<const int32_t> tokens);
  // Reads what is left of `how.history`, and draws what follows.
  Drawn draw(const Draw& how);
  // The same with a guess, as GuessedLogits has it.
  std::vector<Drawn> draw_along(const Draw& how, size_t guessed);
  // Marks the place that `keep` goes back to when tokens read from here on turn out to be wrong.
  void mark_guess();

  // To a file and back (engine/sequence_file.hpp).
  void save(const std::string& path, const std::string& model);
  void restore(const std::string& path, const std::string& model);

 private:
  struct Mark {
    int number;
    int64_t length;
  };
  void tell() const;
  bool marks() const { return !runner_.model().mamba.empty(); }
  void mark(int number);

  Runner& runner_;
  int sequence_, places_;
  std::vector<int32_t> tokens_;
  OnHidden on_hidden_;
  std::vector<Mark> marked_;  // in order of their making; number places_ is the one before a guess
};

}  // namespace consonant
