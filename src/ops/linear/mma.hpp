// SPDX-License-Identifier: Apache-2.0
#pragma once

// Tensor cores (CUDA from compute capability 8.0 on; on the emulator what they do, for tests), pairs of halves in a
// word, and copies to shared memory that run by themselves.
#include "device/gpu.hpp"

namespace consonant::GPU_BUILD::mma {

#ifndef GPU_EMULATED

GPU_FN uint32_t half2_fma(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t d;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
}
GPU_FN uint32_t half2_mul(uint32_t a, uint32_t b) {
  uint32_t d;
  asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
  return d;
}
GPU_FN uint32_t half2_sub(uint32_t a, uint32_t b) {
  uint32_t d;
  asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
  return d;
}
GPU_FN uint32_t half2(float low, float high) {
  uint32_t d;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(high), "f"(low));
  return d;
}
GPU_FN uint32_t bfloat2(float low, float high) {
  uint32_t d;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(high), "f"(low));
  return d;
}

// The largest of a warp's, for every lane.
GPU_FN uint32_t warp_max_bits(uint32_t x) { return __reduce_max_sync(0xFFFFFFFFu, x); }

// Between a warp's accesses to shared memory that another lane of it wrote or will write.
GPU_FN void warp_sync() { __syncwarp(); }

// Starts a copy of 16 aligned bytes to shared memory; zeros if not `valid`.
GPU_FN void copy16(gpu::Shared<uint8_t> to, gpu::Ptr<const uint8_t> from, bool valid = true) {
  const auto at = static_cast<uint32_t>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(valid ? 16 : 0) : "memory");
}
// The same of the first `bytes`, with zeros behind them.
GPU_FN void copy_part16(gpu::Shared<uint8_t> to, gpu::Ptr<const uint8_t> from, int bytes) {
  const auto at = static_cast<uint32_t>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from),
               "r"(bytes < 0    ? 0
                   : bytes > 16 ? 16
                                : bytes)
               : "memory");
}
// The same for a word.
GPU_FN void copy4(gpu::Shared<float> to, gpu::Ptr<const float> from) {
  const auto at = static_cast<uint32_t>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(at), "l"(from) : "memory");
}
// This thread's copies since the last call become a batch.
GPU_FN void end_batch() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Until all of this thread's batches but the newest `Pending` are there.
template <int Pending>
GPU_FN void wait_for_batches() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}

// Four matrices of 8 rows x 16 bytes in shared memory, of which lane l says where row l % 8 of matrix l / 8 begins (in
// bytes from `from`): to[i] is word lane % 4 of row lane / 4 of matrix i.
GPU_FN void load_matrices(uint32_t (&to)[4], gpu::Shared<const uint8_t> from, int at) {
  const uint32_t address = static_cast<uint32_t>(__cvta_generic_to_shared(from)) + at;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(address)
               : "memory");
}

// The same, each matrix of halves turned: to[i] is column lane / 4 of rows 2 (lane % 4) and the next of matrix i.
GPU_FN void load_turned(uint32_t (&to)[4], gpu::Shared<const uint8_t> from, int at) {
  const uint32_t address = static_cast<uint32_t>(__cvta_generic_to_shared(from)) + at;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(address)
               : "memory");
}

// 2^x, to about 22 bits.
GPU_FN float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// c [16, 8] += a [16, 16] b [16, 8]. With g = lane / 4 and t = lane % 4, a lane has of a the rows g and g + 8 at k of
// 2 t, 2 t + 1 (words 0, 1) and at k of 2 t + 8, 2 t + 9 (words 2, 3), of b column g at the same k (b0 and b1), and of
// c the rows g (0, 1) and g + 8 (2, 3) at columns 2 t and 2 t + 1.
template <bool Bfloat>
GPU_FN void multiply(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  if constexpr (Bfloat)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Whole numbers: c [16, 8] += a [16, 32] b [32, 8], of signed bytes. A lane has of a four neighbours from k of 4 t
// (words 0, 1) and of 4 t + 16 (words 2, 3), of rows and of b and c as above.
GPU_FN void multiply_bytes(int32_t (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
// One half of it: k of 16.
GPU_FN void multiply_bytes(int32_t (&c)[4], uint32_t a0, uint32_t a1, uint32_t b) {
  asm("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
      : "r"(a0), "r"(a1), "r"(b));
}

#else

GPU_FN float half_of(uint32_t pair, int i) { return gpu::from_half(static_cast<uint16_t>(pair >> 16 * i)); }
GPU_FN uint32_t half2(float low, float high) {
  return gpu::half_bits(low) | static_cast<uint32_t>(gpu::half_bits(high)) << 16;
}
GPU_FN uint32_t half2_fma(uint32_t a, uint32_t b, uint32_t c) {
  return half2(half_of(a, 0) * half_of(b, 0) + half_of(c, 0), half_of(a, 1) * half_of(b, 1) + half_of(c, 1));
}
GPU_FN uint32_t half2_mul(uint32_t a, uint32_t b) {
  return half2(half_of(a, 0) * half_of(b, 0), half_of(a, 1) * half_of(b, 1));
}
GPU_FN uint32_t half2_sub(uint32_t a, uint32_t b) {
  return half2(half_of(a, 0) - half_of(b, 0), half_of(a, 1) - half_of(b, 1));
}
GPU_FN uint32_t bfloat_bits(float x) {
  const uint32_t bits = gpu::to_bits(x);
  return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
}
GPU_FN uint32_t bfloat2(float low, float high) { return bfloat_bits(low) | bfloat_bits(high) << 16; }

GPU_FN uint32_t warp_max_bits(uint32_t x) {
  for (int mask = gpu::lane_width / 2; mask > 0; mask /= 2) {
    const uint32_t other = gpu::shfl_xor(x, mask);
    x = other > x ? other : x;
  }
  return x;
}
GPU_FN void warp_sync() { gpu::shfl(0, 0); }

GPU_FN void copy16(gpu::Shared<uint8_t> to, gpu::Ptr<const uint8_t> from, bool valid = true) {
  gpu::store16(to, valid ? gpu::load16(from) : gpu::U4{0, 0, 0, 0});
}
GPU_FN void copy_part16(gpu::Shared<uint8_t> to, gpu::Ptr<const uint8_t> from, int bytes) {
  for (int i = 0; i < 16; ++i) to[i] = i < bytes ? from[i] : uint8_t{0};
}
GPU_FN void copy4(gpu::Shared<float> to, gpu::Ptr<const float> from) { *to = *from; }
GPU_FN void end_batch() {}
template <int Pending>
GPU_FN void wait_for_batches() {}

GPU_FN void load_matrices(uint32_t (&to)[4], gpu::Shared<const uint8_t> from, int at) {
  for (int i = 0; i < 4; ++i) {
    const int row = gpu::shfl(at, 8 * i + gpu::lane() / 4);
    to[i] = gpu::cast<const uint32_t>(from + row)[gpu::lane() % 4];
  }
}
GPU_FN void load_turned(uint32_t (&to)[4], gpu::Shared<const uint8_t> from, int at) {
  for (int i = 0; i < 4; ++i) {
    uint32_t halves[2];
    for (int j = 0; j < 2; ++j) {
      const int row = gpu::shfl(at, 8 * i + gpu::lane() % 4 * 2 + j);
      halves[j] = gpu::cast<const uint16_t>(from + row)[gpu::lane() / 4];
    }
    to[i] = halves[0] | halves[1] << 16;
  }
}
GPU_FN float exp2_fast(float x) { return ::exp2f(x); }

template <bool Bfloat>
GPU_FN void multiply(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  const auto number = [](uint32_t pair, int i) -> double {
    return Bfloat ? gpu::bfloat_from(static_cast<uint16_t>(pair >> 16 * i)) : half_of(pair, i);
  };
  const int g = gpu::lane() / 4, t = gpu::lane() % 4;
  double sums[4] = {c[0], c[1], c[2], c[3]};
  for (int i = 0; i < 4; ++i)      // the lane of a row that has the k
    for (int h = 0; h < 2; ++h) {  // lower or upper k
      const uint32_t rows[2] = {gpu::shfl(a[2 * h], 4 * g + i), gpu::shfl(a[2 * h + 1], 4 * g + i)};
      const uint32_t b = h ? b1 : b0;
      const uint32_t columns[2] = {gpu::shfl(b, 8 * t + i), gpu::shfl(b, 8 * t + 4 + i)};
      for (int out = 0; out < 4; ++out)
        for (int j = 0; j < 2; ++j) sums[out] += number(rows[out / 2], j) * number(columns[out % 2], j);
    }
  for (int out = 0; out < 4; ++out) c[out] = static_cast<float>(sums[out]);
}

GPU_FN void multiply_bytes(int32_t (&c)[4], uint32_t a0, uint32_t a1, uint32_t b) {
  const auto byte = [](uint32_t word, int i) { return static_cast<int32_t>(static_cast<int8_t>(word >> 8 * i)); };
  const int g = gpu::lane() / 4, t = gpu::lane() % 4;
  for (int i = 0; i < 4; ++i) {  // the lane of a row that has the k
    const uint32_t rows[2] = {gpu::shfl(a0, 4 * g + i), gpu::shfl(a1, 4 * g + i)};
    const uint32_t columns[2] = {gpu::shfl(b, 8 * t + i), gpu::shfl(b, 8 * t + 4 + i)};
    for (int out = 0; out < 4; ++out)
      for (int j = 0; j < 4; ++j) c[out] += byte(rows[out / 2], j) * byte(columns[out % 2], j);
  }
}
GPU_FN void multiply_bytes(int32_t (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  multiply_bytes(c, a[0], a[1], b0);
  multiply_bytes(c, a[2], a[3], b1);
}

#endif

}  // namespace consonant::GPU_BUILD::mma
