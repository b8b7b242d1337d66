// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "formats/hf_config.hpp"
#include "formats/json.hpp"
#include "formats/meta.hpp"

namespace consonant {

// The files of a folder that tell of its tokenizer. Those that are missing are empty objects, but tokenizer.json must
// be there.
struct TokenizerFiles {
  HfConfig tokenizer;                        // tokenizer.json
  HfConfig settings;                         // tokenizer_config.json
  HfConfig generation;                       // generation_config.json
  std::optional<std::string> chat_template;  // chat_template.jinja

  static TokenizerFiles read(const std::filesystem::path& folder);
};

// Adds the `tokenizer.*` keys that GGUF has, made from these files and the token ids and the size of the vocabulary
// that config.json states. Besides, since a folder says more than GGUF's keys can:
//   tokenizer.consonant.normalizer     "nfc" or "none" (byte-level BPE); else the definition itself
//   tokenizer.consonant.ignore_merges  whether words that are tokens are taken whole
//   tokenizer.consonant.pre_tokenizer  the definition, if it is none of the known ones; `tokenizer.ggml.pre` is absent
//   then
// The caller has checked `vocab_size` against the file: memory is taken for as many tokens.
void add_tokenizer(const TokenizerFiles& files, const HfConfig& config, Meta& meta);

// How tokenizer.json prepares text for byte-level BPE, in GGUF's terms.
struct PreTokenizer {
  std::string pre;         // name for `tokenizer.ggml.pre`; empty: not recognised
  std::string normalizer;  // "nfc", "none", or the definition
};

// Known by the definition itself: the patterns by which text is split, and the normaliser. Where names share patterns,
// `ignore_merges` and `adds_bos` decide, which these names imply.
PreTokenizer recognise_pre_tokenizer(const HfConfig& tokenizer, bool ignore_merges, bool adds_bos);

}  // namespace consonant
