// SPDX-License-Identifier: Apache-2.0
#pragma once

// Activations as operands of the tensor cores. A token's row is cut into units of 256 columns; each is multiplied with
// the power of two that brings its largest magnitude to 2^9 ... 2^10, so that halves neither overflow nor lose small
// values to subnormals (down to 2^-24 of the largest), and rounded once. All else is exact or float32. What a unit is
// becomes a record:
//
//   [8 blocks][4 t] sixteen bytes: what lane t of each row of the products wants of a block, in the order of
//                   mma_weights.hpp; for bfloats, whose 8 bits are too few, two such parts that add up to 16 bits
//   64 bytes        sums of the rounded activations, which minima multiply, in two halves that add up to 22 bits: high
//                   parts of the 8 blocks' sums, low parts; or those of 16 halves of blocks. They also keep the tokens
//                   64 bytes apart in the banks.
#include "ops/gpu_rows.hpp"
#include "ops/linear/mma_weights.hpp"

namespace consonant::GPU_BUILD::mma {

template <DType Type>
constexpr int parts = Type == DType::bf16 ? 2 : 1;
constexpr int part_bytes = unit_columns * 2;
template <DType Type>
constexpr int record_bytes = parts<Type>* part_bytes + 64;

GPU_FN Four four_of(const gpu::U4& bits) {
  return {{gpu::from_bits(bits.x), gpu::from_bits(bits.y), gpu::from_bits(bits.z), gpu::from_bits(bits.w)}};
}

// Four neighbouring activations of a token, zeros from the end of the row on; a policy of what multiplies the weights.
struct PlainInputs {
  Rows<const float> x;
  bool aligned;  // rows start at multiples of 16 bytes

  GPU_FN Four load(int token, int column) const {
    const auto row = x.row(token);
    const int cols = static_cast<int>(x.cols);
    Four four = {{0, 0, 0, 0}};
    if (aligned && column + 4 <= cols) {
      four = four_of(gpu::load16(row + column));
    } else {
      GPU_UNROLL
      for (int i = 0; i < 4; ++i)
        if (column + i < cols) four.x[i] = row[column + i];
    }
    return four;
  }
};

struct Powers {
  float scale, undo;  // powers of two, each the other's reciprocal
};
GPU_FN Powers powers(uint32_t max_bits) {
  uint32_t e = max_bits >> 23;
  if (e < 27) e = 27;
  return {gpu::from_bits((263 - e) << 23), gpu::from_bits((e - 9) << 23)};
}

GPU_FN uint32_t magnitude_bits(float x) { return gpu::to_bits(x) & 0x7FFFFFFFu; }

// Writes the sums of a block, of which a quad of lanes has one quarter each.
template <DType Type, class Bytes>
GPU_FN void write_sums(float first, float second, int b, int t, Bytes record) {
  constexpr bool halves = block_layout(Type).halves();
  first += gpu::shfl_xor(first, 1), second += gpu::shfl_xor(second, 1);
  first += gpu::shfl_xor(first, 2), second += gpu::shfl_xor(second, 2);
  const auto sums = gpu::cast<uint16_t>(record + parts<Type> * part_bytes);
  const auto write = [&](float sum, int i) {
    const uint16_t high = gpu::half_bits(sum);
    sums[i] = high;
    sums[i + (halves ? 16 : 8)] = gpu::half_bits(sum - gpu::from_half(high));
  };
  if (t != 0) return;
  if constexpr (halves)
    write(first, 2 * b), write(second, 2 * b + 1);
  else
    write(first + second, b);
}

// A warp makes the record of a unit of a token; `record` is in shared or in global memory. The power that undoes its
// scaling is for every lane.
template <DType Type, class Inputs, class Bytes>
GPU_FN float make_record(const Inputs& inputs, int token, int unit, Bytes record) {
  constexpr bool blocks = has_blocks(Type);
  const int b = gpu::lane() / 4, t = gpu::lane() % 4, column = unit * unit_columns + 32 * b;
  const Four first = inputs.load(token, column + (blocks ? 4 : 8) * t);
  const Four second = inputs.load(token, column + (blocks ? 16 + 4 * t : 8 * t + 4));
  uint32_t most = 0;
  GPU_UNROLL
  for (int i = 0; i < 4; ++i) {
    const uint32_t x = magnitude_bits(first.x[i]), y = magnitude_bits(second.x[i]);
    most = x > most ? x : most;
    most = y > most ? y : most;
  }
  const Powers power = powers(warp_max_bits(most));
  float x[8];
  GPU_UNROLL
  for (int i = 0; i < 4; ++i) x[i] = first.x[i] * power.scale, x[4 + i] = second.x[i] * power.scale;
  GPU_UNROLL
  for (int part = 0; part < parts<Type>; ++part) {
    uint32_t words[4];
    GPU_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int low = blocks ? i / 2 * 4 + i % 2 : 2 * i, high = blocks ? low + 2 : low + 1;
      words[i] = Type == DType::bf16 ? bfloat2(x[low], x[high]) : half2(x[low], x[high]);
      const auto rounded = [&](int half) {
        const auto bits = static_cast<uint16_t>(words[i] >> 16 * half);
        return Type == DType::bf16 ? gpu::bfloat_from(bits) : gpu::from_half(bits);
      };
      if constexpr (parts<Type> == 2)
        x[low] -= rounded(0), x[high] -= rounded(1);
      else
        x[low] = rounded(0), x[high] = rounded(1);
    }
    gpu::store16(record + part * part_bytes + 16 * gpu::lane(), gpu::U4{words[0], words[1], words[2], words[3]});
  }
  if constexpr (block_layout(Type).minimum())
    write_sums<Type>(x[0] + x[1] + x[2] + x[3], x[4] + x[5] + x[6] + x[7], b, t, record);
  return power.undo;
}

}  // namespace consonant::GPU_BUILD::mma
