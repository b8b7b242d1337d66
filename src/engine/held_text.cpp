// SPDX-License-Identifier: Apache-2.0
#include "engine/held_text.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "engine/sequence_file.hpp"

namespace consonant {

int HeldText::marks_for(const LanguageModel& model, int places, bool guesses) {
  return model.mamba.empty() ? 0 : places + (guesses ? 1 : 0);
}

int64_t HeldText::keep(std::span<const int32_t> text, int64_t most) {
  const auto differ = std::mismatch(tokens_.begin(), tokens_.end(), text.begin(), text.end());
  const int64_t same = std::min<int64_t>(differ.first - tokens_.begin(), most);
  std::erase_if(marked_, [&](const Mark& m) { return m.length > same; });
  const Mark* latest = nullptr;
  for (const Mark& m : marked_)
    if (!latest || m.length > latest->length) latest = &m;
  int64_t kept = runner_.keepable(sequence_, same);
  if (kept < same && latest) {
    kept = latest->length;
    runner_.go_back(sequence_, latest->number, kept);
  } else {
    runner_.truncate(sequence_, kept);
  }
  tokens_.resize(static_cast<size_t>(kept));
  return kept;
}

void HeldText::mark(int number) {
  std::erase_if(marked_, [&](const Mark& m) { return m.number == number; });
  runner_.mark(sequence_, number);
  marked_.push_back({number, size()});
}

void HeldText::remember() {
  const auto here = [&](const Mark& m) { return m.number < places_ && m.length == size(); };
  if (!marks() || tokens_.empty() || std::any_of(marked_.begin(), marked_.end(), here)) return;
  // The number that isn't taken, or else that of the mark made first.
  int number = 0;
  const auto taken = [&](int n) {
    return std::any_of(marked_.begin(), marked_.end(), [&](const Mark& m) { return m.number == n; });
  };
  while (number < places_ && taken(number)) ++number;
  if (number == places_)
    number = std::find_if(marked_.begin(), marked_.end(), [&](const Mark& m) { return m.number < places_; })->number;
  mark(number);
}

void HeldText::mark_guess() {
  if (marks()) mark(places_);
}

// Before the tokens count as held.
void HeldText::tell() const {
  if (on_hidden_) on_hidden_(size(), runner_.hidden());
}

std::span<const float> HeldText::step(std::span<const int32_t> tokens) {
  const Piece piece{sequence_, tokens, false};
  const auto logits = runner_.evaluate({&piece, 1});
  tell();
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  return logits;
}

Drawn HeldText::draw(const Draw& how) {
  const std::span<const int32_t> tokens = how.history.subspan(tokens_.size());
  const Piece piece{sequence_, tokens, false};
  const Drawn drawn = runner_.evaluate_and_draw({&piece, 1}, {&how, 1}).front();
  tell();
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  return drawn;
}

std::vector<Drawn> HeldText::draw_along(const Draw& how, size_t guessed) {
  const std::span<const int32_t> text = how.history, known = text.first(text.size() - guessed);
  // What a wrong guess made the state forget is read again with the next guess, as long as it is little.
  constexpr int64_t little = 8;
  const int64_t left = static_cast<int64_t>(known.size()) - size();
  if (left > little) step(known.subspan(tokens_.size(), static_cast<size_t>(left) - 1));
  const bool stands = std::any_of(marked_.begin(), marked_.end(),
                                  [&](const Mark& m) { return m.number == places_ && m.length == size(); });
  if (!stands) mark_guess();
  const std::vector<Drawn> drawn = runner_.evaluate_and_draw_along(sequence_, how, guessed);
  tell();
  tokens_.assign(text.begin(), text.end());
  keep(text, static_cast<int64_t>(known.size() + drawn.size()) - 1);
  return drawn;
}

void HeldText::save(const std::string& path, const std::string& model) {
  // A step that failed leaves positions that no token is known of.
  if (runner_.length(sequence_) != size())
    throw_error(Exit::failed, "the sequence's last step failed, so it can't be saved");
  save_sequence(path, runner_, sequence_, tokens_, model);
}

void HeldText::restore(const std::string& path, const std::string& model) {
  tokens_ = restore_sequence(path, runner_, sequence_, model);
  marked_.clear();
}

}  // namespace consonant
