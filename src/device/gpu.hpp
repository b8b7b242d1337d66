// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the source of a kernel may use: one file x.gpu.cpp is compiled as CUDA, as HIP, and as C++ for the emulator at
// 32 and at 64 lanes. Each build has a namespace of its own, GPU_BUILD (cuda, hip, emu32, emu64), so that several live
// in one program.
//
//   template <class T>
//   GPU_KERNEL void scale(gpu::Ptr<const T> x, gpu::Ptr<T> y, int64_t n, float factor) {
//     const int64_t i = gpu::block() * gpu::threads() + gpu::thread();
//     if (i < n) y[i] = x[i] * factor;
//   }
//   ...
//   gpu::launch<scale<float>, 256>(device, {ceil_div(n, 256)}, 0, x, y, n, factor);
//
// Rules, which the emulator enforces:
//   - Global memory is reached through gpu::Ptr alone, never past the tensor it was made from.
//   - All threads of a block reach the same sync(), and all lanes of a warp the same shuffle: no early return before
//   one.
//   - Shared memory is declared with GPU_SHARED or GPU_DYNAMIC_SHARED, written before it is read, and a sync() lies
//   between
//     a write and another thread's access.
//   - Blocks don't wait for each other.
// What is not `static` or a template in a kernel's file goes into an anonymous namespace.
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "base/rounding.hpp"
#include "device/accelerator.hpp"

#ifdef GPU_EMULATED
#include "device/emu/gpu_emu.hpp"
#else
#include "device/gpu_native.hpp"
#endif

namespace consonant::GPU_BUILD::gpu {

// The devices of this build.
extern const DeviceKind device_kind;
int device_count();
std::unique_ptr<Accelerator> open_device(int index);

// The names that both give:
//   lane_width                           lanes of a warp
//   block(), block_y(), block_z(), blocks(), thread(), threads(), lane(), warp(), warps()
//   sync()                               all threads of the block
//   shfl(x, lane), shfl_xor(x, mask)     of 4-byte values, all lanes of the warp taking part
//   ballot(yes)                          a bit for each lane of the warp, all of them taking part
//   popcount(bits)
//   atomic_add(p, x)                     to a 4- or 8-byte integer in shared memory
//   Ptr<T>, load16(p), store16(p, x)     a pointer into global memory; 16 aligned bytes as a U4
//   cast<U>(p)                           the same memory as elements of type U
//   GPU_SHARED(T, name, count), GPU_DYNAMIC_SHARED(T, name)
//   launch<kernel, threads>(device, Grid, dynamic shared bytes, arguments...)
//   wait_for_inputs()                    see launch_early
//   prefetch(p)                          asks for memory that will be read
//   half_bits(x), from_half(bits)        binary16, rounded to nearest even

GPU_FN float exp(float x) { return ::expf(x); }
GPU_FN float log(float x) { return ::logf(x); }
GPU_FN float log1p(float x) { return ::log1pf(x); }
GPU_FN float log10(float x) { return ::log10f(x); }
GPU_FN float sqrt(float x) { return ::sqrtf(x); }
GPU_FN float tanh(float x) { return ::tanhf(x); }
GPU_FN float erf(float x) { return ::erff(x); }
GPU_FN float sin(float x) { return ::sinf(x); }
GPU_FN float cos(float x) { return ::cosf(x); }
GPU_FN float abs(float x) { return ::fabsf(x); }
GPU_FN float fma(float a, float b, float c) { return ::fmaf(a, b, c); }
// To the nearest integer, halves to even.
GPU_FN float round_even(float x) { return ::rintf(x); }
// a * b and a + b rounded each, whatever the compiler would fuse.
GPU_FN float mul(float a, float b) { return rounded_mul(a, b); }
GPU_FN float add(float a, float b) { return rounded_add(a, b); }

// Byte i of the result is the one of a's and b's eight that nibble i (0 ... 7) of the selector names.
GPU_FN uint32_t byte_perm(uint32_t a, uint32_t b, uint32_t selector) {
#ifdef __CUDA_ARCH__
  return __byte_perm(a, b, selector);
#else
  const uint64_t both = static_cast<uint64_t>(b) << 32 | a;
  uint32_t bytes = 0;
  for (int i = 0; i < 4; ++i) bytes |= (static_cast<uint32_t>(both >> (selector >> 4 * i & 7) * 8) & 255) << 8 * i;
  return bytes;
#endif
}

// (x & mask) | bits: one instruction, which CUDA's compiler makes two of.
GPU_FN uint32_t and_or(uint32_t x, uint32_t mask, uint32_t bits) {
#ifdef __CUDA_ARCH__
  uint32_t y;
  asm("lop3.b32 %0, %1, %2, %3, 0xEA;" : "=r"(y) : "r"(x), "r"(mask), "r"(bits));
  return y;
#else
  return (x & mask) | bits;
#endif
}

// Byte i of the word, less `offset`, as a number. On CUDA without a conversion, which is slow: it becomes the last bits
// of 2^23.
GPU_FN float byte_less(uint32_t word, int i, int offset) {
#ifdef __CUDA_ARCH__
  return from_bits(byte_perm(word, 0x4B000000, 0x7440 | i)) - static_cast<float>(0x800000 + offset);
#else
  return static_cast<float>(word >> 8 * i & 255) - static_cast<float>(offset);
#endif
}

GPU_FN float bfloat_from(uint16_t bits) { return from_bits(static_cast<uint32_t>(bits) << 16); }

// Over a warp; every lane has the result. The order is fixed, but another at 64 lanes than at 32.
GPU_FN float warp_sum(float x) {
  for (int mask = lane_width / 2; mask > 0; mask /= 2) x += shfl_xor(x, mask);
  return x;
}
GPU_FN float warp_max(float x) {
  for (int mask = lane_width / 2; mask > 0; mask /= 2) {
    const float other = shfl_xor(x, mask);
    x = other > x ? other : x;
  }
  return x;
}

// Over a block of up to 1024 threads, a multiple of lane_width; every thread has the result.
GPU_FN float block_sum(float x) {
  GPU_SHARED(float, parts, 32);
  x = warp_sum(x);
  sync();  // the parts of an earlier call have been read
  if (lane() == 0) parts[warp()] = x;
  sync();
  float sum = 0;
  for (int w = 0; w < warps(); ++w) sum += parts[w];
  return sum;
}
GPU_FN float block_max(float x) {
  GPU_SHARED(float, parts, 32);
  x = warp_max(x);
  sync();
  if (lane() == 0) parts[warp()] = x;
  sync();
  float most = parts[0];
  for (int w = 1; w < warps(); ++w) most = parts[w] > most ? static_cast<float>(parts[w]) : most;
  return most;
}

}  // namespace consonant::GPU_BUILD::gpu
