// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "audio/audio_source.hpp"

namespace consonant {

// A window that moves forward over a source, and the samples beside it that its features look at. Nothing else is kept,
// so a recording of hours costs what one window does.
class SoundWindow {
 public:
  SoundWindow(AudioSource& source, int64_t window, int64_t margin)
      : source_(source), window_(window), margin_(margin) {}

  // Moves the window's start to sample `at`, which is not before the last one; returns how many samples of the
  // recording lie in it: fewer than the window holds only at the end.
  int64_t move(int64_t at);

  // Those samples.
  std::span<const float> inside() const;

  // [margin + window + margin]: before the recording begins its reflection (x[-i] = x[i]), after `length` samples of
  // the window zeros if `cut`, else the recording as it goes on, and zeros after its end. Valid until the next call.
  std::span<const float> samples(int64_t length, bool cut);

  bool ended() const { return ended_; }    // the source has no more than what was read
  int64_t read() const { return total_; }  // samples so far

 private:
  void fill(int64_t until);

  AudioSource& source_;
  int64_t window_, margin_;
  int64_t at_ = 0, first_ = 0, total_ = 0;  // start of the window, of what is held; end of it
  bool ended_ = false;
  std::vector<float> held_, out_;
};

}  // namespace consonant
