// SPDX-License-Identifier: Apache-2.0
#include "models/whisper_vocabulary.hpp"

#include <limits>

#include "base/error.hpp"
#include "base/utf8.hpp"
#include "formats/whisper/tokens.hpp"

namespace consonant {

namespace {

void set_ids(const WhisperControls& controls, WhisperVocabulary& out) {
  out.end = controls.end;
  out.start = controls.start();
  out.first_language = controls.first_language();
  out.translate = controls.translate();
  out.transcribe = controls.transcribe();
  out.start_of_lm = controls.start_of_lm();
  out.previous = controls.previous();
  out.no_speech = controls.no_speech();
  out.no_timestamps = controls.no_timestamps();
  out.first_timestamp = controls.first_timestamp();
}

// "en" of "<|en|>".
std::string code_of(std::string_view text) {
  if (text.starts_with("<|") && text.ends_with("|>") && text.size() > 4) text = text.substr(2, text.size() - 4);
  return std::string(text);
}

int64_t count(const Meta& meta, std::string_view key) {
  const int64_t n = meta.integer(key);
  if (n < 1 || n > std::numeric_limits<int32_t>::max()) bad_input("{}: {} is {}", meta.source, key, n);
  return n;
}

int32_t id(const Meta& meta, std::string_view key, int64_t size) {
  const int64_t id = meta.integer(key, -1);
  if (id < -1 || id >= size) bad_input("{}: {} is {}: the vocabulary has {} tokens", meta.source, key, id, size);
  return static_cast<int32_t>(id);
}

std::vector<int32_t> ids(const Meta& meta, std::string_view key, int64_t size) {
  std::vector<int32_t> out;
  if (!meta.has(key)) return out;
  for (const int64_t id : meta.integers(key)) {
    if (id < 0 || id >= size) bad_input("{}: {} names token {}: the vocabulary has {}", meta.source, key, id, size);
    out.push_back(static_cast<int32_t>(id));
  }
  return out;
}

void read_texts(const Meta& meta, WhisperVocabulary& out) {
  const MetaStrings& stored = meta.strings("tokenizer.ggml.tokens");
  if (static_cast<int64_t>(stored.size()) != out.size)
    bad_input("{}: {} tokens, but whisper.vocab_size is {}", meta.source, stored.size(), out.size);
  const WhisperControls controls = whisper_controls(stored, meta.source);
  set_ids(controls, out);
  const std::vector<int32_t> languages = ids(meta, "whisper.language_tokens", out.size);
  for (size_t i = 0; i < languages.size(); ++i) {
    if (languages[i] != out.first_language + static_cast<int32_t>(i) || languages[i] >= out.translate)
      bad_input("{}: whisper.language_tokens: token {} where {} is next; the languages end at {}", meta.source,
                languages[i], out.first_language + static_cast<int32_t>(i), out.translate - 1);
    out.languages.push_back(sanitize_utf8(code_of(stored[static_cast<size_t>(languages[i])])));
  }
  out.multilingual = out.languages.size() > 1;
}

}  // namespace

WhisperVocabulary whisper_vocabulary(int64_t size) {
  constexpr int64_t english_only = 51864;
  WhisperVocabulary out;
  const WhisperControls controls = whisper_controls(size, "Whisper");
  out.size = size;
  out.multilingual = size != english_only;
  set_ids(controls, out);
  for (const std::string_view code :
       whisper_languages().first(static_cast<size_t>(out.multilingual ? controls.languages : 1)))
    out.languages.emplace_back(code);
  return out;
}

WhisperVocabulary whisper_vocabulary(const Meta& meta) {
  WhisperVocabulary out;
  out.size = count(meta, "whisper.vocab_size");
  out.text_positions = count(meta, "whisper.decoder.context_length");
  out.audio_positions = count(meta, "whisper.encoder.context_length");
  if (meta.has("tokenizer.ggml.tokens")) {
    read_texts(meta, out);
  } else {  // a checkpoint without texts tells no more than where a transcript begins and ends
    out.start = id(meta, "tokenizer.ggml.bos_token_id", out.size);
    out.end = id(meta, "tokenizer.ggml.eos_token_id", out.size);
  }
  out.suppress = ids(meta, "whisper.suppress_tokens", out.size);
  out.suppress_at_begin = ids(meta, "whisper.begin_suppress_tokens", out.size);
  return out;
}

}  // namespace consonant
