// SPDX-License-Identifier: Apache-2.0
// With few tokens this is bound by the bytes of the cache that they see (4.4 TB/s on an H200: 8 KV heads of 128 numbers
// in float16 over 16,384 positions are 67 MB, 15 us): query heads of a KV head, and neighbouring tokens of a sequence,
// are the rows of one block, so that what they see is read once. With many tokens it is bound by the multiplications.
#include "ops/attend/attend_block_gpu.hpp"
#include "ops/kv_cache.hpp"
#include "ops/work.hpp"

namespace consonant::GPU_BUILD {

namespace {

constexpr int key_threads = split_positions / 4;          // a thread has four positions, 32 all of a split
constexpr int key_groups = attend_threads / key_threads;  // that share the numbers of the keys

// Keys of a head lie position by position (graph/inputs.hpp).
template <class T>
struct HeadKeys {
  CacheView<T, 4> keys;

  constexpr int64_t query_packs() const { return keys.dim; }

  template <int R>
  GPU_FN void load(const Attention& a, const RowSet& set, gpu::Shared<Pack<float, R>> q) const {
    for (int64_t i = gpu::thread(); i < keys.dim; i += attend_threads) {
      Pack<float, R> x{};
      GPU_UNROLL
      for (int r = 0; r < R; ++r)
        if (r < set.rows()) x.at[r] = a.q.row(set.token_of(r) * a.heads + set.head_of(r))[i];
      q[i] = x;
    }
  }

  // Each group of threads has every key_groups-th number of the keys; their
  // sums are added in the order of the groups.
  template <int R>
  GPU_FN void score(const Attention& a, const SplitOfRows& now, gpu::Shared<Pack<float, R>> q, gpu::Shared<float> parts,
                    gpu::Shared<float> weights) const {
    const int at = gpu::thread() % key_threads * 4, group = gpu::thread() / key_threads;
    const int64_t position = now.split * split_positions + at;
    float sum[R][4] = {};
    if (position < now.all.last && position + 4 > now.all.first) {
      const auto page = keys.at(now.page_of[position / kv_page], now.kv_head);
      const int on_page = at % CacheHead<T, 4>::page;
      for (int block = 0; block < page.dim; block += 32) {
        Pack<float, 4> scales{};
        if constexpr (CacheHead<T, 4>::scaled) scales = page.key_scales(block / 32, on_page);
        GPU_UNROLL
        for (int i = 0; i < 32; i += key_groups) {
          const int number = block + i + group;
          if (number >= page.dim) continue;
          Pack<float, 4> k = page.key(number, on_page);
          if constexpr (CacheHead<T, 4>::scaled)
            for (int j = 0; j < 4; ++j) k.at[j] *= scales.at[j];
          const Pack<float, R> x = q[number];
          GPU_UNROLL
          for (int r = 0; r < R; ++r)
            for (int j = 0; j < 4; ++j) sum[r][j] = gpu::fma(x.at[r], k.at[j], sum[r][j]);
        }
      }
    }
    GPU_UNROLL
    for (int r = 0; r < R; ++r)
      for (int j = 0; j < 4; ++j) parts[(r * 4 + j) * attend_threads + gpu::thread()] = sum[r][j];
    gpu::sync();
    for (int i = gpu::thread(); i < R * split_positions; i += attend_threads) {
      const int part = i / key_threads, j = part % 4, thread = i % key_threads;
      float total = 0;
      for (int g = 0; g < key_groups; ++g) total += parts[part * attend_threads + g * key_threads + thread];
      weights[part / 4 * split_positions + thread * 4 + j] = total * a.scale;
    }
  }
};

// How many rows share a block makes no difference to any of them.
template <class T, int width>
void launch_as(const Args& args, const Attention& a, bool split, Accelerator& device) {
  const int64_t rows = (split ? 1 : a.most_tokens) * a.group;
  const HeadKeys<T> keys{cache_view<T, 4>(args.in[1], StateKind::keys)};
  const auto values = cache_view<T, width>(args.in[2], StateKind::values);
  const auto launch_rows = [&](auto count) {
    launch_attend<HeadKeys<T>, T, width, decltype(count)::value>(a, keys, values, split, device);
  };
  if constexpr (width > 1) {  // other sizes of heads are rare: not worth the kernels
    if (rows > 4 && attend_fits<8>(keys.query_packs(), a.y.cols, device.limits()))
      return launch_rows(std::integral_constant<int, 8>());
    if (rows > 1 && attend_fits<4>(keys.query_packs(), a.y.cols, device.limits()))
      return launch_rows(std::integral_constant<int, 4>());
  }
  launch_rows(std::integral_constant<int, 1>());
}

void launch(const Args& args, Accelerator& device, std::byte* scratch) {
  const View &q = args.in[0], &values = args.in[2];
  if (q.shape[0] == 0) return;
  const Splitting splitting(q.shape[1], values.shape[1], attention_splits(args.in[5].shape[1]), values.shape[3],
                            device.limits());
  for_parts(args, splitting, 1, [&](const Args& part, bool split) {
    const Attention a = attention(part, scratch, split);
    with_cache_type(values.type, [&](auto number) {
      using T = decltype(number);
      if constexpr (!std::is_same_v<T, int8_t>) {
        if (values.shape[3] % 4 != 0) return launch_as<T, 1>(part, a, split, device);
      }
      launch_as<T, 4>(part, a, split, device);
    });
  });
}

Refusal can_run(const Node& node, const Limits& limits) {
  if (Refusal refusal = wants_head_rows(node.inputs[0], "q")) return refusal;
  const Shape &q = node.inputs[0].shape(), &values = node.inputs[2].shape();
  if (q[0] * q[1] * ceil_div(values[3], combine_threads) > limits.grid) return {"more rows than a grid has blocks"};
  if (!attend_fits<1>(q[2], values[3], limits))
    return {
        fmt::format("heads of {} and {} don't fit {} bytes of shared memory", q[2], values[3], limits.shared_bytes)};
  return wants_cache(node.inputs[1], node.inputs[2]);
}

}  // namespace

GpuKernel attend_gpu() { return {"attend", Op::attend, can_run, attention_scratch, launch}; }

}  // namespace consonant::GPU_BUILD
