// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

#include "formats/mapped_file.hpp"
#include "formats/model_file.hpp"
#include "formats/whisper/tensors.hpp"

namespace consonant {

// A file of whisper.cpp, read and checked whole except for the tensors' data.
struct GgmlFile {
  std::shared_ptr<const MappedFile> file;
  WhisperSizes sizes;                   // feed_forward: from the first tensor of that kind
  std::vector<std::string_view> words;  // bytes, by id; control tokens are left out
  WhisperParts parts;
};

// Bad input for anything that isn't a sound file of a Whisper model.
GgmlFile parse_ggml(std::shared_ptr<const MappedFile> file);

// Opens a file of whisper.cpp: any element type that GGUF has too.
ModelFile open_ggml(const std::filesystem::path& path);
ModelFile read_ggml(GgmlFile ggml);

inline bool is_ggml(const MappedFile& file) { return file.text().starts_with("lmgg"); }  // 0x67676D6C

}  // namespace consonant
