// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/meta.hpp"
#include "tensor/host_tensor.hpp"

namespace consonant {

// A tensor of a model file under its GGUF name ("blk.0.attn_q.weight").
struct StoredTensor {
  std::string name;
  DType type;
  Sizes sizes;    // slowest dimension first
  int64_t bytes;  // of its data in GGUF layout
  // Reads the data. From a mapped file: a view, no copy. From a Hugging Face folder: renamed, and converted where the
  // conventions differ (llama's q and k rows permuted, Gemma's norms + 1, experts stacked), which may allocate.
  std::function<HostTensor()> load;
};

// What a model file holds, whatever format it came from: GGUF's metadata keys, GGUF's tensor names, layouts and
// conventions.
struct ModelFile {
  std::shared_ptr<Meta> meta;
  std::vector<StoredTensor> tensors;  // in file order
  std::string format;                 // "GGUF v3", "Hugging Face folder", ...
  std::vector<std::filesystem::path> files;
  int64_t file_bytes = 0;  // of all files that hold tensors

  const StoredTensor* find(std::string_view name) const;

  // Lets the system drop the pages of the mapped files under `part` of a loaded tensor's bytes, once they have been
  // repacked elsewhere; reading them again brings them back. Nothing happens to bytes that aren't mapped.
  std::function<void(std::span<const std::byte> part)> release = [](std::span<const std::byte>) {};
};

// Opens a GGUF file (v2 or v3, one part or all parts of a split one), a Hugging Face folder, or a Whisper model as
// CTranslate2 (folder, or its model.bin) or whisper.cpp has it. Bad input, with the path and the reason, for anything
// else. Nothing of the tensors is read before it is asked for.
ModelFile open_model(const std::filesystem::path& path);

}  // namespace consonant
