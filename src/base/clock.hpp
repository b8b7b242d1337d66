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
  static Deadline after(double seconds) {
    constexpr double century = 3e9;  // the clock counts nanoseconds in 64 bits: more than about 290 years would wrap
    Deadline d;
    d.at_ = Clock::now() +
            std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(std::min(seconds, century)));
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
