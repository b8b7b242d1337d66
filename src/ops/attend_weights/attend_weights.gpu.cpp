// SPDX-License-Identifier: Apache-2.0
// Bound by the bytes of the chosen heads' keys, which each token reads again.
#include "ops/attend_weights/attend_weights.hpp"
#include "ops/gpu_cache.hpp"
#include "ops/kv_cache.hpp"
#include "ops/work.hpp"

namespace consonant::GPU_BUILD {

namespace {

constexpr int block_threads = 256, heads_together = 64;

struct Heads {
  int32_t at[heads_together];
};

// A block a token and chosen head. A thread's scores lie where their weights will.
template <class T>
GPU_KERNEL void weigh(Rows<const float> q, CacheView<T, 1> keys, gpu::Ptr<const int32_t> seq,
                      gpu::Ptr<const int32_t> pages, int64_t pages_stride, Heads chosen, int64_t n, int64_t group,
                      Rows<float> y, int64_t first, float scale) {
  const int64_t token = gpu::block() / n, which = gpu::block() % n, head = chosen.at[which];
  const auto x = q.row(token * q.inner + head);
  const auto page_of = pages + seq[token] * pages_stride;
  const auto to = y.row(token * y.inner + first + which);
  float greatest = -HUGE_VALF;
  for (int64_t p = gpu::thread(); p < y.cols; p += gpu::threads()) {
    const auto page = keys.at(page_of[p / kv_page], head / group);
    const int at = static_cast<int>(p % kv_page);
    float score = 0;
    for (int block = 0; block < page.dim; block += 32) {
      float sum = 0;
      const int end = block + 32 < page.dim ? block + 32 : page.dim;
      for (int i = block; i < end; ++i) sum = gpu::fma(x[i], page.key(i, at).at[0], sum);
      if constexpr (CacheHead<T, 1>::scaled) sum *= page.key_scales(block / 32, at).at[0];
      score += sum;
    }
    score *= scale;
    to[p] = score;
    greatest = score > greatest ? score : greatest;
  }
  greatest = gpu::block_max(greatest);
  float sum = 0;
  for (int64_t p = gpu::thread(); p < y.cols; p += gpu::threads()) {
    const float weight = gpu::exp(to[p] - greatest);
    to[p] = weight;
    sum += weight;
  }
  sum = gpu::block_sum(sum);
  for (int64_t p = gpu::thread(); p < y.cols; p += gpu::threads()) to[p] = to[p] / sum;
}

void launch(const Args& args, Accelerator& device, std::byte*) {
  const View &q = args.in[0], &keys = args.in[1], &y = args.out[0];
  const auto& attr = args.attr<AttendWeightsAttr>();
  const auto count = static_cast<int64_t>(attr.heads.size());
  for (int64_t first = 0; first < count; first += heads_together) {
    const int64_t n = count - first < heads_together ? count - first : heads_together;
    Heads chosen{};
    for (int64_t i = 0; i < n; ++i) chosen.at[i] = static_cast<int32_t>(attr.heads[static_cast<size_t>(first + i)]);
    with_cache_type(keys.type, [&](auto number) {
      using T = decltype(number);
      gpu::launch<weigh<T>, block_threads>(device, {q.shape[0] * n}, 0, rows_of<const float>(q),
                                           cache_view<T, 1>(keys, StateKind::keys), pointer<const int32_t>(args.in[2]),
                                           pointer<const int32_t>(args.in[3]), args.in[3].strides[0], chosen, n,
                                           q.shape[1] / keys.shape[1], rows_of<float>(y), first, attr.scale);
    });
  }
}

Refusal can_run(const Node& node, const Limits& limits) {
  if (Refusal refusal = wants_head_rows(node.inputs[0], "q")) return refusal;
  if (node.inputs[0].shape()[0] * heads_together > limits.grid) return {"more tokens than a grid has blocks"};
  return wants_cache(node.inputs[1], node.inputs[1]);
}

}  // namespace

GpuKernel attend_weights_gpu() { return {"attend_weights", Op::attend_weights, can_run, nullptr, launch}; }

}  // namespace consonant::GPU_BUILD
