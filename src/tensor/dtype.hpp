// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace consonant {

// Element types of tensors. The quantised ones are ggml's block formats: `block` consecutive elements of a row share
// `block_bytes` bytes (formats: ggml's quantisation notes; MXFP4: OCP Microscaling 1.0).
enum class DType : uint8_t {
  f32,
  f16,
  bf16,
  f64,
  i8,
  i16,
  i32,
  i64,
  u8,
  boolean,
  q8_0,
  q4_0,
  q4_1,
  q5_0,
  q5_1,
  q2_k,
  q3_k,
  q4_k,
  q5_k,
  q6_k,
  iq4_nl,
  iq4_xs,
  mxfp4,
  q8_x,  // activations on their way into a product (tensor/activations.hpp); never stored in a file
  q16_x  // the same in two parts of 8 bits
};

inline constexpr int dtype_count = 25;

struct DTypeInfo {
  std::string_view name;  // lower case, as `--type` and reports write it: "q4_k"
  int block;              // elements a block; 1 for plain types
  int block_bytes;
};

const DTypeInfo& info(DType type);
inline std::string_view name(DType type) { return info(type).name; }
inline bool is_quantized(DType type) { return info(type).block > 1; }
inline bool is_float(DType type) {
  return type == DType::f32 || type == DType::f16 || type == DType::bf16 || type == DType::f64;
}

std::optional<DType> find_dtype(std::string_view name);

// Bytes of a row of `columns` elements; bad input if `columns` is negative, not a multiple of the block, or too large.
int64_t row_bytes(DType type, int64_t columns);

}  // namespace consonant
