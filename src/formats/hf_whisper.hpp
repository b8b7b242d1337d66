// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "formats/hf_config.hpp"
#include "formats/model_file.hpp"

namespace consonant {

// Whether config.json tells of a Whisper model.
bool is_hf_whisper(const HfConfig& config);

// Opens a Hugging Face folder of a Whisper model. One without a tokenizer has no tokens in its metadata either.
ModelFile open_hf_whisper(const std::filesystem::path& folder, const HfConfig& config);

}  // namespace consonant
