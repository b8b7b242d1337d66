// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/clock.hpp"

namespace consonant {

// One line of stderr that is written over, on a terminal only and not with -q.
class Progress {
 public:
  Progress();
  explicit Progress(bool visible) : visible_(visible) {}
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Cut to the terminal's width; at most ten times a second, unless `now`.
  void show(std::string_view line, bool now = false);
  void clear();  // before anything else is written to the terminal
  bool visible() const { return visible_; }

 private:
  bool visible_ = false, shown_ = false;
  Clock::time_point last_{};
};

std::string clock_text(double seconds);  // 0:07, 12:34, 1:02:03

}  // namespace consonant
