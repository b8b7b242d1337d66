// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <type_traits>

#include "base/error.hpp"
#include "tensor/blocks.hpp"
#include "tensor/convert.hpp"

// The order of operations is part of the contract: products with a scale are rounded before they meet an element, so
// that every value has the bits that ggml's decoders give.

namespace consonant {

namespace {

int nibble(uint8_t byte, int half) { return byte >> half * 4 & 15; }

int fifth_bit(const uint8_t* high, int i) { return (high[i / 8] >> i % 8 & 1) << 4; }

void decode(const BlockQ8_0& b, float* x) {
  const float d = to_float(b.d);
  for (int i = 0; i < block_size; ++i) x[i] = static_cast<float>(b.q[i]) * d;
}

void decode(const BlockQ4_0& b, float* x) {
  const float d = to_float(b.d);
  for (int i = 0; i < block_size; ++i) x[i] = static_cast<float>(nibble(b.q[i % 16], i / 16) - 8) * d;
}

void decode(const BlockQ4_1& b, float* x) {
  const float d = to_float(b.d), m = to_float(b.m);
  for (int i = 0; i < block_size; ++i) x[i] = static_cast<float>(nibble(b.q[i % 16], i / 16)) * d + m;
}

void decode(const BlockQ5_0& b, float* x) {
  const float d = to_float(b.d);
  for (int i = 0; i < block_size; ++i)
    x[i] = static_cast<float>((nibble(b.q[i % 16], i / 16) | fifth_bit(b.high, i)) - 16) * d;
}

void decode(const BlockQ5_1& b, float* x) {
  const float d = to_float(b.d), m = to_float(b.m);
  for (int i = 0; i < block_size; ++i)
    x[i] = static_cast<float>(nibble(b.q[i % 16], i / 16) | fifth_bit(b.high, i)) * d + m;
}

void decode(const BlockQ2_K& b, float* x) {
  const float d = to_float(b.d), dmin = to_float(b.dmin);
  for (int j = 0; j < super_size / 16; ++j) {
    const float scale = d * static_cast<float>(b.scales[j] & 15), min = dmin * static_cast<float>(b.scales[j] >> 4);
    for (int i = j * 16; i < j * 16 + 16; ++i) x[i] = scale * static_cast<float>(two_bits(b.q, i)) - min;
  }
}

void decode(const BlockQ3_K& b, float* x) {
  const float d = to_float(b.d);
  for (int j = 0; j < super_size / 16; ++j) {
    const float scale = d * static_cast<float>(q3_scale(b.scales, j) - 32);
    for (int i = j * 16; i < j * 16 + 16; ++i) {
      const int q = two_bits(b.q, i) | (b.high[i % 32] >> i / 32 & 1) << 2;
      x[i] = scale * static_cast<float>(q - 4);
    }
  }
}

void decode(const BlockQ4_K& b, float* x) {
  const float d = to_float(b.d), dmin = to_float(b.dmin);
  for (int j = 0; j < super_size / 32; ++j) {
    const KScales s = k_scales(b.scales, j);
    const float scale = d * static_cast<float>(s.scale), min = dmin * static_cast<float>(s.min);
    for (int i = 0; i < 32; ++i) x[j * 32 + i] = scale * static_cast<float>(nibble(b.q[j / 2 * 32 + i], j % 2)) - min;
  }
}

void decode(const BlockQ5_K& b, float* x) {
  const float d = to_float(b.d), dmin = to_float(b.dmin);
  for (int j = 0; j < super_size / 32; ++j) {
    const KScales s = k_scales(b.scales, j);
    const float scale = d * static_cast<float>(s.scale), min = dmin * static_cast<float>(s.min);
    for (int i = 0; i < 32; ++i) {
      const int q = nibble(b.q[j / 2 * 32 + i], j % 2) | (b.high[i] >> j & 1) << 4;
      x[j * 32 + i] = scale * static_cast<float>(q) - min;
    }
  }
}

void decode(const BlockQ6_K& b, float* x) {
  const float d = to_float(b.d);
  for (int j = 0; j < super_size / 16; ++j) {
    const float scale = d * static_cast<float>(b.scales[j]);
    for (int i = j * 16; i < j * 16 + 16; ++i) {
      const int low = nibble(b.q[i / 128 * 64 + i % 64], i / 64 % 2);
      x[i] = scale * static_cast<float>((low | two_bits(b.high, i) << 4) - 32);
    }
  }
}

void decode(const BlockIQ4_NL& b, float* x) {
  const float d = to_float(b.d);
  for (int i = 0; i < block_size; ++i)
    x[i] = d * static_cast<float>(iq4_values[static_cast<size_t>(nibble(b.q[i % 16], i / 16))]);
}

void decode(const BlockIQ4_XS& b, float* x) {
  const float d = to_float(b.d);
  for (int j = 0; j < super_size / 32; ++j) {
    const float scale = d * static_cast<float>(iq4_scale(b, j) - 32);
    for (int i = 0; i < 32; ++i)
      x[j * 32 + i] = scale * static_cast<float>(iq4_values[static_cast<size_t>(nibble(b.q[j * 16 + i % 16], i / 16))]);
  }
}

void decode(const BlockMXFP4& b, float* x) {
  const float d = e8m0_half(b.e);
  for (int i = 0; i < block_size; ++i)
    x[i] = d * static_cast<float>(fp4_doubled[static_cast<size_t>(nibble(b.q[i % 16], i / 16))]);
}

template <class Block>
void decode_blocks(const std::byte* from, float* to, int64_t columns) {
  for (int64_t i = 0; i < columns; i += Block::size, from += sizeof(Block)) decode(load_block<Block>(from), to + i);
}

// A planar row (tensor/activations.hpp), read at any address.
void decode_activations(const std::byte* from, float* to, int64_t columns, int parts) {
  for (int64_t i = 0; i < columns; ++i) {
    const auto scale = load_block<float>(from + parts * columns + i / 32 * static_cast<int64_t>(sizeof(float)));
    float q = load_block<int8_t>(from + i);
    if (parts == 2) q += static_cast<float>(load_block<int8_t>(from + columns + i)) / 256;
    to[i] = scale * q;
  }
}

template <class T>
void decode_plain(const std::byte* from, float* to, int64_t columns) {
  for (int64_t i = 0; i < columns; ++i) {
    const T x = load_block<T>(from + i * static_cast<int64_t>(sizeof(T)));
    if constexpr (std::is_arithmetic_v<T>)
      to[i] = static_cast<float>(x);
    else
      to[i] = to_float(x);
  }
}

}  // namespace

void decode_row(DType type, const std::byte* from, float* to, int64_t columns) {
  if (row_bytes(type, columns) == 0) return;  // and refuses rows of broken blocks
  switch (type) {
    case DType::f32:
      std::memcpy(to, from, static_cast<size_t>(columns) * sizeof(float));
      return;
    case DType::f16:
      return decode_plain<Half>(from, to, columns);
    case DType::bf16:
      return decode_plain<BFloat16>(from, to, columns);
    case DType::f64:
      return decode_plain<double>(from, to, columns);
    case DType::i8:
      return decode_plain<int8_t>(from, to, columns);
    case DType::i16:
      return decode_plain<int16_t>(from, to, columns);
    case DType::i32:
      return decode_plain<int32_t>(from, to, columns);
    case DType::i64:
      return decode_plain<int64_t>(from, to, columns);
    case DType::u8:
      return decode_plain<uint8_t>(from, to, columns);
    case DType::boolean:
      for (int64_t i = 0; i < columns; ++i) to[i] = from[i] == std::byte{0} ? 0.f : 1.f;
      return;
    case DType::q8_0:
      return decode_blocks<BlockQ8_0>(from, to, columns);
    case DType::q4_0:
      return decode_blocks<BlockQ4_0>(from, to, columns);
    case DType::q4_1:
      return decode_blocks<BlockQ4_1>(from, to, columns);
    case DType::q5_0:
      return decode_blocks<BlockQ5_0>(from, to, columns);
    case DType::q5_1:
      return decode_blocks<BlockQ5_1>(from, to, columns);
    case DType::q2_k:
      return decode_blocks<BlockQ2_K>(from, to, columns);
    case DType::q3_k:
      return decode_blocks<BlockQ3_K>(from, to, columns);
    case DType::q4_k:
      return decode_blocks<BlockQ4_K>(from, to, columns);
    case DType::q5_k:
      return decode_blocks<BlockQ5_K>(from, to, columns);
    case DType::q6_k:
      return decode_blocks<BlockQ6_K>(from, to, columns);
    case DType::iq4_nl:
      return decode_blocks<BlockIQ4_NL>(from, to, columns);
    case DType::iq4_xs:
      return decode_blocks<BlockIQ4_XS>(from, to, columns);
    case DType::mxfp4:
      return decode_blocks<BlockMXFP4>(from, to, columns);
    case DType::q8_x:
      return decode_activations(from, to, columns, 1);
    case DType::q16_x:
      return decode_activations(from, to, columns, 2);
  }
  throw_error(Exit::failed, "decode_row: no such type: {}", static_cast<int>(type));
}

}  // namespace consonant
