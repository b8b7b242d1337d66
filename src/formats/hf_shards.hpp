// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "formats/safetensors.hpp"

namespace consonant {

using Shard = std::shared_ptr<const SafetensorsFile>;

// A tensor of the folder and the file that holds it.
struct ShardTensor {
  Shard shard;
  const SafetensorsEntry* entry;
};

// The files that hold a folder's tensors.
struct Shards {
  std::vector<Shard> files;
  std::vector<std::filesystem::path> paths;
  std::vector<ShardTensor> tensors;
  int64_t bytes = 0;
};

// model.safetensors, or what model.safetensors.index.json names. Bad input if a file or a tensor is missing.
Shards open_shards(const std::filesystem::path& folder);

}  // namespace consonant
