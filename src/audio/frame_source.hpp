// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace consonant {

// Frames of a sound file at its own rate: one sample of each channel, interleaved.
class FrameSource {
 public:
  static constexpr int64_t least_rate = 1000, most_rate = 768000, most_channels = 256;

  virtual ~FrameSource() = default;

  int64_t rate() const { return rate_; }
  int64_t channels() const { return channels_; }
  int64_t frames() const { return frames_; }      // that are there; -1: unknown
  int64_t promised() const { return promised_; }  // by the header; -1: it doesn't say

  // Fills `to`, a whole number of frames; returns the frames that came: fewer than asked for only at the end.
  virtual int64_t read(std::span<float> to) = 0;

  // Passes over `frames`, by reading them where it can't seek; returns how many there were.
  virtual int64_t skip(int64_t frames);

  // At the end: why there may be less sound than there should be, empty if nothing is known to be wrong.
  virtual std::string fault() const { return {}; }

 protected:
  void set_layout(const std::string& name, int64_t rate, int64_t channels);

  int64_t frames_ = -1, promised_ = -1;

 private:
  int64_t rate_ = 0, channels_ = 0;
};

// Bad input that names the file for a rate or a channel count that no recording has.
void check_layout(const std::string& name, int64_t rate, int64_t channels);

}  // namespace consonant
