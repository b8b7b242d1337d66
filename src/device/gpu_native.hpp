// SPDX-License-Identifier: Apache-2.0
#pragma once

// device/gpu.hpp's names on CUDA and HIP.
#include "base/error.hpp"

#ifdef __HIPCC__
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#else
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#endif

#define GPU_FN __device__ __forceinline__
#define GPU_KERNEL __device__ __forceinline__
#define GPU_SHARED(type, name, count) __shared__ type name[count]
// One a kernel; as many elements as the launch gave bytes for.
#define GPU_DYNAMIC_SHARED(type, name) type* const name = reinterpret_cast<type*>(gpu::dynamic_shared())
#define GPU_UNROLL _Pragma("unroll")
#define GPU_UNROLL_BY(n) GPU_PRAGMA(unroll n)
#define GPU_PRAGMA(words) _Pragma(#words)

namespace consonant::GPU_BUILD::gpu {

#if defined(__HIPCC__) && defined(__HIP_DEVICE_COMPILE__)
constexpr int lane_width = __AMDGCN_WAVEFRONT_SIZE;
#else
constexpr int lane_width = 32;
#endif

template <class T>
using Ptr = T*;
template <class T>
using Shared = T*;  // shared memory as an argument of a GPU_FN

GPU_FN int64_t block() { return blockIdx.x; }
GPU_FN int64_t block_y() { return blockIdx.y; }
GPU_FN int64_t block_z() { return blockIdx.z; }
GPU_FN int64_t blocks() { return gridDim.x; }
GPU_FN int thread() { return static_cast<int>(threadIdx.x); }
GPU_FN int threads() { return static_cast<int>(blockDim.x); }
GPU_FN int lane() { return thread() % lane_width; }
GPU_FN int warp() { return thread() / lane_width; }
GPU_FN int warps() { return threads() / lane_width; }
GPU_FN void sync() { __syncthreads(); }

#ifdef __HIPCC__
template <class T>
GPU_FN T shfl(T x, int lane) {
  return __shfl(x, lane);
}
template <class T>
GPU_FN T shfl_xor(T x, int mask) {
  return __shfl_xor(x, mask);
}
GPU_FN uint64_t ballot(bool yes) { return __ballot(yes); }
#else
template <class T>
GPU_FN T shfl(T x, int lane) {
  return __shfl_sync(0xFFFFFFFFu, x, lane);
}
template <class T>
GPU_FN T shfl_xor(T x, int mask) {
  return __shfl_xor_sync(0xFFFFFFFFu, x, mask);
}
GPU_FN uint64_t ballot(bool yes) { return __ballot_sync(0xFFFFFFFFu, yes); }
#endif

GPU_FN unsigned char* dynamic_shared() {
  extern __shared__ __align__(16) unsigned char shared_bytes[];
  return shared_bytes;
}

GPU_FN int popcount(uint64_t bits) { return __popcll(bits); }
GPU_FN void atomic_add(Shared<uint32_t> p, uint32_t x) { atomicAdd(p, x); }
GPU_FN void atomic_add(Shared<uint64_t> p, uint64_t x) {
  atomicAdd(reinterpret_cast<unsigned long long*>(p), static_cast<unsigned long long>(x));
}

struct alignas(16) U4 {
  uint32_t x, y, z, w;
};
template <class T>
GPU_FN U4 load16(Ptr<T> p) {
  return *reinterpret_cast<const U4*>(p);
}
template <class T>
GPU_FN void store16(Ptr<T> p, const U4& v) {
  *reinterpret_cast<U4*>(p) = v;
}

// The same memory as elements of another type.
template <class U, class T>
GPU_FN U* cast(T* p) {
  return reinterpret_cast<U*>(p);
}

GPU_FN float from_bits(uint32_t bits) { return __uint_as_float(bits); }
GPU_FN uint32_t to_bits(float x) { return __float_as_uint(x); }
GPU_FN float from_half(uint16_t bits) { return __half2float(__ushort_as_half(bits)); }
GPU_FN uint16_t half_bits(float x) { return __half_as_ushort(__float2half_rn(x)); }

// With launch_early, a kernel starts while the one before it still runs, and must call this before it touches anything
// that another kernel writes.
GPU_FN void wait_for_inputs() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}

// Asks for the line of 128 bytes around p, so that it is in the cache when it is read.
template <class T>
GPU_FN void prefetch(Ptr<T> p) {
#ifdef __CUDA_ARCH__
  asm volatile("prefetch.global.L2 [%0];" ::"l"(p));
#endif
}

struct Grid {
  int64_t x = 1, y = 1, z = 1;
};

#ifdef __HIPCC__
using Stream = hipStream_t;
#else
using Stream = cudaStream_t;
#endif

template <auto F, int Threads, bool Early, int Blocks, class... Args>
__global__ void __launch_bounds__(Threads, Blocks) entry(Progress progress, Args... args) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
  if (progress.counter && blockIdx.x == 0 && blockIdx.y == 0 && blockIdx.z == 0 && threadIdx.x == 0)
    *const_cast<volatile uint32_t*>(progress.counter) = progress.node;
  if constexpr (!Early) wait_for_inputs();
  F(args...);
}

// Throws Exit::stalled with the vendor's words.
void check_launch(const char* what);

template <auto F, int Threads, bool Early = false, int Blocks = 1, class... Args>
void launch(Accelerator& device, Grid grid, int64_t shared, Args... args) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  const auto kernel = entry<F, Threads, Early, Blocks, Args...>;
  const dim3 blocks(static_cast<unsigned>(grid.x), static_cast<unsigned>(grid.y), static_cast<unsigned>(grid.z));
  const auto stream = static_cast<Stream>(device.stream());
  device.count_launch();
#ifdef __HIPCC__
  hipLaunchKernelGGL(kernel, blocks, dim3(Threads), static_cast<unsigned>(shared), stream, device.progress(), args...);
#else
  if (shared > 32 * 1024)  // with what the kernel declares itself it may be more than 48 KB
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared));
  cudaLaunchConfig_t config = {};
  config.gridDim = blocks, config.blockDim = dim3(Threads);
  config.dynamicSmemBytes = static_cast<size_t>(shared), config.stream = stream;
  cudaLaunchAttribute early[1];
  early[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early[0].val.programmaticStreamSerializationAllowed = 1;
  config.attrs = early, config.numAttrs = device.limits().compute >= 90 ? 1 : 0;
  cudaLaunchKernelEx(&config, kernel, device.progress(), args...);
#endif
  check_launch(__PRETTY_FUNCTION__);
}

template <auto F, int Threads, class... Args>
void launch_early(Accelerator& device, Grid grid, int64_t shared, Args... args) {
  launch<F, Threads, true>(device, grid, shared, args...);
}

// A kernel of which `Blocks` blocks, its own or those of the kernels before and after it, are to fit a processor.
template <auto F, int Threads, int Blocks, class... Args>
void launch_early(Accelerator& device, Grid grid, int64_t shared, Args... args) {
  launch<F, Threads, true, Blocks>(device, grid, shared, args...);
}

// The memory of a value, for a kernel's argument. On the emulator it knows its end.
template <class T>
Ptr<T> pointer(std::byte* data, int64_t) {
  return reinterpret_cast<T*>(data);
}

}  // namespace consonant::GPU_BUILD::gpu
