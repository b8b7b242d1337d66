// SPDX-License-Identifier: Apache-2.0
#include "tasks/sound_window.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace consonant {

// Reads until the samples before `until` are held, or the source ends.
void SoundWindow::fill(int64_t until) {
  constexpr int64_t block = 1 << 16;
  while (!ended_ && total_ < until) {
    const int64_t wanted = std::min(block, until - total_);
    const size_t before = held_.size();
    held_.resize(before + static_cast<size_t>(wanted));
    const int64_t got = source_.read(std::span(held_).subspan(before));
    if (got < 0 || got > wanted) {
      throw_error(Exit::failed, "{}: {} samples were read where {} were wanted", source_.name(), got, wanted);
    }
    held_.resize(before + static_cast<size_t>(got));
    total_ += got;
    ended_ = got < wanted;
    // Far jumps leave behind what they pass.
    const int64_t keep = std::max<int64_t>(0, at_ - margin_);
    if (first_ < keep) {
      const int64_t drop = std::min(keep, total_) - first_;
      held_.erase(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(drop));
      first_ += drop;
    }
  }
}

int64_t SoundWindow::move(int64_t at) {
  if (at < at_) throw_error(Exit::failed, "a window over sound moved back, from sample {} to {}", at_, at);
  at_ = at;
  const int64_t keep = std::min(std::max<int64_t>(0, at_ - margin_), total_);
  held_.erase(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(keep - first_));
  first_ = keep;
  fill(at_ + window_ + margin_);
  return std::clamp<int64_t>(total_ - at_, 0, window_);
}

std::span<const float> SoundWindow::inside() const {
  const int64_t begin = std::min(at_, total_), end = std::min(at_ + window_, total_);
  return std::span(held_).subspan(static_cast<size_t>(begin - first_), static_cast<size_t>(end - begin));
}

std::span<const float> SoundWindow::samples(int64_t length, bool cut) {
  out_.assign(static_cast<size_t>(window_ + 2 * margin_), 0.0f);
  const int64_t from = at_ - margin_;  // of the recording, at the front of what is returned
  const int64_t begin = std::max(from, first_);
  const int64_t end = std::min(cut ? at_ + length : at_ + window_ + margin_, total_);
  if (begin < end) {
    std::copy(held_.begin() + static_cast<std::ptrdiff_t>(begin - first_),
              held_.begin() + static_cast<std::ptrdiff_t>(end - first_),
              out_.begin() + static_cast<std::ptrdiff_t>(begin - from));
  }
  for (int64_t i = 1; i <= -from && i < total_; ++i) {  // x[-i]
    out_[static_cast<size_t>(-from - i)] = held_[static_cast<size_t>(i - first_)];
  }
  return out_;
}

}  // namespace consonant
