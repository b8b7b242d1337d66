// SPDX-License-Identifier: Apache-2.0
#pragma once

// A matrix of any type that is decoded element by element: what reads it once has no use for more.
#include <type_traits>

#include "base/error.hpp"
#include "ops/gpu_rows.hpp"
#include "ops/packed_gpu.hpp"

namespace consonant::GPU_BUILD {

// A weight as it lies on an accelerator, or a value, which is of plain type.
template <DType Type>
struct Matrix {
  static constexpr bool packed = has_blocks(Type);
  static constexpr int run = packed ? 4 : 1;  // neighbours that are decoded together

  gpu::Ptr<const std::conditional_t<packed, uint32_t, Stored<Type>>> data;
  int64_t stride = 0;  // of rows, or of their groups
  int64_t blocks = 0;  // of a row, if packed

  // fn(column, value) for the neighbours in run `at` of a row.
  template <class F>
  GPU_FN void read(int64_t row, int64_t at, const F& fn) const {
    if constexpr (packed) {
      const PackedGroup<Type> group = {data + row / 8 * stride, blocks};
      const Four four = group.decode(at / 8, static_cast<int>(at % 8), static_cast<int>(row % 8));
      GPU_UNROLL
      for (int i = 0; i < 4; ++i) fn(4 * at + i, four.x[i]);
    } else {
      fn(at, plain_value<Type>((data + row * stride)[at]));
    }
  }
};

template <DType Type>
Matrix<Type> matrix_of(const View& v) {
  if constexpr (Matrix<Type>::packed) {
    const PackedShape shape = packed_shape(v.type, v.shape[0], v.shape[1]);
    return {pointer<const uint32_t>(v), shape.group_bytes / 4, shape.k / 32};
  } else {
    return {pointer<const Stored<Type>>(v), v.strides[0], 0};
  }
}

// fn(std::integral_constant<DType, type>()), for the types that a matrix may have.
template <class F>
void with_matrix_type(DType type, const F& fn) {
  switch (type) {
#define CONSONANT_TYPE(name) \
  case DType::name:          \
    return fn(std::integral_constant<DType, DType::name>());
    CONSONANT_TYPE(f32)
    CONSONANT_TYPE(f16)
    CONSONANT_TYPE(bf16)
    CONSONANT_TYPE(q8_0)
    CONSONANT_TYPE(q4_0)
    CONSONANT_TYPE(q4_1)
    CONSONANT_TYPE(q5_0)
    CONSONANT_TYPE(q5_1)
    CONSONANT_TYPE(q2_k)
    CONSONANT_TYPE(q3_k)
    CONSONANT_TYPE(q4_k)
    CONSONANT_TYPE(q5_k)
    CONSONANT_TYPE(q6_k)
    CONSONANT_TYPE(iq4_nl)
    CONSONANT_TYPE(iq4_xs)
    CONSONANT_TYPE(mxfp4)
#undef CONSONANT_TYPE
    default:
      throw_error(Exit::failed, "a matrix can't be of type {}", name(type));
  }
}

}  // namespace consonant::GPU_BUILD
