// SPDX-License-Identifier: Apache-2.0
#include "tensor/validate.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "tensor/blocks.hpp"

namespace consonant {

namespace {

// Nonzero for NaN and infinity, whose five exponent bits are all set: one more in the exponent carries into bit 15.
uint32_t nonfinite(Half x) { return ((x.bits & 0x7C00u) + 0x0400u) & 0x8000u; }

uint32_t nonfinite(const BlockMXFP4& b) { return b.e == 255; }

template <class Block>
uint32_t nonfinite(const Block& b) {
  if constexpr (requires { b.dmin; })
    return nonfinite(b.d) | nonfinite(b.dmin);
  else if constexpr (requires { b.m; })
    return nonfinite(b.d) | nonfinite(b.m);
  else
    return nonfinite(b.d);
}

// Groups are looked at without a branch a block; only one that holds a culprit is searched.
template <class Block>
std::optional<int64_t> find(const std::byte* blocks, int64_t count) {
  constexpr int64_t group = 1024, stride = sizeof(Block);
  for (int64_t begin = 0; begin < count; begin += group) {
    const int64_t end = std::min(begin + group, count);
    uint32_t bad = 0;
    for (int64_t i = begin; i < end; ++i) bad |= nonfinite(load_block<Block>(blocks + i * stride));
    if (bad == 0) continue;
    for (int64_t i = begin; i < end; ++i)
      if (nonfinite(load_block<Block>(blocks + i * stride)) != 0) return i;
  }
  return std::nullopt;
}

}  // namespace

std::optional<int64_t> find_nonfinite_scale(DType type, const std::byte* blocks, int64_t count) {
  switch (type) {
    case DType::q8_0:
      return find<BlockQ8_0>(blocks, count);
    case DType::q4_0:
      return find<BlockQ4_0>(blocks, count);
    case DType::q4_1:
      return find<BlockQ4_1>(blocks, count);
    case DType::q5_0:
      return find<BlockQ5_0>(blocks, count);
    case DType::q5_1:
      return find<BlockQ5_1>(blocks, count);
    case DType::q2_k:
      return find<BlockQ2_K>(blocks, count);
    case DType::q3_k:
      return find<BlockQ3_K>(blocks, count);
    case DType::q4_k:
      return find<BlockQ4_K>(blocks, count);
    case DType::q5_k:
      return find<BlockQ5_K>(blocks, count);
    case DType::q6_k:
      return find<BlockQ6_K>(blocks, count);
    case DType::iq4_nl:
      return find<BlockIQ4_NL>(blocks, count);
    case DType::iq4_xs:
      return find<BlockIQ4_XS>(blocks, count);
    case DType::mxfp4:
      return find<BlockMXFP4>(blocks, count);
    default:
      return std::nullopt;
  }
}

void check_finite_scales(std::string_view name, DType type, std::span<const std::byte> bytes, int64_t columns) {
  if (!is_quantized(type)) return;
  const int64_t stride = row_bytes(type, columns);
  if (stride == 0) return;
  const int64_t rows = static_cast<int64_t>(bytes.size()) / stride, blocks_a_row = columns / info(type).block;
  const auto bad = find_nonfinite_scale(type, bytes.data(), rows * blocks_a_row);
  if (bad)
    bad_input("tensor {} ({}): NaN or infinite scale in row {}, block {}; a sound file has finite scales", name,
              consonant::name(type), *bad / blocks_a_row, *bad % blocks_a_row);
}

}  // namespace consonant
