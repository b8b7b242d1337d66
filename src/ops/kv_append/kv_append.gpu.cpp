// SPDX-License-Identifier: Apache-2.0
// Bound by the latency of a launch for a token; for many, by the bytes of k and v read and of the cache written.
#include "ops/kv_append/kv_append.hpp"
#include "ops/gpu_cache.hpp"
#include "ops/kv_cache.hpp"
#include "ops/work.hpp"

namespace consonant::GPU_BUILD {

namespace {

constexpr int block_threads = 256;

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

// Part `block` of a tensor's: `together` neighbouring tokens of a head, neighbouring threads of neighbouring tokens.
template <class T>
GPU_FN void append_rows(const Target<T>& to, const Places& places, int64_t block, int64_t tokens, int together) {
  const int64_t head = block % to.heads, token = block / to.heads * together + gpu::thread() % together;
  if (token >= tokens) return;
  const int64_t page = places.page(token), at = places.at(token);
  const auto x = to.from.row(token * to.heads + head);
  for (int64_t i = gpu::thread() / together; i < to.dim; i += gpu::threads() / together)
    to.numbers[to.number(page, head, at, i)] = rounded_to<T>(x[i]);
}

template <class T>
GPU_KERNEL void append(Target<T> keys, Target<T> values, Places places, int64_t tokens, int together,
                       int64_t key_blocks) {
  if (gpu::block() < key_blocks)
    append_rows(keys, places, gpu::block(), tokens, together);
  else
    append_rows(values, places, gpu::block() - key_blocks, tokens, 1);
}

// Blocks of 32 numbers, a lane each: part `block` of a tensor's are as many as fit the threads.
GPU_FN void append_blocks(const Target<int8_t>& to, const Places& places, int64_t block, int64_t tokens) {
  const int64_t n = to.dim / 32, which = block * (block_threads / 32) + gpu::thread() / 32, lane = gpu::thread() % 32;
  const int64_t token = which / n / to.heads, head = which / n % to.heads, part = which % n;
  const bool inside = token < tokens;
  const float x = inside ? static_cast<float>(to.from.row(token * to.heads + head)[part * 32 + lane]) : 0.0f;
  // The maximum may lose a NaN, so what isn't finite is looked for apart.
  float greatest = gpu::abs(x), bad = gpu::abs(x) <= 3.4028234e38f ? 0.0f : 1.0f;
  for (int mask = 16; mask > 0; mask /= 2) {
    const float other = gpu::shfl_xor(greatest, mask), others = gpu::shfl_xor(bad, mask);
    greatest = other > greatest ? other : greatest;
    bad = others > bad ? others : bad;
  }
  if (!inside) return;
  constexpr uint16_t not_a_number = 0x7E00, exponent = 0x7C00;
  uint16_t scale = bad > 0 ? not_a_number : gpu::half_bits(greatest / 127);
  float q = 0;
  if ((scale & exponent) == exponent) {
    scale = not_a_number;  // no number of the block can be held: all of them read as NaN
  } else if (scale != 0) {
    q = gpu::round_even(x * (1 / gpu::from_half(scale)));
    q = q > 127 ? 127.0f : q < -127 ? -127.0f : q;
  }
  const int64_t page = places.page(token), at = places.at(token);
  to.numbers[to.number(page, head, at, part * 32 + lane)] = static_cast<int8_t>(q);
  if (lane == 0) to.scales[to.scale(page, head, at, part)] = scale;
}

GPU_KERNEL void append_q8_0(Target<int8_t> keys, Target<int8_t> values, Places places, int64_t tokens,
                            int64_t key_blocks) {
  if (gpu::block() < key_blocks)
    append_blocks(keys, places, gpu::block(), tokens);
  else
    append_blocks(values, places, gpu::block() - key_blocks, tokens);
}

void launch(const Args& args, Accelerator& device, std::byte*) {
  const View &k = args.in[2], &v = args.in[3];
  const int64_t tokens = k.shape[0], heads = k.shape[1];
  if (tokens == 0) return;
  const Places places{pointer<const int32_t>(args.in[4]), pointer<const int32_t>(args.in[5]),
                      pointer<const int32_t>(args.in[6]), args.in[6].strides[0]};
  with_cache_type(args.out[0].type, [&](auto number) {
    using T = decltype(number);
    const Target<T> keys = target<T>(k, args.out[0], StateKind::keys);
    const Target<T> values = target<T>(v, args.out[1], StateKind::values);
    if constexpr (std::is_same_v<T, int8_t>) {
      const auto blocks = [&](int64_t dim) { return ceil_div(tokens * heads * (dim / 32), block_threads / 32); };
      gpu::launch<append_q8_0, block_threads>(device, {blocks(keys.dim) + blocks(values.dim)}, 0, keys, values, places,
                                              tokens, blocks(keys.dim));
    } else {
      const int together = tokens < 8 ? 1 : 32;
      const int64_t key_blocks = ceil_div(tokens, together) * heads;
      gpu::launch<append<T>, block_threads>(device, {key_blocks + tokens * heads}, 0, keys, values, places, tokens,
                                            together, key_blocks);
    }
  });
}

Refusal can_run(const Node& node, const Limits& limits) {
  if (Refusal refusal = wants_head_rows(node.inputs[2], "k")) return refusal;
  if (Refusal refusal = wants_head_rows(node.inputs[3], "v")) return refusal;
  const Shape &k = node.inputs[2].shape(), &v = node.inputs[3].shape();
  if (k.rows() * (ceil_div(k.last(), 32) + ceil_div(v.last(), 32)) > limits.grid)
    return {"more rows than a grid has blocks"};
  return wants_cache(node.inputs[0], node.inputs[1]);
}

}  // namespace

GpuKernel kv_append_gpu() { return {"kv_append", Op::kv_append, can_run, nullptr, launch}; }

}  // namespace consonant::GPU_BUILD
