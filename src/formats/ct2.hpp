// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "formats/mapped_file.hpp"
#include "formats/model_file.hpp"

namespace consonant {

struct Ct2Variable {
  DType type;
  Sizes sizes;     // empty: one element
  int64_t offset;  // from the start of the file
  int64_t bytes;
};

// CTranslate2's model.bin: variables under names, read and checked whole except for their data.
struct Ct2File {
  std::shared_ptr<const MappedFile> file;
  int64_t version = 0;
  std::string kind;  // "WhisperSpec"
  int64_t revision = 0;
  std::map<std::string, Ct2Variable> variables;  // aliases too

  const Ct2Variable* find(const std::string& name) const;
  HostTensor tensor(const Ct2Variable& variable) const;  // a view
};

// Bad input for anything that isn't a sound file of a version from 1 to 6.
Ct2File parse_ct2(std::shared_ptr<const MappedFile> file);

// Whether the file begins as model.bin of some kind of model does.
bool is_ct2(const MappedFile& file);

// Whether the folder looks like a CTranslate2 model: model.bin, and no tensors of another kind beside it.
bool is_ct2_folder(const std::filesystem::path& folder);

// Opens a Whisper folder as CTranslate2 has it: model.bin, config.json, and tokenizer.json or the vocabulary. Matrices
// of 8 bits become q8_0, see docs/formats.md.
ModelFile open_ct2_folder(const std::filesystem::path& folder);

// The model in a file of kind "WhisperSpec", without what stands beside it.
struct WhisperSizes;
ModelFile read_ct2_whisper(const std::shared_ptr<const Ct2File>& ct2, WhisperSizes& sizes);

}  // namespace consonant
