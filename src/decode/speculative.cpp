// SPDX-License-Identifier: Apache-2.0
#include "decode/speculative.hpp"

#include <algorithm>

namespace consonant {

Speculative::Speculative(GuessedLogits& target, Guesser& guesser, std::span<const int32_t> prompt, int64_t cached,
                         size_t most, int64_t longest)
    : target_(target),
      guesser_(guesser),
      prompt_(prompt),
      read_(static_cast<size_t>(cached)),
      most_(most),
      longest_(longest) {}

// Both read a prompt in the same parts, so that who stops between two of them doesn't wait for either.
void Speculative::read(std::span<const int32_t> tokens) {
  target_.read(tokens);
  read_ += tokens.size();
  guesser_.guess(prompt_.first(read_), 0, nothing_);
}

Drawn Speculative::draw(std::span<const int32_t> tokens, const Draw& how) {
  if (!ahead_.empty()) {
    const Drawn next = ahead_.front();
    ahead_.pop_front();
    right_ += static_cast<int64_t>(!ahead_.empty());  // this one; the last is the target's own
    return next;
  }
  // The first token isn't kept waiting for guesses about those after it.
  if (how.history.size() == prompt_.size()) return target_.draw(tokens, how);
  // The last token of a text is never read: after `longest` there is nothing to draw.
  const int64_t room = longest_ - static_cast<int64_t>(how.history.size()) - 1;
  const auto most = static_cast<size_t>(std::clamp<int64_t>(room, 0, static_cast<int64_t>(most_)));
  std::vector<int32_t> guess;
  if (most > 0) guess = guesser_.guess(how.history, most, *how.sampler);
  if (guess.empty()) return target_.draw(tokens, how);
  guessed_ += static_cast<int64_t>(guess.size());
  std::vector<int32_t> text(how.history.begin(), how.history.end());
  text.insert(text.end(), guess.begin(), guess.end());
  const std::vector<Drawn> drawn = target_.draw_along({how.sampler, text, how.log_probability}, guess.size());
  ahead_.assign(drawn.begin() + 1, drawn.end());
  right_ += static_cast<int64_t>(!ahead_.empty());
  return drawn.front();
}

}  // namespace consonant
