// SPDX-License-Identifier: Apache-2.0
#pragma once

// The paged cache (graph/inputs.hpp) as a kernel of an accelerator reads and writes it. The type of its numbers stands
// for the cache's: float, uint16_t for float16, int8_t for q8_0.
#include <type_traits>

#include "base/error.hpp"
#include "graph/inputs.hpp"
#include "ops/gpu_rows.hpp"

namespace consonant::GPU_BUILD {

// Neighbours in memory, loaded as one.
template <class T, int n>
struct alignas(n * sizeof(T) < 16 ? n * sizeof(T) : 16) Pack {
  T at[n];
};

GPU_FN float to_number(float x) { return x; }
GPU_FN float to_number(uint16_t half) { return gpu::from_half(half); }
GPU_FN float to_number(int8_t x) { return static_cast<float>(x); }

template <class T>
GPU_FN T rounded_to(float x) {
  if constexpr (std::is_same_v<T, float>)
    return x;
  else
    return gpu::half_bits(x);
}

// One head's keys or values on a page, read in packs of `n` neighbours: positions of keys, elements of a value.
template <class T, int n>
struct CacheHead {
  static constexpr bool scaled = std::is_same_v<T, int8_t>;
  using Numbers = Pack<float, n>;
  static constexpr int page = static_cast<int>(kv_page);

  gpu::Ptr<const Pack<T, n>> numbers;
  gpu::Ptr<const uint16_t> scales;
  int dim = 0;

  // Numbers i of the keys of positions `at` ... `at + n - 1`, without their scales.
  GPU_FN Numbers key(int i, int at) const { return floats(numbers[(i * page + at) / n]); }
  // The scales of numbers 32 * block ... 32 * block + 31 of the same keys.
  GPU_FN Numbers key_scales(int block, int at) const {
    Numbers s;
    for (int j = 0; j < n; ++j) s.at[j] = gpu::from_half(scales[block * page + at + j]);
    return s;
  }
  // Numbers i ... i + n - 1 of the value of a position.
  GPU_FN Numbers value(int at, int i) const {
    Numbers x = floats(numbers[(at * dim + i) / n]);
    if constexpr (scaled) {
      const float scale = gpu::from_half(scales[at * (dim / 32) + i / 32]);
      for (int j = 0; j < n; ++j) x.at[j] *= scale;
    }
    return x;
  }

 private:
  static GPU_FN Numbers floats(const Pack<T, n>& x) {
    Numbers y;
    for (int j = 0; j < n; ++j) y.at[j] = to_number(x.at[j]);
    return y;
  }
};

template <class T, int n>
struct CacheView {
  gpu::Ptr<const Pack<T, n>> numbers;
  gpu::Ptr<const uint16_t> scales;          // of the first page
  int64_t page_packs = 0, page_scales = 0;  // from a page to the next
  int64_t dim = 0;

  GPU_FN CacheHead<T, n> at(int64_t page, int64_t head) const {
    CacheHead<T, n> h;
    h.numbers = numbers + (page * page_packs + head * dim * kv_page / n);
    if constexpr (CacheHead<T, n>::scaled) h.scales = scales + (page * page_scales + head * (dim / 32) * kv_page);
    h.dim = static_cast<int>(dim);
    return h;
  }
};

// `view`: keys [page, head, dim, kv_page] or values [page, head, kv_page, dim].
template <class T, int n>
CacheView<T, n> cache_view(const View& view, StateKind kind) {
  CacheView<T, n> cache;
  cache.dim = kind == StateKind::keys ? view.shape[2] : view.shape[3];
  const int64_t page_bytes = kv_page_bytes(view.type, view.shape[1], cache.dim);
  cache.numbers = pointer<const Pack<T, n>>(view);
  cache.page_packs = page_bytes / static_cast<int64_t>(sizeof(Pack<T, n>));
  if constexpr (CacheHead<T, n>::scaled) {
    cache.scales = pointer<const uint16_t>(view) + view.shape[1] * cache.dim * kv_page / 2;
    cache.page_scales = page_bytes / 2;
  }
  return cache;
}

// Calls fn with a number of the cache's type.
template <class F>
void with_cache_type(DType type, const F& fn) {
  switch (type) {
    case DType::f32:
      return fn(float());
    case DType::f16:
      return fn(uint16_t());
    case DType::q8_0:
      return fn(int8_t());
    default:
      throw_error(Exit::failed, "a cache of {}", name(type));
  }
}

}  // namespace consonant::GPU_BUILD
