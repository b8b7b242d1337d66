// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "consonant/transcribe.hpp"
#include "engine/vad_runner.hpp"
#include "engine/whisper_runner.hpp"
#include "formats/model_file.hpp"
#include "models/whisper_vocabulary.hpp"
#include "text/tokenizer.hpp"

namespace consonant {

// The Transcriber of a Whisper model.
class SpeechEngine final : public Transcriber {
 public:
  // On an open device, whatever `options.device` says; `passed_over` as ModelInfo has it.
  SpeechEngine(const std::string& path, const EngineOptions& options, const Target& target,
               std::vector<std::string> passed_over = {});

  const ModelInfo& info() const override { return info_; }
  bool multilingual() const override { return vocabulary_.multilingual; }
  std::vector<std::string> languages() const override { return vocabulary_.languages; }
  Transcript transcribe(AudioInput& audio, const TranscribeOptions& options,
                        const TranscribeCallbacks& callbacks) override;
  std::vector<std::pair<std::string, double>> detect_language(AudioInput& audio) override;
  void cancel() noexcept override { cancelled_ = true; }

  WhisperRunner& runner() { return *runner_; }
  std::string sha256() const;
  // The prompt and what greedy decoding without fallback writes for a window of the runner.
  std::vector<int32_t> greedy_tokens(int window, const TranscribeOptions& options);

 private:
  VadRunner& voice(const std::string& path);

  ModelFile file_;
  std::optional<Weights> weights_;
  std::optional<Whisper> model_;
  WhisperVocabulary vocabulary_;
  std::optional<Tokenizer> tokenizer_;
  std::unique_ptr<WhisperRunner> runner_;
  std::unique_ptr<VadEngine> voice_;
  std::string voice_path_;  // of what it was loaded from
  ModelInfo info_;
  double load_seconds_ = 0;
  std::atomic<bool> cancelled_ = false;
};

// What it runs a model with.
RunnerOptions speech_runner_options(const EngineOptions& options, const Target& target);

// The engine behind the public interface; wrong usage if it is of another kind.
SpeechEngine& speech_engine(Transcriber& transcriber);

}  // namespace consonant
