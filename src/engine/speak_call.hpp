// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <span>
#include <vector>

#include "base/clock.hpp"
#include "consonant/speak.hpp"
#include "decode/codebooks.hpp"
#include "engine/codec_runner.hpp"
#include "engine/tts_runner.hpp"
#include "tasks/sentence_cuts.hpp"
#include "tasks/speech_joints.hpp"
#include "tasks/speech_prompt.hpp"
#include "text/tokenizer.hpp"

namespace consonant {

// One text on its way to sound: its sentences, their tries, and the sound in order.
class SpeakCall {
 public:
  SpeakCall(TtsRunner& runner, CodecDecoderRunner& decoder, const Tokenizer& tokenizer, const SpeakOptions& options,
            const SpeakCallbacks& callbacks, const std::atomic<bool>* cancelled, Clock::time_point start);

  // `request`: all but the text. `voice` [width], or empty.
  SpeakResult run(const SpeechRequest& request, std::span<const float> voice);

 private:
  Utterance utterance(size_t sentence, int tries) const;
  void speak_at_once();
  void speak_streaming();
  std::vector<size_t> tried(std::span<const size_t> sentences, int tries, const OnFrame& on_frame);
  void take(size_t sentence, Spoken spoken, int tries);
  void decode(std::span<const int32_t> codes);
  void begin_sound();
  void end_sound(size_t sentence);
  void progress(int64_t frames);
  void warn_of_early_ends();

  TtsRunner& runner_;
  CodecDecoderRunner& decoder_;
  const Tokenizer& tokenizer_;
  const TtsVocabulary& vocabulary_;
  const SpeakOptions& options_;
  const SpeakCallbacks& callbacks_;
  const std::atomic<bool>* cancelled_;
  Clock::time_point start_;
  Deadline deadline_;
  std::vector<SpokenPart> parts_;
  std::vector<SpeechPrompt> prompts_;
  std::span<const float> voice_;
  std::span<const int32_t> reference_codes_;
  Sampling first_, others_;
  int32_t end_;
  SpeechJoints joints_;
  int stream_ = -1;  // of the codec
  int64_t frames_ = 0;
  size_t done_ = 0;
  SpeakResult result_;
};

}  // namespace consonant
