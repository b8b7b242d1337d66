// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace consonant {

// How loud sound is, in frames of 10 ms: what tells silence, hum and hiss from speech where the model may not.
class SoundLevels {
 public:
  static constexpr int64_t frame = 160;  // samples

  SoundLevels() = default;
  // `loudest`: of all frames of the recording so far, in dB; it is moved on.
  SoundLevels(std::span<const float> samples, double& loudest);

  int64_t frames() const { return static_cast<int64_t>(decibels_.size()); }
  double operator[](int64_t i) const { return decibels_[static_cast<size_t>(i)]; }

  // Frames before the first that may be heard: not below -80 dB of full scale, and not 50 dB below the loudest frame
  // while being under -60 dB. All of them if there is none.
  int64_t silent_frames() const;
  bool silent() const { return silent_frames() == frames(); }

  // The level doesn't change: in parts of 100 ms it keeps within 3 dB, as a tone's, a hum's or a hiss's does and as
  // speech's does not. At least half a second of it.
  bool steady() const;

  // A frame is as loud as that.
  bool reaches(double db) const;
  // Some of it is much louder than the rest, as speech is.
  bool stands_out() const { return threshold_.has_value(); }

  // The cut in [from, to) frames in the middle of the quietest 200 ms; of equally quiet ones the last.
  int64_t quietest(int64_t from, int64_t to) const;

  // The loud parts stand out against the others: then the first loud frame (of three in a row) in [from, to), and one
  // past the last.
  std::optional<int64_t> first_loud(int64_t from, int64_t to) const;
  std::optional<int64_t> last_loud(int64_t from, int64_t to) const;
  int64_t loud_frames(int64_t from, int64_t to) const;  // 0 if nothing stands out
  // The middle of the first pause of 300 ms after `loud` loud frames; all frames if there is none.
  int64_t pause_after(int64_t loud) const;

 private:
  bool loud(int64_t i) const;

  std::vector<float> decibels_;
  double audible_ = -80;
  std::optional<double> threshold_;  // of loud
};

}  // namespace consonant
