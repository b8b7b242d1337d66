// SPDX-License-Identifier: Apache-2.0
#include "tensor/encode.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.hpp"
#include "tensor/convert.hpp"
#include "tensor/fit.hpp"

// Plain blocks are rounded as ggml's reference does it, in the same order of operations, so that the bytes agree.

namespace consonant::encoding {

namespace {

struct Range {
  float low, high;
};

Range range_of(const float* x) {
  const auto [low, high] = std::minmax_element(x, x + block_size);
  return {*low, *high};
}

// Truncation of a nonnegative number, held to `high`: the callers add the half that makes it rounding.
int floor_up_to(float x, int high) { return static_cast<int>(std::clamp(x, 0.f, static_cast<float>(high))); }

void put_nibble(uint8_t* q, int i, int value) { q[i % 16] = static_cast<uint8_t>(q[i % 16] | value << i / 16 * 4); }

void put_five_bits(uint8_t* q, uint8_t* high, int i, int value) {
  put_nibble(q, i, value & 15);
  high[i / 8] = static_cast<uint8_t>(high[i / 8] | value >> 4 << i % 8);
}

}  // namespace

Half scale_half(float scale) {
  const Half half = to_half(scale);
  if ((half.bits & 0x7FFF) >= 0x7C00) bad_input("values too large to quantise: a block's scale would be {}", scale);
  return half;
}

void encode(const float* x, BlockQ8_0& block) {
  const float d = std::fabs(extreme({x, block_size})) / 127.f, id = inverse(d);
  block.d = scale_half(d);
  for (int i = 0; i < block_size; ++i)  // ties away from zero
    block.q[i] = static_cast<int8_t>(std::clamp(std::round(x[i] * id), -127.f, 127.f));
}

void encode(const float* x, BlockQ4_0& block) {
  const float d = extreme({x, block_size}) / -8.f, id = inverse(d);
  block.d = scale_half(d);
  for (int i = 0; i < block_size; ++i) put_nibble(block.q, i, floor_up_to(x[i] * id + 8.5f, 15));
}

void encode(const float* x, BlockQ4_1& block) {
  const Range range = range_of(x);
  const float d = (range.high - range.low) / 15.f, id = inverse(d);
  block.d = scale_half(d);
  block.m = scale_half(range.low);
  for (int i = 0; i < block_size; ++i) put_nibble(block.q, i, floor_up_to((x[i] - range.low) * id + 0.5f, 15));
}

void encode(const float* x, BlockQ5_0& block) {
  const float d = extreme({x, block_size}) / -16.f, id = inverse(d);
  block.d = scale_half(d);
  for (int i = 0; i < block_size; ++i) put_five_bits(block.q, block.high, i, floor_up_to(x[i] * id + 16.5f, 31));
}

void encode(const float* x, BlockQ5_1& block) {
  const Range range = range_of(x);
  const float d = (range.high - range.low) / 31.f, id = inverse(d);
  block.d = scale_half(d);
  block.m = scale_half(range.low);
  for (int i = 0; i < block_size; ++i)
    put_five_bits(block.q, block.high, i, floor_up_to((x[i] - range.low) * id + 0.5f, 31));
}

void encode(const float* x, BlockMXFP4& block) {
  // The extreme lands in [4, 8), FP4's last binade (its largest value is 6).
  const float end = std::fabs(extreme({x, block_size}));
  block.e = static_cast<uint8_t>(end > 0 ? std::clamp(std::ilogb(end) - 2 + 127, 0, 254) : 0);
  const float d = e8m0_half(block.e);
  for (int i = 0; i < block_size; ++i) {
    int best = 0;
    for (int k = 1; k < 16; ++k) {
      const auto error = [&](int j) {
        return std::fabs(static_cast<float>(fp4_doubled[static_cast<size_t>(j)]) * d - x[i]);
      };
      if (error(k) < error(best)) best = k;
    }
    put_nibble(block.q, i, best);
  }
}

}  // namespace consonant::encoding

namespace consonant {

namespace {

template <class Block>
void encode_blocks(const float* from, std::byte* to, int64_t columns) {
  for (int64_t i = 0; i < columns; i += Block::size, to += sizeof(Block)) {
    Block block{};
    encoding::encode(from + i, block);
    store_block(to, block);
  }
}

template <class T, class Convert>
void encode_plain(const float* from, std::byte* to, int64_t columns, Convert convert) {
  for (int64_t i = 0; i < columns; ++i) store_block<T>(to + i * static_cast<int64_t>(sizeof(T)), convert(from[i]));
}

void check_finite(DType type, const float* from, int64_t columns) {
  for (int64_t i = 0; i < columns; ++i)
    if (!std::isfinite(from[i])) bad_input("can't quantise {} (element {} of a row) to {}", from[i], i, name(type));
}

}  // namespace

// Activations (q8_x, q16_x) are encoded by the op that makes them.
bool can_encode(DType type) {
  return is_float(type) || (is_quantized(type) && type != DType::q8_x && type != DType::q16_x);
}

void encode_row(DType type, const float* from, std::byte* to, int64_t columns) {
  if (!can_encode(type)) bad_usage("there is no encoder for {}", name(type));
  if (row_bytes(type, columns) == 0) return;
  if (is_quantized(type)) check_finite(type, from, columns);
  switch (type) {
    case DType::f32:
      std::memcpy(to, from, static_cast<size_t>(columns) * sizeof(float));
      return;
    case DType::f16:
      return encode_plain<Half>(from, to, columns, to_half);
    case DType::bf16:
      return encode_plain<BFloat16>(from, to, columns, to_bfloat16);
    case DType::f64:
      return encode_plain<double>(from, to, columns, [](float x) { return static_cast<double>(x); });
    case DType::q8_0:
      return encode_blocks<BlockQ8_0>(from, to, columns);
    case DType::q4_0:
      return encode_blocks<BlockQ4_0>(from, to, columns);
    case DType::q4_1:
      return encode_blocks<BlockQ4_1>(from, to, columns);
    case DType::q5_0:
      return encode_blocks<BlockQ5_0>(from, to, columns);
    case DType::q5_1:
      return encode_blocks<BlockQ5_1>(from, to, columns);
    case DType::q2_k:
      return encode_blocks<BlockQ2_K>(from, to, columns);
    case DType::q3_k:
      return encode_blocks<BlockQ3_K>(from, to, columns);
    case DType::q4_k:
      return encode_blocks<BlockQ4_K>(from, to, columns);
    case DType::q5_k:
      return encode_blocks<BlockQ5_K>(from, to, columns);
    case DType::q6_k:
      return encode_blocks<BlockQ6_K>(from, to, columns);
    case DType::iq4_nl:
      return encode_blocks<BlockIQ4_NL>(from, to, columns);
    case DType::iq4_xs:
      return encode_blocks<BlockIQ4_XS>(from, to, columns);
    case DType::mxfp4:
      return encode_blocks<BlockMXFP4>(from, to, columns);
    default:
      throw_error(Exit::failed, "encode_row: no such type: {}", static_cast<int>(type));
  }
}

}  // namespace consonant
