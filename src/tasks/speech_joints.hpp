// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace consonant {

// Sentences' sounds one after the other, with a pause between: the ends at a joint fade to nothing and from it, so that
// none of them clicks; the first beginning and the last end stay as they are. What comes out doesn't depend on the
// pieces that it came in.
class SpeechJoints {
 public:
  static constexpr double pause_s = 0.2, fade_s = 0.005;

  using Sink = std::function<bool(std::span<const float>)>;  // false: no more is wanted
  SpeechJoints(int64_t rate, Sink sink);

  // Of each sentence; `last`: none follows.
  void begin();
  void add(std::span<const float> samples);
  void end(bool last);

  bool wanted() const { return wanted_; }
  int64_t samples() const { return given_; }

  // What is wrong with the sound of the sentence that ended: that it is silent, or beyond full scale. Samples that
  // aren't finite are an error at once.
  const std::vector<std::string>& faults() const { return faults_; }

 private:
  void give(std::span<const float> samples);
  void look_at(std::span<const float> samples);

  int64_t rate_, fade_;
  Sink sink_;
  bool wanted_ = true, joined_ = false;
  int64_t given_ = 0;
  std::vector<float> held_;  // the last of a sentence: they may have to fade
  int64_t position_ = 0;     // in the sentence, of what was given or is held
  int64_t loud_ = 0;
  double squares_ = 0;
  std::vector<std::string> faults_;
};

}  // namespace consonant
