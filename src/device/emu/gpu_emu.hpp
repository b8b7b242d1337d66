// SPDX-License-Identifier: Apache-2.0
#pragma once

// device/gpu.hpp's names on the emulator.
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "device/emu/block.hpp"
#include "device/emu/global_memory.hpp"
#include "device/emu/pointer.hpp"
#include "tensor/half.hpp"

#define GPU_FN inline
#define GPU_KERNEL inline
#define GPU_SHARED(type, name, count)                    \
  static constexpr char name##_site = 0;                 \
  const ::consonant::GPU_BUILD::gpu::Shared<type> name = \
      ::consonant::GPU_BUILD::gpu::shared_variable<type>(&name##_site, #name, count)
#define GPU_DYNAMIC_SHARED(type, name) \
  const ::consonant::GPU_BUILD::gpu::Shared<type> name = ::consonant::GPU_BUILD::gpu::dynamic_shared<type>()
#define GPU_UNROLL
#define GPU_UNROLL_BY(n)

namespace consonant::GPU_BUILD::gpu {

template <class T>
using Ptr = Pointer<T, GlobalMemory>;
template <class T>
using Shared = Pointer<T, SharedVariable>;

template <class T>
Shared<T> shared_pointer(const SharedVariable* v) {
  return {reinterpret_cast<uintptr_t>(v->begin), reinterpret_cast<uintptr_t>(v->begin),
          reinterpret_cast<uintptr_t>(v->end), v};
}
template <class T>
Shared<T> shared_variable(const void* site, const char* name, int64_t count) {
  return shared_pointer<T>(current->shared().variable(site, name, count * static_cast<int64_t>(sizeof(T))));
}
template <class T>
Shared<T> dynamic_shared() {
  return shared_pointer<T>(current->shared().dynamic());
}

GPU_FN int64_t block() { return current->at().x; }
GPU_FN int64_t block_y() { return current->at().y; }
GPU_FN int64_t block_z() { return current->at().z; }
GPU_FN int64_t blocks() { return current->grid().x; }
GPU_FN int thread() { return current->turn().thread; }
GPU_FN int threads() { return current->threads(); }
GPU_FN int lane() { return thread() % lane_width; }
GPU_FN int warp() { return thread() / lane_width; }
GPU_FN int warps() { return threads() / lane_width; }
GPU_FN void sync(const char* file = __builtin_FILE(), int line = __builtin_LINE()) { current->sync({file, line}); }

template <class T>
typename ValueOf<T>::type shfl(const T& x, int lane, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  using Value = typename ValueOf<T>::type;
  static_assert(sizeof(Value) == 4);
  return std::bit_cast<Value>(current->shuffle(std::bit_cast<uint32_t>(static_cast<Value>(x)), lane, {file, line}));
}
template <class T>
auto shfl_xor(const T& x, int mask, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  return shfl(x, lane() ^ mask, file, line);
}

GPU_FN uint64_t ballot(bool yes, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  uint32_t low = yes && lane() < 32 ? 1u << lane() : 0, high = yes && lane() >= 32 ? 1u << (lane() - 32) : 0;
  for (int mask = lane_width / 2; mask > 0; mask /= 2) {
    low |= shfl_xor(low, mask, file, line);
    if (lane_width > 32) high |= shfl_xor(high, mask, file, line);
  }
  return uint64_t{high} << 32 | low;
}
GPU_FN int popcount(uint64_t bits) { return std::popcount(bits); }
// No other access of the element is ordered by it: what the checks of plain reads and writes look for doesn't apply.
template <class T>
void atomic_add(Shared<T> p, T x) {
  static_assert(std::is_integral_v<T> && sizeof(T) >= 4);
  *p.element(0) += x;
}

struct alignas(16) U4 {
  uint32_t x, y, z, w;
};
template <class T, class Space>
U4 load16(Pointer<T, Space> p) {
  const T* const from = p.element(0, sizeof(U4), alignof(U4));
  p.space()->read(p.at(), sizeof(U4));
  U4 v;
  std::memcpy(&v, from, sizeof v);
  return v;
}
template <class T, class Space>
void store16(Pointer<T, Space> p, const U4& v) {
  T* const to = p.element(0, sizeof(U4), alignof(U4));
  p.space()->write(p.at(), sizeof(U4));
  std::memcpy(to, &v, sizeof v);
}

// The same memory as elements of another type.
template <class U, class T, class Space>
Pointer<U, Space> cast(Pointer<T, Space> p) {
  static_assert(std::is_const_v<U> || !std::is_const_v<T>);
  return {p.at(), p.begin(), p.end(), p.space()};
}

GPU_FN float from_bits(uint32_t bits) { return std::bit_cast<float>(bits); }
GPU_FN uint32_t to_bits(float x) { return std::bit_cast<uint32_t>(x); }
GPU_FN float from_half(uint16_t bits) { return to_float(Half{bits}); }
GPU_FN uint16_t half_bits(float x) { return to_half(x).bits; }

GPU_FN void wait_for_inputs() {}  // launches run one after the other
template <class T>
GPU_FN void prefetch(Ptr<T>) {}

// Queues a launch; an error if it's beyond the device's limits.
void queue_work(Accelerator& device, Work work);
std::string kernel_name(const char* pretty_function);

template <auto F>
std::string_view kernel_name() {
  static const std::string name = kernel_name(__PRETTY_FUNCTION__);
  return name;
}

template <auto F, int Threads, bool Early = false, class... Args>
void launch(Accelerator& device, Grid grid, int64_t shared, Args... args) {
  static_assert(((std::is_trivially_copyable_v<Args> && !std::is_pointer_v<Args>)&&...), "values, and memory as a Ptr");
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  device.count_launch();
  queue_work(device, {kernel_name<F>(), grid, Threads, shared, [=] { F(args...); }, device.progress().node});
}

template <auto F, int Threads, class... Args>
void launch_early(Accelerator& device, Grid grid, int64_t shared, Args... args) {
  launch<F, Threads, true>(device, grid, shared, args...);
}
template <auto F, int Threads, int Blocks, class... Args>
void launch_early(Accelerator& device, Grid grid, int64_t shared, Args... args) {
  launch<F, Threads, true>(device, grid, shared, args...);
}

// An error if it isn't memory of a device, all of it.
template <class T>
Ptr<T> pointer(std::byte* data, int64_t bytes) {
  const GlobalMemory* const memory = bytes > 0 ? find_memory(data, bytes) : nullptr;
  if (bytes > 0 && !memory)
    throw_error(Exit::failed, "a kernel's argument of {} bytes isn't memory of the device", bytes);
  const auto at = reinterpret_cast<uintptr_t>(data);
  return {at, at, at + static_cast<uintptr_t>(bytes), memory};
}

}  // namespace consonant::GPU_BUILD::gpu
