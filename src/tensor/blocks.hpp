// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "tensor/half.hpp"

namespace consonant {

// ggml's quantised blocks as they lie in a file. x[i] is element i of a block, q its stored integer; d, m, dmin are the
// block's scales. "Nibble pair": byte i of a run of n holds element i in its low half and element i + n in its high
// half. Blocks of a file may stand at odd addresses: copy one out with load_block before reading its fields.

inline constexpr int block_size = 32;   // elements in the plain blocks
inline constexpr int super_size = 256;  // elements in the k-quants and IQ4_XS

struct BlockQ8_0 {  // x = d q, q signed
  static constexpr int size = block_size;
  Half d;
  int8_t q[32];
};

struct BlockQ4_0 {  // x = d (q - 8); one nibble pair of 16
  static constexpr int size = block_size;
  Half d;
  uint8_t q[16];
};

struct BlockQ4_1 {  // x = d q + m; one nibble pair of 16
  static constexpr int size = block_size;
  Half d, m;
  uint8_t q[16];
};

struct BlockQ5_0 {  // x = d (q - 16); nibble pair for the low four bits, bit i of `high` (little endian) for the fifth
  static constexpr int size = block_size;
  Half d;
  uint8_t high[4];
  uint8_t q[16];
};

struct BlockQ5_1 {  // x = d q + m; bits as in Q5_0
  static constexpr int size = block_size;
  Half d, m;
  uint8_t high[4];
  uint8_t q[16];
};

struct BlockQ2_K {  // x = d s q - dmin t, s and t the low and high nibble of scales[i / 16]; bits as in two_bits()
  static constexpr int size = super_size;
  uint8_t scales[16];
  uint8_t q[64];
  Half d, dmin;
};

struct BlockQ3_K {  // x = d (s - 32) (q - 4), s the six-bit q3_scale(i / 16); low two bits of q as in two_bits(), the
                    // third in high
  static constexpr int size = super_size;
  uint8_t high[32];  // of element i: bit i / 32 of byte i % 32
  uint8_t q[64];
  uint8_t scales[12];
  Half d;
};

struct BlockQ4_K {  // x = d s q - dmin t, (s, t) = k_scales(i / 32); four nibble pairs of 32
  static constexpr int size = super_size;
  Half d, dmin;
  uint8_t scales[12];
  uint8_t q[128];
};

struct BlockQ5_K {  // as Q4_K, with the fifth bit of element i in bit i / 32 of high[i % 32]
  static constexpr int size = super_size;
  Half d, dmin;
  uint8_t scales[12];
  uint8_t high[32];
  uint8_t q[128];
};

struct BlockQ6_K {  // x = d s (q - 32), s = scales[i / 16]; two nibble pairs of 64, upper two bits as in two_bits()
  static constexpr int size = super_size;
  uint8_t q[128];
  uint8_t high[64];
  int8_t scales[16];
  Half d;
};

struct BlockIQ4_NL {  // x = d iq4_values[q]; one nibble pair of 16
  static constexpr int size = block_size;
  Half d;
  uint8_t q[16];
};

struct BlockIQ4_XS {  // x = d (s - 32) iq4_values[q], s = iq4_scale(i / 32); eight nibble pairs of 16
  static constexpr int size = super_size;
  Half d;
  uint16_t scales_high;
  uint8_t scales_low[4];
  uint8_t q[128];
};

struct BlockMXFP4 {  // x = 2^(e - 127) fp4[q]; one nibble pair of 16
  static constexpr int size = block_size;
  uint8_t e;
  uint8_t q[16];
};

static_assert(sizeof(Half) == 2);
static_assert(sizeof(BlockQ8_0) == 34 && sizeof(BlockQ4_0) == 18 && sizeof(BlockQ4_1) == 20);
static_assert(sizeof(BlockQ5_0) == 22 && sizeof(BlockQ5_1) == 24 && sizeof(BlockQ2_K) == 84);
static_assert(sizeof(BlockQ3_K) == 110 && sizeof(BlockQ4_K) == 144 && sizeof(BlockQ5_K) == 176);
static_assert(sizeof(BlockQ6_K) == 210 && sizeof(BlockIQ4_NL) == 18 && sizeof(BlockIQ4_XS) == 136);
static_assert(sizeof(BlockMXFP4) == 17);

template <class T>
T load_block(const std::byte* from) {
  T block;
  std::memcpy(&block, from, sizeof block);
  return block;
}

template <class T>
void store_block(std::byte* to, const T& block) {
  std::memcpy(to, &block, sizeof block);
}

// The 16 levels of IQ4_NL and IQ4_XS, and FP4 (E2M1) doubled so that its halves are whole.
inline constexpr std::array<int8_t, 16> iq4_values = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                      1,    13,   25,  38,  53,  69,  89,  113};
inline constexpr std::array<int8_t, 16> fp4_doubled = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

// Half of an E8M0 scale, 2^(e - 128): goes with fp4_doubled. e = 255 is NaN by the Microscaling specification.
inline float e8m0_half(uint8_t e) {
  if (e == 255) return std::numeric_limits<float>::quiet_NaN();
  return std::bit_cast<float>(e < 2 ? 0x00200000u << e : static_cast<uint32_t>(e - 1) << 23);
}

// Two bits of element i of a super-block: four elements 32 apart share a byte, each half of the block its own 32 bytes.
inline int two_bits(const uint8_t* bits, int i) { return bits[i / 128 * 32 + i % 32] >> (i / 32 % 4 * 2) & 3; }

struct KScales {
  int scale, min;
};

// Eight six-bit scales and minima in 12 bytes: bytes 0-3 and 4-7 hold the first four of each in their low six bits;
// bytes 8-11 the low nibbles of the other four, whose upper two bits fill up bytes 0-7.
inline KScales k_scales(const uint8_t* packed, int j) {
  if (j < 4) return {packed[j] & 63, packed[j + 4] & 63};
  return {(packed[j + 4] & 15) | packed[j - 4] >> 6 << 4, packed[j + 4] >> 4 | packed[j] >> 6 << 4};
}

// Sixteen six-bit scales in 12 bytes: low nibbles as one nibble pair of 8, upper bits in the last four bytes.
inline int q3_scale(const uint8_t* packed, int j) {
  return (packed[j % 8] >> j / 8 * 4 & 15) | (packed[8 + j % 4] >> j / 4 * 2 & 3) << 4;
}

inline int iq4_scale(const BlockIQ4_XS& block, int j) {
  return (block.scales_low[j / 2] >> j % 2 * 4 & 15) | (block.scales_high >> j * 2 & 3) << 4;
}

}  // namespace consonant
