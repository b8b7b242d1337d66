// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>

#include "formats/whisper/tensors.hpp"
#include "formats/whisper/tokens.hpp"

namespace consonant {

// The vocabulary of a folder: tokenizer.json; else vocab.json and merges.txt (Hugging Face); else vocabulary.json or
// vocabulary.txt (CTranslate2). Nothing if it has none of them. Bad input if it doesn't fit a model of `size` tokens.
std::optional<WhisperTokens> read_whisper_tokens(const std::filesystem::path& folder, int64_t size);

// All metadata of a Hugging Face or a CTranslate2 folder, whose tensors have these sizes.
void add_whisper_folder(const std::filesystem::path& folder, const WhisperSizes& sizes, Meta& meta);

}  // namespace consonant
