// SPDX-License-Identifier: Apache-2.0
#include "tasks/speech_joints.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"

namespace consonant {

namespace {

// -60 dB, under which nobody hears a voice; and a share of samples at full scale that is more than a few peaks.
constexpr double silent = 1e-3, clipped = 0.01;

}  // namespace

SpeechJoints::SpeechJoints(int64_t rate, Sink sink)
    : rate_(rate),
      fade_(std::max<int64_t>(1, std::llround(fade_s * static_cast<double>(rate)))),
      sink_(std::move(sink)) {}

void SpeechJoints::give(std::span<const float> samples) {
  if (samples.empty() || !wanted_) return;
  given_ += std::ssize(samples);
  if (sink_) wanted_ = sink_(samples);
}

void SpeechJoints::begin() {
  if (joined_) give(std::vector<float>(static_cast<size_t>(std::llround(pause_s * static_cast<double>(rate_)))));
  held_.clear(), faults_.clear();
  position_ = loud_ = 0;
  squares_ = 0;
}

void SpeechJoints::look_at(std::span<const float> samples) {
  for (size_t i = 0; i < samples.size(); ++i) {
    if (!std::isfinite(samples[i]))
      throw_error(Exit::failed, "sample {} of a sentence is {}: the codec's weights or its arithmetic are broken",
                  position_ + static_cast<int64_t>(i), std::isnan(samples[i]) ? "NaN" : "infinite");
    loud_ += std::fabs(samples[i]) >= 1;
    squares_ += double{samples[i]} * samples[i];
  }
}

void SpeechJoints::add(std::span<const float> samples) {
  look_at(samples);
  const size_t before = held_.size();
  held_.insert(held_.end(), samples.begin(), samples.end());
  for (size_t i = before; joined_ && i < held_.size(); ++i) {
    const int64_t at = position_ + static_cast<int64_t>(i - before);
    if (at < fade_) held_[i] *= static_cast<float>(at) / static_cast<float>(fade_);
  }
  position_ += std::ssize(samples);
  const int64_t ready = std::ssize(held_) - fade_;
  if (ready <= 0) return;
  give(std::span(held_).first(static_cast<size_t>(ready)));
  held_.erase(held_.begin(), held_.begin() + ready);
}

void SpeechJoints::end(bool last) {
  for (size_t i = 0; !last && i < held_.size(); ++i)
    held_[i] *= static_cast<float>(held_.size() - 1 - i) / static_cast<float>(fade_);
  give(held_);
  held_.clear();
  joined_ = true;
  if (position_ == 0) return;
  const auto n = static_cast<double>(position_);
  if (std::sqrt(squares_ / n) < silent) faults_.push_back("its sound is silent");
  if (static_cast<double>(loud_) > clipped * n)
    faults_.push_back(fmt::format("{:.1f}% of its samples are at full scale", 100 * static_cast<double>(loud_) / n));
}

}  // namespace consonant
