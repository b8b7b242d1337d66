// SPDX-License-Identifier: Apache-2.0
#include "engine/voice.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.hpp"
#include "engine/model_setup.hpp"

namespace consonant {

namespace {

constexpr double least_s = 0.5;                        // of a voice, to be known by
constexpr double quiet = 1e-3, distorted_share = 0.1;  // -60 dB; samples at full scale

void check_level(std::span<const float> samples) {
  double squares = 0;
  int64_t loud = 0;
  for (const float x : samples) {
    squares += double{x} * x;
    loud += std::fabs(x) >= 0.999f;
  }
  const auto n = static_cast<double>(samples.size());
  const double level = std::sqrt(squares / n);
  if (level == 0) bad_input("the reference recording is silent: there is no voice in it");
  if (level < quiet)
    bad_input("the reference recording is far too quiet for a voice, {:.0f} dB below full scale: is it the right one?",
              -20 * std::log10(level));
  if (static_cast<double>(loud) > distorted_share * n)
    bad_input("{:.0f}% of the reference recording's samples are at full scale: it is too distorted to tell the voice",
              100 * static_cast<double>(loud) / n);
}

}  // namespace

struct VoiceReader::Speaker {
  Weights weights;
  SpeakerEncoder model;
  SpeakerRunner runner;
  Speaker(const ModelFile& file, const RunnerOptions& options)
      : weights(file), model(file, weights), runner(model, sources_of(file, weights), options) {}
};

struct VoiceReader::Encoder {
  Weights weights;
  CodecEncoder model;
  CodecEncoderRunner runner;
  Encoder(const ModelFile& file, const RunnerOptions& options)
      : weights(file), model(file, weights), runner(model, sources_of(file, weights), options) {}
};

VoiceReader::VoiceReader(const ModelFile& talker, const ModelFile& codec, RunnerOptions options)
    : talker_(talker), codec_(codec), options_(std::move(options)) {
  options_.sequences = 1;
}

ClonedVoice VoiceReader::read(std::span<const float> samples, bool codes) {
  const double seconds = static_cast<double>(samples.size()) / static_cast<double>(SpeakerEncoder::rate);
  if (seconds < least_s)
    bad_input("the reference recording has {:.2f} s; {} s are the least, and 3 to 15 s are best", seconds, least_s);
  check_level(samples);
  if (!speaker_) speaker_ = std::make_shared<Speaker>(talker_, options_);
  ClonedVoice voice{speaker_->runner.embed(samples), {}};
  if (!codes) return voice;
  if (!CodecEncoder::is_in(codec_))
    bad_input("{}: has no encoder, so what a recording says can't be taken from it; its voice alone can",
              codec_.meta->source);
  if (!encoder_) encoder_ = std::make_shared<Encoder>(codec_, options_);
  voice.codes = encoder_->runner.encode(samples);
  return voice;
}

}  // namespace consonant
