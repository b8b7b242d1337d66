// SPDX-License-Identifier: Apache-2.0
#pragma once

// The tiny Qwen3-TTS checkpoints, and what the reference made with them.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/tts_runner.hpp"
#include "formats/model_file.hpp"
#include "tasks/speech_prompt.hpp"
#include "tests/golden.hpp"
#include "tests/tts_codec_golden.hpp"

namespace consonant {

// A case of the goldens, as the reference was asked for it.
struct TtsCase {
  const char* name;
  const char* language;
  const char* speaker = nullptr;
  const char* instruction = nullptr;
  bool reference = false;  // with the frames and the text of the reference recording
  bool streaming = false;
  bool replay = false;  // random frames are forced on its prompt too
  const char* text = "Hello there, this is a small test of the voice.";
};

inline const std::string base_model = "base", custom_model = "customvoice";

inline std::vector<TtsCase> tts_cases(const std::string& model) {
  constexpr const char* slowly = "Speak slowly, in a warm and gentle tone.";
  constexpr const char* fox =
      "The quick brown fox jumps over the lazy dog, and then the small dog sleeps in the sun while the river runs past "
      "the old stone house on the hill.";
  if (model == base_model)
    return {{.name = "icl", .language = "english", .reference = true, .streaming = true, .replay = true},
            {.name = "icl_long", .language = "auto", .reference = true, .streaming = true, .text = fox},
            {.name = "icl_full", .language = "English", .reference = true},
            {.name = "xvec", .language = "auto", .streaming = true}};
  return {{.name = "cv", .language = "english", .speaker = "Vivian", .replay = true},
          {.name = "cv_instruct", .language = "auto", .speaker = "Ryan", .instruction = slowly},
          {.name = "cv_dialect", .language = "chinese", .speaker = "dylan"},
          {.name = "cv_stream", .language = "english", .speaker = "Vivian", .streaming = true},
          {.name = "vd", .language = "english", .instruction = slowly}};
}

inline std::string tts_folder(const std::string& model) { return tts_data + "tiny-" + model; }
inline std::string tts_gguf(const std::string& model) {
  return tts_data + "gguf-" + model + "/tiny-" + model + "-f16.gguf";
}
inline Golden tts_golden(const std::string& model) { return Golden(tts_data + "golden/" + model + ".safetensors"); }

// What a loaded file is made of.
struct LoadedTts {
  ModelFile file;
  std::optional<Weights> weights;
  std::optional<Qwen3Tts> model;
  std::optional<Tokenizer> tokenizer;

  explicit LoadedTts(const std::string& path) : file(open_model(path)) {
    weights.emplace(file);
    model.emplace(file, *weights);
    tokenizer.emplace(Tokenizer::load(*file.meta));
  }
  std::unique_ptr<TtsRunner> runner(const RunnerOptions& options) const {
    std::vector<WeightSource> sources;
    for (const StoredTensor* t : weights->used())
      sources.push_back({t->name, t->type, t->sizes, t->load, file.release});
    return std::make_unique<TtsRunner>(*model, sources, options);
  }
};

inline RunnerOptions exact_tts(Target device = DeviceKind::cpu, int sequences = 2, int threads = 2) {
  RunnerOptions options;
  options.device = std::move(device), options.threads = threads, options.small_activations = false;
  options.kv = DType::f32, options.context = 256, options.sequences = sequences;
  return options;
}

// The reference recording's voice and frames are goldens of the speaker encoder and of the codec.
struct TtsPrompt {
  SpeechPrompt prompt;
  std::vector<float> voice;
};

inline TtsPrompt tts_prompt(const LoadedTts& loaded, const Golden& golden, const TtsCase& c) {
  const TtsVocabulary& v = loaded.model->vocabulary();
  const auto text = speech_text(*loaded.tokenizer, c.text);
  std::vector<int32_t> instruction, reference_text, reference_codes;
  TtsPrompt made;
  SpeechRequest request;
  const TtsVocabulary::Speaker* speaker = c.speaker ? &speech_speaker(v, c.speaker) : nullptr;
  request.language = speech_language(v, c.language, speaker);
  request.streaming_text = c.streaming;
  if (speaker) request.voice = PromptVoice::speaker, request.speaker = speaker->id;
  if (c.instruction) instruction = speech_text(*loaded.tokenizer, c.instruction);
  const bool clone = !speaker && !c.instruction, is_long = std::string(c.name) == "icl_long";
  if (clone) {
    request.voice = PromptVoice::vector;
    made.voice = golden.floats("speaker.embedding");
    if (is_long) {  // of fewer frames
      const auto prefill = golden.floats("icl_long.prefill"), pad = golden.floats("tts_pad_embed");
      for (size_t i = 0; i < pad.size(); ++i) made.voice[i] = prefill[6 * pad.size() + i] - pad[i];
    }
  }
  if (c.reference) {
    reference_text = speech_text(*loaded.tokenizer, "I wanted to hear the sound of the sea.");
    reference_codes = tts_golden("codec").ids(is_long ? "enc.codes_8_frames" : "enc.codes");
  }
  request.text = text, request.instruction = instruction;
  request.reference_text = reference_text, request.reference_codes = reference_codes;
  made.prompt = speech_prompt(v, *loaded.tokenizer, request);
  return made;
}

// Greedy, as the reference was run.
inline Utterance greedy_utterance(const LoadedTts& loaded, const TtsPrompt& prompt, int64_t frames = 120) {
  static const int32_t ends[] = {166};
  Utterance u;
  u.prompt = prompt.prompt.rows, u.trailing = prompt.prompt.trailing, u.voice = prompt.voice;
  u.first.repeat_penalty = loaded.model->vocabulary().repeat_penalty, u.first.penalty_window = -1;
  u.limits.end_tokens = ends, u.limits.max_tokens = frames;
  u.record = true;
  return u;
}

}  // namespace consonant
