// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.hpp"

namespace consonant {

// What a group of eight rows holds in Layout::rows8. Plain types: [k][8] elements as in the file. Block types, for
// n = k / 32 blocks, three planes one after another and zeros up to a multiple of 32 bytes:
//
//   base    [n][base_bits * 32 bytes]    low bits of the quants
//   upper   [n][upper_bits * 32 bytes]   the bits above those
//   scales  records, one for a block of 32 or for a super-block of 256
//
// A dword holds four neighbouring k of one row, and eight dwords the eight rows: what the dot-product instructions
// take, with a lane a row. Call dword g (0 ... 7) of a block its elements 4g ... 4g + 3, one a byte. Then the planes
// hold
//
//   8 bits  [8 g][8 rows] dwords
//   4 bits  [4][8 rows] dwords: dword g in the low nibbles of the g-th, dword g + 4 in its high nibbles
//   2 bits  [2][8 rows] dwords: dword 4 i + j at bits 2 j of the i-th
//   1 bit   [8 rows] dwords: dword g at bit g
enum class Scales : uint8_t {
  half,      // a block: [8] f16 d
  half_min,  // a block: [8] f16 d, [8] f16 m
  e8m0,      // a block: [8] u8 e
  k32,       // a super-block: [8] f16 d, [8 blocks][8] i8 s
  k32_min,   // a super-block: [8] f16 d, [8] f16 dmin, [8 blocks]{[8] u8 s, [8] u8 t}
  k16,       // a super-block: [8] f16 d, [16 halves][8] i8 s
  k16_six,   // a super-block: [8] f16 d, [8][8] u8 low nibbles of s(j) and s(j + 8), [4][8] u8 upper two bits of
             // s(j), s(j + 4), s(j + 8), s(j + 12)
  k16_min,   // a super-block: [8] f16 d, [8] f16 dmin, [16 halves][8] u8 s | t << 4
};

// How a quant q becomes a number: q - offset, a level of a table, or q as a signed byte.
enum class Quant : uint8_t { offset, signed_byte, iq4, fp4 };

struct BlockLayout {
  int base_bits, upper_bits;
  Quant quant;
  int offset;
  Scales scales;

  constexpr int64_t base_bytes() const { return base_bits * 32; }  // a block's, all eight rows
  constexpr int64_t upper_bytes() const { return upper_bits * 32; }
  constexpr bool super() const { return scales >= Scales::k32; }
  constexpr bool halves() const { return scales >= Scales::k16; }  // a scale for 16 elements, not 32
  constexpr bool minimum() const {
    return scales == Scales::half_min || scales == Scales::k32_min || scales == Scales::k16_min;
  }
  constexpr int64_t record_bytes() const {
    constexpr int64_t bytes[] = {16, 32, 8, 80, 160, 144, 112, 160};
    return bytes[static_cast<int>(scales)];
  }
  constexpr int64_t records(int64_t blocks) const { return super() ? blocks / 8 : blocks; }

  // Where the planes start, for `blocks` blocks of 32 a row, and where they end.
  constexpr int64_t upper_at(int64_t blocks) const { return blocks * base_bytes(); }
  constexpr int64_t scales_at(int64_t blocks) const { return upper_at(blocks) + blocks * upper_bytes(); }
  constexpr int64_t end(int64_t blocks) const { return scales_at(blocks) + records(blocks) * record_bytes(); }
};

constexpr BlockLayout block_layout(DType type) {
  switch (type) {
    case DType::q8_0:
      return {8, 0, Quant::signed_byte, 0, Scales::half};
    case DType::q4_0:
      return {4, 0, Quant::offset, 8, Scales::half};
    case DType::q4_1:
      return {4, 0, Quant::offset, 0, Scales::half_min};
    case DType::q5_0:
      return {4, 1, Quant::offset, 16, Scales::half};
    case DType::q5_1:
      return {4, 1, Quant::offset, 0, Scales::half_min};
    case DType::q2_k:
      return {2, 0, Quant::offset, 0, Scales::k16_min};
    case DType::q3_k:
      return {2, 1, Quant::offset, 4, Scales::k16_six};
    case DType::q4_k:
      return {4, 0, Quant::offset, 0, Scales::k32_min};
    case DType::q5_k:
      return {4, 1, Quant::offset, 0, Scales::k32_min};
    case DType::q6_k:
      return {4, 2, Quant::offset, 32, Scales::k16};
    case DType::iq4_nl:
      return {4, 0, Quant::iq4, 0, Scales::half};
    case DType::iq4_xs:
      return {4, 0, Quant::iq4, 0, Scales::k32};
    case DType::mxfp4:
      return {4, 0, Quant::fp4, 0, Scales::e8m0};
    default:
      return {};
  }
}

}  // namespace consonant
