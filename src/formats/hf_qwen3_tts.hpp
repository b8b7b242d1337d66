// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "formats/hf_config.hpp"
#include "formats/model_file.hpp"

namespace consonant {

bool is_hf_qwen3_tts(const HfConfig& config);

// A Qwen3-TTS checkpoint as Hugging Face folders have it: config.json, generation_config.json, vocab.json, merges.txt
// and the tensors of talker, code predictor and speaker encoder. Its codec lies in a folder of its own within.
ModelFile open_hf_qwen3_tts(const std::filesystem::path& folder, const HfConfig& config);

// What GGUF files of that architecture leave out because their readers know it: how the tokenizer works.
void complete_qwen3_tts(Meta& meta);

}  // namespace consonant
