// SPDX-License-Identifier: Apache-2.0
#pragma once

// Launches of latent attention on tensor cores: CUDA's kernel of attend_latent, which tests run on an emulator.
#include <algorithm>

#include "ops/attend_latent/attend_latent.hpp"
#include "ops/attend_latent/latent_mma.hpp"
#include "ops/kv_cache.hpp"
#include "ops/work.hpp"

namespace consonant::GPU_BUILD::latent {

inline int64_t run_bytes(int64_t tokens, int64_t heads, int64_t runs, int64_t columns) {
  return tokens * heads * runs * (columns + 2) * int64_t{sizeof(float)};
}
inline int64_t scratch(const Node& node, const Limits&) {
  const Shape& y = node.outputs[0].shape;
  return run_bytes(std::min(y[0], tokens_together), y[1], most_runs(y[1], node.inputs[5].shape()[1]), y[2]);
}

template <class T>
Latent<T> latent(const Args& args) {
  const View &q = args.in[0], &turned = args.in[1];
  Latent<T> x;
  x.turned = rows_of<const float>(turned), x.cache = cache_view<T, 1>(args.in[2], StateKind::values);
  x.dim = static_cast<int>(args.in[2].last()), x.columns = static_cast<int>(q.last());
  x.fours = has_aligned_rows(q) && has_aligned_rows(turned);
  return x;
}

template <class T, int tiles>
void launch_runs(const Attention& a, const Latent<T>& x, Accelerator& device) {
  gpu::launch_early<attend_runs<T, tiles>, block_threads, 2>(device, {int64_t{x.run_blocks} * a.tokens * x.parts},
                                                             x.places.bytes(16 * tiles), a, x);
  gpu::launch_early<combine_runs, block_threads>(device, {a.tokens * a.heads * ceil_div(x.columns, combine_columns)}, 0,
                                                 a, x.columns, x.runs);
}

template <class T>
void launch_few(const Attention& all, Latent<T> x, int64_t pages, Accelerator& device, std::byte* memory) {
  const Rows<const float> turned = x.turned;
  x.runs = static_cast<int>(most_runs(all.heads, pages));
  x.parts = static_cast<int>(parts_of(all.heads)), x.heads = static_cast<int>(ceil_div(all.heads, x.parts));
  x.places = Places(x.dim, x.heads, 1);
  for (int64_t first = 0; first < all.tokens; first += tokens_together) {
    Attention a = all;
    a.tokens = std::min(all.tokens - first, tokens_together);
    a.q.data = a.q.data + first * a.q.outer_stride, a.y.data = a.y.data + first * a.y.outer_stride;
    x.turned.data = turned.data + first * turned.outer_stride;
    a.pos = a.pos + first, a.seq = a.seq + first;
    const int64_t rows = a.tokens * a.heads * x.runs;
    a.partials = gpu::pointer<float>(memory, run_bytes(a.tokens, a.heads, x.runs, x.columns));
    a.peaks = a.partials + rows * x.columns, a.sums = a.peaks + rows;
    x.run_blocks =
        static_cast<int>(std::clamp<int64_t>(ceil_div(4 * device.limits().processors, a.tokens * x.parts), 1, x.runs));
    x.heads <= 16 ? launch_runs<T, 1>(a, x, device) : launch_runs<T, 2>(a, x, device);
  }
}

template <class T>
void launch_as(const Args& args, Accelerator& device, std::byte* memory) {
  Attention a = attention(args, nullptr, false);
  a.scale *= 1.44269504f;  // for powers of two
  Latent<T> x = latent<T>(args);
  if (a.tokens <= few_tokens) return launch_few(a, x, args.in[5].shape[1], device, memory);
  x.places = Places(x.dim, many_rows, 2);
  const Cut cut(a, many_rows, false, 1);
  gpu::launch<attend_whole<T>, block_threads>(device, {cut.blocks(a)}, x.places.bytes(many_rows), a, x, cut);
}

inline void launch(const Args& args, Accelerator& device, std::byte* memory) {
  if (args.in[0].shape[0] == 0) return;
  args.in[2].type == DType::f16 ? launch_as<uint16_t>(args, device, memory) : launch_as<int8_t>(args, device, memory);
}

inline Refusal can_run(const Node& node, const Limits& limits) {
  if (limits.compute < 80) return {"tensor cores since compute capability 8.0 are wanted"};
  if (Refusal refusal = wants_head_rows(node.inputs[0], "q")) return refusal;
  if (Refusal refusal = wants_head_rows(node.inputs[1], "turned")) return refusal;
  const DType type = node.inputs[2].type();
  if (type != DType::f16 && type != DType::q8_0) return {"on tensor cores the cache must be f16 or q8_0"};
  if (node.attr<AttendAttr>().window > 0) return {"on tensor cores there is no window"};
  const Shape &q = node.inputs[0].shape(), &rows = node.inputs[2].shape();
  if (rows[3] % (type == DType::f16 ? 16 : 32) != 0 || q[2] % 16 != 0 || q[2] > most_columns)
    return {fmt::format("rows of {} whose first {} are values aren't multiples of 16, or of more than {} values",
                        rows[3], q[2], most_columns)};
  const int64_t numbers = 2048, bytes = Places(rows[3], many_rows, 2).bytes(many_rows) + numbers;
  if (bytes > limits.shared_bytes) return {fmt::format("{} bytes of shared memory are wanted", bytes)};
  if (q[0] * q[1] > limits.grid || tokens_together * q[1] * ceil_div(q[2], combine_columns) > limits.grid ||
      tokens_together * q[1] * most_blocks > INT32_MAX)
    return {"more rows than a grid has blocks"};
  return {};
}

inline GpuKernel kernel() {
  return {"attend_latent_mma", Op::attend_latent, can_run, scratch, launch, 0x1p-11, few_tokens};
}

}  // namespace consonant::GPU_BUILD::latent
