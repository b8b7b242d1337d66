// SPDX-License-Identifier: Apache-2.0
// With few tokens this is bound by the bytes of the rows that they see (4.4 TB/s on an H200: rows of 576 numbers in
// float16 over 16,384 positions are 19 MB, 4 us): the heads of a token, and neighbouring tokens of a sequence, share a
// block, so that a row is read once for as many of them as fit, and from the cache for the others. With many heads or
// tokens it is bound by the multiplications.
#include "ops/attend_latent/attend_latent.hpp"
#include "ops/attend/attend_block_gpu.hpp"
#include "ops/kv_cache.hpp"
#include "ops/work.hpp"

namespace consonant::GPU_BUILD {

namespace {

constexpr int key_lanes = 8;                           // share a position
constexpr int key_slots = attend_threads / key_lanes;  // positions at a time

// Rows that stand for keys and values lie number by number.
template <class T, int width>
struct RowKeys {
  Rows<const float> turned;
  CacheView<T, width> rows;

  // Between 4 packs is an unused one: the lanes of a position read different banks.
  static GPU_FN int64_t pack_of(int64_t i) { return i + i / 4; }
  static constexpr int64_t packs(int64_t dim) { return dim + (dim + 3) / 4; }
  constexpr int64_t query_packs() const { return packs(rows.dim); }

  template <int R>
  GPU_FN void load(const Attention& a, const RowSet& set, gpu::Shared<Pack<float, R>> q) const {
    for (int64_t i = gpu::thread(); i < rows.dim; i += attend_threads) {
      Pack<float, R> x{};
      GPU_UNROLL
      for (int r = 0; r < R; ++r) {
        if (r >= set.rows()) continue;
        const int64_t row = set.token_of(r) * a.heads + set.head_of(r);
        x.at[r] = i < a.y.cols ? a.q.row(row)[i] : turned.row(row)[i - a.y.cols];
      }
      q[pack_of(i)] = x;
    }
  }

  // Neighbouring lanes have neighbouring packs of a row; a position's sum is that of its lanes', by halves.
  template <int R>
  GPU_FN void score(const Attention& a, const SplitOfRows& now, gpu::Shared<Pack<float, R>> q, gpu::Shared<float>,
                    gpu::Shared<float> weights) const {
    const int lane = gpu::thread() % key_lanes;
    for (int at = gpu::thread() / key_lanes; at < split_positions; at += key_slots) {
      const int64_t position = now.split * split_positions + at;
      float sum[R] = {};
      if (now.all.has(position)) {
        const auto page = rows.at(now.page_of[position / kv_page], now.kv_head);
#ifndef GPU_EMULATED
#pragma unroll 2
#endif
        for (int i = lane * width; i < page.dim; i += key_lanes * width) {
          const Pack<float, width> k = page.value(at % page_positions, i);
          GPU_UNROLL
          for (int j = 0; j < width; ++j) {
            const Pack<float, R> x = q[pack_of(i + j)];
            GPU_UNROLL
            for (int r = 0; r < R; ++r) sum[r] = gpu::fma(x.at[r], k.at[j], sum[r]);
          }
        }
      }
      GPU_UNROLL
      for (int r = 0; r < R; ++r) {
        for (int mask = key_lanes / 2; mask > 0; mask /= 2) sum[r] = gpu::add(sum[r], gpu::shfl_xor(sum[r], mask));
        if (lane == 0) weights[r * split_positions + at] = sum[r] * a.scale;
      }
    }
  }
};

template <class T, int width>
void launch_as(const Args& args, const Attention& a, bool split, Accelerator& device) {
  using Keys = RowKeys<T, width>;
  const auto rows = cache_view<T, width>(args.in[2], StateKind::values);
  const Keys keys{rows_of<const float>(args.in[1]), rows};
  const auto launch_rows = [&](auto count) {
    launch_attend<Keys, T, width, decltype(count)::value>(a, keys, rows, split, device);
  };
  // How many rows share a block makes no difference to any of them.
  const int64_t together = (split ? 1 : a.most_tokens) * a.heads, packs = Keys::packs(rows.dim);
  if constexpr (width > 1) {
    if (together > 4 && attend_fits<8>(packs, a.y.cols, device.limits()))
      return launch_rows(std::integral_constant<int, 8>());
    if (together > 1 && attend_fits<4>(packs, a.y.cols, device.limits()))
      return launch_rows(std::integral_constant<int, 4>());
  }
  launch_rows(std::integral_constant<int, 1>());
}

void launch(const Args& args, Accelerator& device, std::byte* scratch) {
  const View &q = args.in[0], &rows = args.in[2];
  if (q.shape[0] == 0) return;
  const Splitting splitting(q.shape[1], 1, attention_splits(args.in[5].shape[1]), q.shape[2], device.limits());
  for_parts(args, splitting, 2, [&](const Args& part, bool split) {
    const Attention a = attention(part, scratch, split);
    with_cache_type(rows.type, [&](auto number) {
      using T = decltype(number);
      if constexpr (!std::is_same_v<T, int8_t>) {
        if (q.shape[2] % 4 != 0 || rows.shape[3] % 4 != 0) return launch_as<T, 1>(part, a, split, device);
      }
      launch_as<T, 4>(part, a, split, device);
    });
  });
}

Refusal can_run(const Node& node, const Limits& limits) {
  if (Refusal refusal = wants_head_rows(node.inputs[0], "q")) return refusal;
  if (Refusal refusal = wants_head_rows(node.inputs[1], "turned")) return refusal;
  const Shape &q = node.inputs[0].shape(), &rows = node.inputs[2].shape();
  if (q[0] * q[1] * ceil_div(q[2], combine_threads) > limits.grid) return {"more rows than a grid has blocks"};
  if (!attend_fits<1>(RowKeys<float, 1>::packs(rows[3]), q[2], limits))
    return {fmt::format("rows of {} don't fit {} bytes of shared memory", rows[3], limits.shared_bytes)};
  if (rows[3] > INT32_MAX || (node.inputs[2].type() == DType::q8_0 && q[2] % 4 != 0))
    return {fmt::format("rows of {} whose first {} are values", rows[3], q[2])};
  return wants_cache(node.inputs[2], node.inputs[2]);
}

}  // namespace

GpuKernel attend_latent_gpu() { return {"attend_latent", Op::attend_latent, can_run, attention_scratch, launch}; }

}  // namespace consonant::GPU_BUILD
