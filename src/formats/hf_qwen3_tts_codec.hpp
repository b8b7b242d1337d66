// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "formats/hf_config.hpp"
#include "formats/model_file.hpp"

namespace consonant {

// Whether config.json tells of Qwen3-TTS's codec: the folder "speech_tokenizer" of a checkpoint.
bool is_hf_qwen3_tts_codec(const HfConfig& config);

ModelFile open_hf_qwen3_tts_codec(const std::filesystem::path& folder, const HfConfig& config);

}  // namespace consonant
