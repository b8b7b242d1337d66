// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "formats/meta.hpp"
#include "tensor/host_tensor.hpp"

namespace consonant {

struct GgufTensorPlan {
  std::string name;
  DType type;
  Sizes sizes;  // slowest dimension first
};

// Takes the bytes of a tensor piece by piece, in order.
using ByteSink = std::function<void(std::span<const std::byte>)>;

// Writes a GGUF v3 file with `meta` and `tensors`; `data` is called once for each tensor, in order, and gives its bytes
// to the sink. Written under a temporary name and renamed when complete. `general.alignment` and the keys of split
// files are left out: they tell of the file that was read. Fails if a tensor gives more or fewer bytes than its plan
// says.
void write_gguf(const std::filesystem::path& path, const Meta& meta, const std::vector<GgufTensorPlan>& tensors,
                const std::function<void(size_t index, const ByteSink& sink)>& data);

}  // namespace consonant
