// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "formats/mapped_file.hpp"
#include "formats/meta.hpp"
#include "formats/model_file.hpp"

namespace consonant {

struct GgufTensor {
  std::string name;
  DType type;
  Sizes sizes;     // slowest dimension first
  int64_t offset;  // from the start of the file
  int64_t bytes;
};

// One GGUF file, read and checked whole except for the tensors' data, which stays untouched.
struct GgufFile {
  std::shared_ptr<const MappedFile> file;  // metadata strings are views into it
  int version = 0;
  int64_t alignment = 0;
  Meta meta;
  std::vector<GgufTensor> tensors;  // in the order of the file's table
};

// Bad input for anything that isn't a sound GGUF file of version 2 or 3. Every count and size is compared with the
// bytes that are left before it is used, so a small file costs little however much it declares.
GgufFile parse_gguf(std::shared_ptr<const MappedFile> file);

// Opens a GGUF file; of a split one (NAME-00001-of-0000N.gguf) all parts, whichever of them is named.
ModelFile open_gguf(const std::filesystem::path& path);

inline bool is_gguf(const MappedFile& file) {
  return file.text().starts_with("GGUF") || file.text().starts_with("FUGG");
}

}  // namespace consonant
