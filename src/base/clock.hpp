// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <limits>

namespace consonant {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// A point in time after which work must not go on. The default never passes.
class Deadline {
 public:
  Deadline() = default;
  // What is too far away for the clock to count, thirty years and more, is as good as thirty years.
  static Deadline after(double seconds) {
    Deadline d;
    const std::chrono::duration<double> wait(std::min(seconds, 1e9));
    d.at_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(wait);
    d.set_ = true;
    return d;
  }

  bool is_set() const { return set_; }
  bool passed() const { return set_ && Clock::now() >= at_; }
  double left() const {
    return set_ ? std::chrono::duration<double>(at_ - Clock::now()).count() : std::numeric_limits<double>::infinity();
  }

 private:
  Clock::time_point at_{};
  bool set_ = false;
};

}  // namespace consonant
