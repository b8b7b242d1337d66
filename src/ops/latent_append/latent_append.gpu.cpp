// SPDX-License-Identifier: Apache-2.0
// Bound by the latency of a launch for a token; for many, by the bytes read and written.
#include "ops/latent_append/latent_append.hpp"
#include "ops/kv_append/append_gpu.hpp"
#include "ops/latent_append/row.hpp"
#include "ops/work.hpp"

namespace consonant::GPU_BUILD {

namespace {

constexpr int block_threads = 256;

// Both parts of the rows.
struct Parts {
  Rows<const float> latent, turned;

  GPU_FN int64_t cols() const { return latent.cols + turned.cols; }
  GPU_FN float at(int64_t token, int64_t i) const {
    return i < latent.cols ? latent.row(token)[i] : turned.row(token)[i - latent.cols];
  }
};

template <class T>
GPU_KERNEL void append(Parts from, gpu::Ptr<T> numbers, Places places) {
  const int64_t token = gpu::block(), cols = from.cols();
  const auto to = numbers + (places.page(token) * kv_page + places.at(token)) * cols;
  for (int64_t i = gpu::thread(); i < cols; i += block_threads) to[i] = rounded_to<T>(from.at(token, i));
}

// Blocks of 32 numbers, a lane each.
GPU_KERNEL void append_q8_0(Parts from, gpu::Ptr<int8_t> numbers, gpu::Ptr<uint16_t> scales, int64_t page_bytes,
                            Places places) {
  const int64_t n = from.cols() / 32, which = gpu::block() * (block_threads / 32) + gpu::thread() / 32;
  const int64_t token = which / n, part = which % n, i = part * 32 + gpu::thread() % 32;
  const bool inside = token < from.latent.rows;
  const InBlock kept = in_block(inside ? from.at(token, i) : 0.0f);
  if (!inside) return;
  const int64_t page = places.page(token), at = places.at(token);
  numbers[page * page_bytes + at * n * 32 + i] = kept.number;
  if (gpu::thread() % 32 == 0) scales[page * (page_bytes / 2) + at * n + part] = kept.scale;
}

void launch(const Args& args, Accelerator& device, std::byte*) {
  const View &latent = args.in[1], &state = args.out[0];
  const int64_t tokens = latent.shape[0], cols = state.last();
  if (tokens == 0) return;
  const Parts from{rows_of<const float>(latent), rows_of<const float>(args.in[2])};
  const Places places{pointer<const int32_t>(args.in[3]), pointer<const int32_t>(args.in[4]),
                      pointer<const int32_t>(args.in[5]), args.in[5].strides[0]};
  with_cache_type(state.type, [&](auto number) {
    using T = decltype(number);
    if constexpr (std::is_same_v<T, int8_t>)
      gpu::launch<append_q8_0, block_threads>(device, {ceil_div(tokens * (cols / 32), block_threads / 32)}, 0, from,
                                              pointer<int8_t>(state), pointer<uint16_t>(state) + cols * kv_page / 2,
                                              kv_page_bytes(state.type, 1, cols), places);
    else
      gpu::launch<append<T>, block_threads>(device, {tokens}, 0, from, pointer<T>(state), places);
  });
}

Refusal can_run(const Node& node, const Limits& limits) {
  const Shape &latent = node.inputs[1].shape(), &rows = node.inputs[0].shape();
  if (Refusal refusal = wants_latent_parts(node)) return refusal;
  if (latent[0] * ceil_div(rows[3], 32) > limits.grid) return {"more rows than a grid has blocks"};
  return wants_cache(node.inputs[0], node.inputs[0]);
}

}  // namespace

GpuKernel latent_append_gpu() { return {"latent_append", Op::latent_append, can_run, nullptr, launch}; }

}  // namespace consonant::GPU_BUILD
