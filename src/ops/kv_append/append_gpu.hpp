// SPDX-License-Identifier: Apache-2.0
#pragma once

// How kernels of accelerators write rows of a step to the cache.
#include "ops/gpu_cache.hpp"

namespace consonant::GPU_BUILD {

// Keys or values: the rows of this step, and where on a page their numbers go.
template <class T>
struct Target {
  Rows<const float> from;
  gpu::Ptr<T> numbers;
  gpu::Ptr<uint16_t> scales;  // of the first page
  int64_t page_numbers = 0, page_scales = 0;
  int64_t heads = 0, dim = 0;
  int64_t number_step = 0, number_position = 0;  // from a number to the next, from a position to the next
  int64_t scale_step = 0, scale_position = 0;

  GPU_FN int64_t number(int64_t page, int64_t head, int64_t at, int64_t i) const {
    return page * page_numbers + head * dim * kv_page + at * number_position + i * number_step;
  }
  GPU_FN int64_t scale(int64_t page, int64_t head, int64_t at, int64_t block) const {
    return page * page_scales + head * (dim / 32) * kv_page + at * scale_position + block * scale_step;
  }
};

template <class T>
Target<T> target(const View& from, const View& state, StateKind kind) {
  const bool keys = kind == StateKind::keys;
  Target<T> to;
  to.from = rows_of<const float>(from);
  to.heads = state.shape[1], to.dim = from.shape[2];
  const int64_t page_bytes = kv_page_bytes(state.type, to.heads, to.dim);
  to.numbers = pointer<T>(state);
  to.page_numbers = page_bytes / static_cast<int64_t>(sizeof(T));
  to.number_step = keys ? kv_page : 1, to.number_position = keys ? 1 : to.dim;
  if (state.type == DType::q8_0) {
    to.scales = pointer<uint16_t>(state) + to.heads * to.dim * kv_page / 2;
    to.page_scales = page_bytes / 2;
    to.scale_step = keys ? kv_page : 1, to.scale_position = keys ? 1 : to.dim / 32;
  }
  return to;
}

struct Places {
  gpu::Ptr<const int32_t> pos, seq, pages;
  int64_t pages_stride = 0;

  GPU_FN int64_t at(int64_t token) const { return pos[token] % kv_page; }
  GPU_FN int64_t page(int64_t token) const { return pages[seq[token] * pages_stride + pos[token] / kv_page]; }
};

// A number of a block of 32 as q8_0 holds it, and the block's scale.
struct InBlock {
  int8_t number;
  uint16_t scale;
};

// x of 32 neighbouring lanes; all lanes of the warp take part.
GPU_FN InBlock in_block(float x) {
  // The maximum may lose a NaN, so what isn't finite is looked for apart.
  float greatest = gpu::abs(x), bad = gpu::abs(x) <= 3.4028234e38f ? 0.0f : 1.0f;
  for (int mask = 16; mask > 0; mask /= 2) {
    const float other = gpu::shfl_xor(greatest, mask), others = gpu::shfl_xor(bad, mask);
    greatest = other > greatest ? other : greatest;
    bad = others > bad ? others : bad;
  }
  constexpr uint16_t not_a_number = 0x7E00, exponent = 0x7C00;
  uint16_t scale = bad > 0 ? not_a_number : gpu::half_bits(greatest / 127);
  float q = 0;
  if ((scale & exponent) == exponent) {
    scale = not_a_number;  // no number of the block can be held: all of them read as NaN
  } else if (scale != 0) {
    q = gpu::round_even(x * (1 / gpu::from_half(scale)));
    q = q > 127 ? 127.0f : q < -127 ? -127.0f : q;
  }
  return {static_cast<int8_t>(q), scale};
}

// Blocks of 32 numbers, a lane each: part `block` of a tensor's are as many as fit the threads.
GPU_FN void append_blocks(const Target<int8_t>& to, const Places& places, int64_t block, int64_t tokens) {
  const int64_t n = to.dim / 32, which = block * (gpu::threads() / 32) + gpu::thread() / 32, lane = gpu::thread() % 32;
  const int64_t token = which / n / to.heads, head = which / n % to.heads, part = which % n;
  const bool inside = token < tokens;
  const float x = inside ? static_cast<float>(to.from.row(token * to.heads + head)[part * 32 + lane]) : 0.0f;
  const InBlock kept = in_block(x);
  if (!inside) return;
  const int64_t page = places.page(token), at = places.at(token);
  to.numbers[to.number(page, head, at, part * 32 + lane)] = kept.number;
  if (lane == 0) to.scales[to.scale(page, head, at, part)] = kept.scale;
}

}  // namespace consonant::GPU_BUILD
