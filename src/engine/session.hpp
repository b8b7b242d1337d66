// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "decode/speculative.hpp"
#include "engine/draft.hpp"
#include "engine/held_text.hpp"
#include "engine/language_engine.hpp"

namespace consonant {

// One sequence of a language engine's runner.
class LanguageSession final : public Session, private GuessedLogits {
 public:
  // Places that a conversation may go on from: the last answer may be cut out, and the question before it.
  static constexpr int places = 2;

  explicit LanguageSession(std::shared_ptr<LanguageEngine> engine);

  Generation generate(std::span<const int32_t> prompt, const GenerateOptions& options, const OnText& on_text) override;
  void cancel() noexcept override { cancelled_ = true; }
  int64_t length() const override;
  void reset() override;
  void save(const std::string& path) override;
  void restore(const std::string& path) override;

 private:
  std::span<const float> step(std::span<const int32_t> tokens) override;
  Drawn draw(std::span<const int32_t> tokens, const Draw& how) override;
  std::vector<Drawn> draw_along(const Draw& how, size_t guessed) override;
  void read(std::span<const int32_t> tokens) override;
  void end_at(std::span<const int32_t> prompt, std::span<const int32_t> drawn);

  std::shared_ptr<LanguageEngine> engine_;  // lives as long as its sessions
  HeldText held_;
  std::unique_ptr<Guesser> guesser_;  // if there is a draft
  HeadGuesser* head_ = nullptr;       // the same, if it is a head for further tokens
  int64_t stable_ = 0;                // where the prompt that is being read is to be remembered
  std::atomic<bool> cancelled_{false};
};

}  // namespace consonant
