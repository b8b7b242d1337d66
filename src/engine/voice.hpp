// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/codec_runner.hpp"
#include "formats/model_file.hpp"
#include "models/qwen3_tts_codec.hpp"
#include "models/qwen3_tts_speaker.hpp"

namespace consonant {

// What is known of a recorded voice: how it sounds, and if its text is known too, its frames.
struct ClonedVoice {
  std::vector<float> vector;   // [width]
  std::vector<int32_t> codes;  // [frame, codebook]
};

// What listens to recordings of voices: a talker's speaker encoder and its codec's encoder, each loaded when it is
// first needed.
class VoiceReader {
 public:
  // Both files must outlive it.
  VoiceReader(const ModelFile& talker, const ModelFile& codec, RunnerOptions options);

  // Bad input for samples, at the encoders' rate, that hold no voice: too few, silent or far too quiet, or mostly at
  // full scale; and where the codec's file has no encoder, which `codes` need.
  ClonedVoice read(std::span<const float> samples, bool codes);

 private:
  struct Speaker;
  struct Encoder;

  const ModelFile &talker_, &codec_;
  RunnerOptions options_;
  std::shared_ptr<Speaker> speaker_;
  std::shared_ptr<Encoder> encoder_;
};

}  // namespace consonant
