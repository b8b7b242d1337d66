// SPDX-License-Identifier: Apache-2.0
#include "audio/converted.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "audio/resample.hpp"
#include "base/error.hpp"

namespace consonant {

namespace {

constexpr int64_t chunk_frames = 4096;
constexpr int64_t endless = std::numeric_limits<int64_t>::max();
// Sound beyond -1 ... 1 is cut off there. A little of it is the ring of a filter or a codec; this much is a fault.
constexpr float far_too_loud = 4;

// Seconds in samples, rounded; `endless` if an integer can't hold it.
int64_t samples_of(double seconds, int64_t rate) {
  const double samples = std::round(seconds * static_cast<double>(rate));
  return samples < 9e18 ? static_cast<int64_t>(samples) : endless;
}

class ConvertedAudio : public AudioSource {
 public:
  ConvertedAudio(std::unique_ptr<FrameSource> frames, std::string name, const ReadSettings& settings)
      : frames_(std::move(frames)), name_(std::move(name)), resampler_(frames_->rate(), settings.rate) {
    check_times(settings);
    if (settings.duration >= 0) left_ = samples_of(settings.duration, settings.rate);
    in_.resize(static_cast<size_t>(chunk_frames * frames_->channels()));
    mono_.resize(chunk_frames);
    if (settings.offset > 0) pass_over(settings.offset);
    if (frames_->frames() >= 0) {
      const int64_t rest = std::max<int64_t>(frames_->frames() - position_, 0);
      length_ = std::min(left_, Resampler::samples_out(rest, frames_->rate(), settings.rate));
    }
  }

  int64_t read(std::span<float> to) override {
    const int64_t wanted = std::min(static_cast<int64_t>(to.size()), left_);
    int64_t done = 0;
    while (done < wanted) {
      if (out_at_ == out_.size() && !refill()) break;
      const int64_t n = std::min(wanted - done, static_cast<int64_t>(out_.size() - out_at_));
      std::copy_n(out_.begin() + static_cast<std::ptrdiff_t>(out_at_), n, to.begin() + done);
      out_at_ += static_cast<size_t>(n);
      done += n;
    }
    left_ -= left_ == endless ? 0 : done;
    return done;
  }
  int64_t length() const override { return length_; }
  const std::vector<std::string>& warnings() const override { return warnings_; }
  std::string name() const override { return name_; }

 private:
  double seconds(int64_t frames) const { return static_cast<double>(frames) / static_cast<double>(frames_->rate()); }

  void pass_over(double offset) {
    const int64_t wanted = samples_of(offset, frames_->rate());
    position_ = frames_->skip(wanted);
    if (position_ < wanted)
      warnings_.push_back(fmt::format("{}: nothing is left after {:.3f} s: the sound ends at {:.3f} s", name_, offset,
                                      seconds(position_)));
  }

  // More samples in out_; false at the end.
  bool refill() {
    out_.clear();
    out_at_ = 0;
    while (out_.empty() && !ended_) {
      const int64_t n = frames_->read(in_);
      mix(n);
      position_ += n;
      resampler_.process(std::span(mono_).first(static_cast<size_t>(n)), out_);
      if (n < chunk_frames) {
        ended_ = true;
        resampler_.finish(out_);
        say_how_it_ended();
      }
    }
    for (float& x : out_) x = std::isfinite(x) ? std::clamp(x, -1.0f, 1.0f) : 0.0f;
    return !out_.empty();
  }

  // The mean of each frame's channels.
  void mix(int64_t frames) {
    const int64_t channels = frames_->channels();
    for (int64_t i = 0; i < frames; ++i) {
      double sum = 0;
      for (int64_t c = 0; c < channels; ++c) {
        const float x = in_[static_cast<size_t>(i * channels + c)];
        if (std::isfinite(x)) {
          sum += x;
        } else {
          warn_not_finite(position_ + i);
        }
      }
      const auto mean = static_cast<float>(sum / static_cast<double>(channels));
      if (std::fabs(mean) > far_too_loud) warn_too_loud(position_ + i, mean);
      mono_[static_cast<size_t>(i)] = std::clamp(mean, -far_too_loud, far_too_loud);
    }
  }

  void warn_not_finite(int64_t frame) {
    if (std::exchange(said_not_finite_, true)) return;
    warnings_.push_back(
        fmt::format("{}: samples that are no numbers (NaN or infinite), the first at {:.3f} s: they count as 0", name_,
                    seconds(frame)));
  }
  void warn_too_loud(int64_t frame, float value) {
    if (std::exchange(said_too_loud_, true)) return;
    warnings_.push_back(
        fmt::format("{}: samples far beyond -1 ... 1, the first at {:.3f} s ({:g}): they are cut off there", name_,
                    seconds(frame), value));
  }

  void say_how_it_ended() {
    const int64_t promised = frames_->promised();
    const std::string fault = frames_->fault();
    if (promised >= 0 && position_ < promised) {
      warnings_.push_back(
          fmt::format("{}: is cut off: it ends after {:.3f} s of the {:.3f} s that its header promises{}", name_,
                      seconds(position_), seconds(promised), fault.empty() ? "" : " (" + fault + ")"));
    } else if (!fault.empty()) {
      warnings_.push_back(fmt::format("{}: reading stopped after {:.3f} s: {}", name_, seconds(position_), fault));
    }
  }

  std::unique_ptr<FrameSource> frames_;
  std::string name_;
  Resampler resampler_;
  std::vector<float> in_, mono_, out_;
  size_t out_at_ = 0;
  int64_t position_ = 0;  // frames read or passed over
  int64_t left_ = endless;
  int64_t length_ = -1;
  bool ended_ = false, said_not_finite_ = false, said_too_loud_ = false;
  std::vector<std::string> warnings_;
};

class HeldAudio : public AudioSource {
 public:
  HeldAudio(std::vector<float> samples, std::string name) : samples_(std::move(samples)), name_(std::move(name)) {
    bool all_finite = true;
    for (float& x : samples_) {
      all_finite = all_finite && std::isfinite(x);
      if (!std::isfinite(x)) x = 0;
    }
    if (!all_finite)
      warnings_.push_back(fmt::format("{}: samples that are no numbers (NaN or infinite): they count as 0", name_));
  }

  int64_t read(std::span<float> to) override {
    const size_t n = std::min(to.size(), samples_.size() - at_);
    std::copy_n(samples_.begin() + static_cast<std::ptrdiff_t>(at_), n, to.begin());
    at_ += n;
    return static_cast<int64_t>(n);
  }
  int64_t length() const override { return static_cast<int64_t>(samples_.size()); }
  const std::vector<std::string>& warnings() const override { return warnings_; }
  std::string name() const override { return name_; }

 private:
  std::vector<float> samples_;
  std::string name_;
  size_t at_ = 0;
  std::vector<std::string> warnings_;
};

}  // namespace

void check_times(const ReadSettings& settings) {
  if (!(settings.offset >= 0)) bad_usage("an offset of {} s; 0 or more expected", settings.offset);
  if (std::isnan(settings.duration)) bad_usage("a duration that is no number");
}

std::unique_ptr<AudioSource> convert_frames(std::unique_ptr<FrameSource> frames, std::string name,
                                            const ReadSettings& settings) {
  return std::make_unique<ConvertedAudio>(std::move(frames), std::move(name), settings);
}

std::unique_ptr<AudioSource> audio_of_samples(std::vector<float> samples, std::string name) {
  return std::make_unique<HeldAudio>(std::move(samples), std::move(name));
}

}  // namespace consonant
