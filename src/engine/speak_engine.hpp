// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "consonant/speak.hpp"
#include "engine/codec_runner.hpp"
#include "engine/tts_runner.hpp"
#include "engine/voice.hpp"
#include "formats/model_file.hpp"
#include "models/qwen3_tts.hpp"
#include "tasks/sentence_cuts.hpp"
#include "tasks/speech_joints.hpp"
#include "tasks/speech_prompt.hpp"
#include "text/tokenizer.hpp"

namespace consonant {

// The Synthesizer of a Qwen3-TTS model.
class SpeakEngine final : public Synthesizer {
 public:
  // On an open device, whatever `options.device` says; `passed_over` as ModelInfo has it.
  SpeakEngine(const std::string& path, const std::string& codec, const EngineOptions& options, const Target& target,
              std::vector<std::string> passed_over = {});

  const ModelInfo& info() const override { return info_; }
  int64_t rate() const override { return codec_->rate; }
  std::vector<std::string> speakers() const override;
  std::vector<std::string> languages() const override;
  bool clones() const override { return vocabulary().kind == TtsVocabulary::Kind::base; }
  bool designs() const override { return vocabulary().kind == TtsVocabulary::Kind::voice_design; }
  SpeakResult speak(const SpeakOptions& options, const SpeakCallbacks& callbacks) override;
  void cancel() noexcept override { cancelled_ = true; }

  TtsRunner& runner() { return *runner_; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }

 private:
  // What all sentences of a call share.
  struct Manner {
    std::vector<int32_t> instruction, reference_text;
    ClonedVoice voice;
    SpeechRequest request;  // all but the text
  };

  const TtsVocabulary& vocabulary() const { return model_->vocabulary(); }
  void load_codec(const std::string& path, const std::string& codec, const EngineOptions& options);
  Manner manner_of(const SpeakOptions& options);

  ModelFile file_, codec_file_;
  std::optional<Weights> weights_, codec_weights_;
  std::optional<Qwen3Tts> model_;
  std::optional<CodecDecoder> codec_;
  std::optional<Tokenizer> tokenizer_;
  std::unique_ptr<TtsRunner> runner_;
  std::unique_ptr<CodecDecoderRunner> decoder_;
  std::unique_ptr<VoiceReader> voices_;
  ModelInfo info_;
  double load_seconds_ = 0;
  std::atomic<bool> cancelled_ = false;
};

// The frames that a sentence of so many code points may have: healthy speech has 1.3 to 2.7 a code point.
int64_t frame_bound(int64_t code_points);

}  // namespace consonant
