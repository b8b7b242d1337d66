// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/whisper_vocabulary.hpp"
#include "tasks/window_model.hpp"
#include "text/tokenizer.hpp"

namespace consonant {

struct WindowSettings {
  int32_t language = -1;  // the token; -1 for English-only models
  bool translate = false;
  bool timestamps = true;
  int beam = 5;          // at temperature 0; 1: greedy
  int best_of = 5;       // samples above
  bool fallback = true;  // to higher temperatures
};

struct WindowRequest {
  int window;                             // as the model numbers it
  std::span<const int32_t> context;       // text tokens that came before; as many of the last ones are taken as fit
  uint64_t seed = 0;                      // of sampling
  std::span<const int32_t> initial = {};  // text tokens that stay before the context
};

struct WindowText {
  std::vector<int32_t> tokens;  // text and timestamps, without the end token
  std::vector<float> logprobs;  // of each, and of the end token if it came
  std::string text;             // of the text tokens, as UTF-8
  bool ended = false;           // by the end token, not by the bound
  bool doubtful = false;        // every temperature was tried and none passed the tests
  double avg_logprob = 0;       // sum of the log probabilities / (tokens + 1)
  double no_speech_prob = 0;
  double compression_ratio = 0;  // bytes of the text / its bytes as zlib packs them
  double temperature = 0;
  int attempts = 0;

  bool silent() const { return no_speech_prob > 0.6 && avg_logprob < -1; }
};

// The token of a language given by code or English name; wrong usage for one that the (multilingual) model lacks.
int32_t language_token(const WhisperVocabulary& vocabulary, const std::string& language);

// A caller's prompt as the text of a segment before would be; none for an empty one.
std::vector<int32_t> prompt_tokens(const Tokenizer& tokenizer, const WhisperVocabulary& vocabulary,
                                   const std::string& prompt);

// Bytes / bytes compressed, of the text without white space around it; 0 for none. Text that repeats itself has 2.4
// and more.
double compression_ratio(std::string_view text);

// Decodes single windows of sound, several together if wanted: what one says doesn't depend on the others.
class WindowDecoder {
 public:
  // All must outlive it.
  WindowDecoder(WindowModel& model, const WhisperVocabulary& vocabulary, const Tokenizer& tokenizer)
      : model_(model), v_(vocabulary), tokenizer_(tokenizer) {}

  // Probabilities of `vocabulary.languages`, in their order.
  std::vector<double> languages(int window);

  // [previous, context] start [language task] [no timestamps]: at most half the positions before `start`.
  std::vector<int32_t> prompt(const WindowRequest& request, const WindowSettings& settings) const;

  // Nothing if `go_on`, which is asked before every step, said no.
  std::optional<std::vector<WindowText>> decode(std::span<const WindowRequest> requests, const WindowSettings& settings,
                                                const std::function<bool()>& go_on);

 private:
  class Prompt;
  struct Start {
    Prompt& prompt;
    uint64_t seed;
  };

  std::vector<std::unique_ptr<Prompt>> read(std::span<const WindowRequest> requests, const WindowSettings& settings);
  std::optional<std::vector<WindowText>> attempt(std::span<const Start> starts, const WindowSettings& settings,
                                                 int attempt, const std::function<bool()>& go_on);

  WindowModel& model_;
  const WhisperVocabulary& v_;
  const Tokenizer& tokenizer_;
};

}  // namespace consonant
