// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.hpp"

namespace consonant {

// Decodes `columns` elements of any type at `from` (no alignment asked) to float: the oracle that every fast path is
// compared with. Bit-equal to ggml's and the gguf package's decoders.
void decode_row(DType type, const std::byte* from, float* to, int64_t columns);

// Encodes a row of floats as `type`; `columns` must be a multiple of its block. Throws for types without an encoder
// (see can_encode). Plain types round to nearest even.
void encode_row(DType type, const float* from, std::byte* to, int64_t columns);
bool can_encode(DType type);

}  // namespace consonant
