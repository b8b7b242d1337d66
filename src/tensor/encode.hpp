// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tensor/blocks.hpp"

// What encode_row is made of: each encodes the Block::size finite floats at x.

namespace consonant::encoding {

// Bad input where a scale leaves the range of binary16: the block couldn't be read back.
Half scale_half(float scale);

void encode(const float* x, BlockQ8_0& block);
void encode(const float* x, BlockQ4_0& block);
void encode(const float* x, BlockQ4_1& block);
void encode(const float* x, BlockQ5_0& block);
void encode(const float* x, BlockQ5_1& block);
void encode(const float* x, BlockQ2_K& block);
void encode(const float* x, BlockQ3_K& block);
void encode(const float* x, BlockQ4_K& block);
void encode(const float* x, BlockQ5_K& block);
void encode(const float* x, BlockQ6_K& block);
void encode(const float* x, BlockIQ4_NL& block);
void encode(const float* x, BlockIQ4_XS& block);
void encode(const float* x, BlockMXFP4& block);

}  // namespace consonant::encoding
