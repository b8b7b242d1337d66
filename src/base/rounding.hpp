// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace consonant {

// a * b and a + b, each rounded by itself. The program is compiled so that this holds anyway, but the compilers of
// accelerators fuse the two where they can.
template <class T>
constexpr T rounded_mul(T a, T b) {
#if defined(__CUDA_ARCH__)
  if constexpr (sizeof(T) == sizeof(float)) return __fmul_rn(a, b);
  return __dmul_rn(a, b);
#else
#ifdef __clang__
#pragma clang fp contract(off)
#endif
  return a * b;
#endif
}
template <class T>
constexpr T rounded_add(T a, T b) {
#if defined(__CUDA_ARCH__)
  if constexpr (sizeof(T) == sizeof(float)) return __fadd_rn(a, b);
  return __dadd_rn(a, b);
#else
#ifdef __clang__
#pragma clang fp contract(off)
#endif
  return a + b;
#endif
}

}  // namespace consonant
