// SPDX-License-Identifier: Apache-2.0
// Bound by the latency of a launch for a token; for many, by the bytes of k and v read and of the cache written.
#include "ops/kv_append/kv_append.hpp"
#include "ops/kv_append/append_gpu.hpp"
#include "ops/kv_cache.hpp"
#include "ops/work.hpp"

namespace consonant::GPU_BUILD {

namespace {

constexpr int block_threads = 256;

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
