// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tensor/dtype.hpp"

namespace consonant {

// The numbers by which GGUF names element types.
std::optional<DType> dtype_of_ggml(uint32_t number);

// "IQ2_XXS" for a number that ggml knows, whether supported here or not; empty for others.
std::string_view ggml_type_name(uint32_t number);

// Nothing for types that GGUF lacks (u8, bool).
std::optional<uint32_t> ggml_type_of(DType type);

// `general.file_type` of a file whose matrices are mostly of one kind: llama.cpp's numbers and names.
std::string_view file_type_name(int64_t number);

}  // namespace consonant
