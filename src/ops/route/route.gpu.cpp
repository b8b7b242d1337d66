// SPDX-License-Identifier: Apache-2.0
#include "ops/gpu_rows.hpp"
#include "ops/route/route_node.hpp"
#include "ops/route/score.hpp"

namespace consonant::GPU_BUILD {

namespace {

constexpr int route_threads = 128;
constexpr int64_t most_experts = 2048;  // 24 bytes of shared memory each

struct Router {
  Rows<const float> logits;
  gpu::Ptr<const float> bias;
  RouteAttr attr;
  bool has_bias, by_score;
  gpu::Ptr<int32_t> ids;
  gpu::Ptr<float> weights;
};

// Rank of each key among all: as many comparisons as there are pairs, which for some hundred experts is less than the
// barriers of a sort.
template <class F>
GPU_FN void for_ranks(gpu::Shared<uint64_t> keys, int count, const F& fn) {
  for (int i = gpu::thread(); i < count; i += gpu::threads()) {
    const uint64_t key = keys[i];
    int rank = 0;
    GPU_UNROLL_BY(8)
    for (int j = 0; j < count; ++j) rank += keys[j] < key ? 1 : 0;
    fn(i, rank);
  }
}

GPU_FN float in_order(gpu::Shared<float> x, int count) {
  float sum = 0;
  GPU_UNROLL_BY(16)
  for (int i = 0; i < count; ++i) sum = gpu::add(sum, x[i]);
  return sum;
}

// Keys of the experts, those of the unused groups behind all others.
GPU_FN void make_keys(const Router& p, int experts, gpu::Shared<float> choice, gpu::Shared<uint64_t> keys,
                      gpu::Shared<uint64_t> group_keys) {
  const int groups = static_cast<int>(p.attr.groups), in_group = experts / groups;
  for (int e = gpu::thread(); e < experts; e += gpu::threads()) keys[e] = choice_key(choice[e], e);
  if (p.attr.groups_used == p.attr.groups) return gpu::sync();
  for (int g = gpu::thread(); g < groups; g += gpu::threads()) {
    TwoBest two;
    for (int e = g * in_group; e < (g + 1) * in_group; ++e) two.add(choice[e]);
    group_keys[g] = choice_key(p.attr.scoring == Scoring::sigmoid ? gpu::add(two.best, two.second) : two.best, g);
  }
  gpu::sync();
  for_ranks(group_keys, groups, [&](int g, int rank) {
    if (rank < p.attr.groups_used) return;
    for (int e = g * in_group; e < (g + 1) * in_group; ++e) keys[e] = excluded_key(e);
  });
  gpu::sync();
}

// A block a token. Bound by its barriers and the latency of one read.
GPU_KERNEL void route(Router p) {
  GPU_DYNAMIC_SHARED(uint64_t, keys);
  const int experts = static_cast<int>(p.logits.cols), used = static_cast<int>(p.attr.used);
  const auto group_keys = keys + experts;
  const auto scores = gpu::cast<float>(group_keys + p.attr.groups), choice = scores + experts;
  const int64_t token = gpu::block();
  const auto logits = p.logits.row(token);
  const bool softmax = p.attr.scoring == Scoring::softmax;
  float top = -INFINITY;
  if (softmax) {
    for (int e = gpu::thread(); e < experts; e += gpu::threads()) {
      const float x = logits[e];
      top = x > top ? x : top;
    }
    top = gpu::block_max(top);
  }
  for (int e = gpu::thread(); e < experts; e += gpu::threads())
    scores[e] = softmax ? softmax_part(logits[e], top) : sigmoid_score(logits[e]);
  gpu::sync();
  const float sum = softmax ? in_order(scores, experts) : 1;
  for (int e = gpu::thread(); e < experts; e += gpu::threads()) {
    const float score = scores[e] / sum;
    choice[e] = !p.by_score ? static_cast<float>(logits[e]) : p.has_bias ? gpu::add(score, p.bias[e]) : score;
  }
  gpu::sync();
  make_keys(p, experts, choice, keys, group_keys);
  // The chosen scores in their order take the place of the choices.
  for_ranks(keys, experts, [&](int e, int rank) {
    if (rank >= used) return;
    choice[rank] = scores[e] / sum;
    p.ids[token * used + rank] = e;
  });
  gpu::sync();
  const float total = gpu::add(in_order(choice, used), 1e-20f);
  for (int i = gpu::thread(); i < used; i += gpu::threads())
    p.weights[token * used + i] = gpu::mul(p.attr.normalise ? choice[i] / total : choice[i], p.attr.scale);
}

Refusal can_run(const Node& node, const Limits& limits) {
  const Shape& logits = node.inputs[0].shape();
  if (Refusal refusal = wants_router(node)) return refusal;
  if (logits[1] > most_experts) return {fmt::format("{} experts are more than {}", logits[1], most_experts)};
  if (logits[0] > limits.grid) return {fmt::format("{} has more than {} rows", to_string(logits), limits.grid)};
  return {};
}

void launch(const Args& args, Accelerator& device, std::byte*) {
  const auto& attr = args.attr<RouteAttr>();
  Router p = {};
  p.logits = rows_of<const float>(args.in[0]);
  p.attr = attr;
  p.has_bias = args.in.size() > 1;
  if (p.has_bias) p.bias = pointer<const float>(args.in[1]);
  p.by_score = chooses_by_score(attr, p.has_bias);
  p.ids = pointer<int32_t>(args.out[0]);
  p.weights = pointer<float>(args.out[1]);
  const int64_t shared = (p.logits.cols + attr.groups) * 8 + 2 * p.logits.cols * 4;
  gpu::launch<route, route_threads>(device, {p.logits.rows}, shared, p);
}

}  // namespace

GpuKernel route_gpu() { return {"route", Op::route, can_run, nullptr, launch}; }

}  // namespace consonant::GPU_BUILD
