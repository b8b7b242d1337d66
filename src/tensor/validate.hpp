// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "tensor/dtype.hpp"

namespace consonant {

// The first of `count` blocks with a scale that is NaN or infinite. Reads the scale fields alone, so that a loader can
// afford it on every tensor. Plain types have no scales.
std::optional<int64_t> find_nonfinite_scale(DType type, const std::byte* blocks, int64_t count);

// Bad input if a block of the tensor `name`, rows of `columns` elements one after the other, has such a scale.
void check_finite_scales(std::string_view name, DType type, std::span<const std::byte> bytes, int64_t columns);

}  // namespace consonant
