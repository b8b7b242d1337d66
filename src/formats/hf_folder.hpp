// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "formats/model_file.hpp"

namespace consonant {

// Whether the folder looks like a Hugging Face model: it holds config.json.
bool is_hf_folder(const std::filesystem::path& folder);

// Opens config.json, model.safetensors or its shards, tokenizer.json and what stands beside them, under GGUF's keys,
// names and conventions. Tensors that need no change are views into the files; one-dimensional ones become f32, as GGUF
// has them.
ModelFile open_hf_folder(const std::filesystem::path& folder);

}  // namespace consonant
