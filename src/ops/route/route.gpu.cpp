// SPDX-License-Identifier: Apache-2.0
#include "ops/gpu_four.hpp"
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
    int rank = count % 2 == 1 && keys[count - 1] < key ? 1 : 0;
    GPU_UNROLL_BY(8)
    for (int j = 0; j + 1 < count; j += 2) {
      const gpu::U4 two = gpu::load16(keys + j);
      rank += (uint64_t{two.y} << 32 | two.x) < key ? 1 : 0;
      rank += (uint64_t{two.w} << 32 | two.z) < key ? 1 : 0;
    }
    fn(i, rank);
  }
}

GPU_FN float in_order(gpu::Shared<float> x, int count) {
  float sum = 0;
  int i = 0;
  GPU_UNROLL_BY(8)
  for (; i + 4 <= count; i += 4) {
    const Four four = four_of(gpu::load16(x + i));
    GPU_UNROLL
    for (int k = 0; k < 4; ++k) sum = gpu::add(sum, four.x[k]);
  }
  for (; i < count; ++i) sum = gpu::add(sum, x[i]);
  return sum;
}

// Shared memory of a block: keys of experts and of groups, scores, choices; each begins at a multiple of 16 bytes.
struct RouteMemory {
  int64_t group_keys, scores, choice, end;

  constexpr RouteMemory(int64_t experts, int64_t groups)
      : group_keys(round_up(experts * 8, 16)),
        scores(group_keys + round_up(groups * 8, 16)),
        choice(scores + round_up(experts * 4, 16)),
        end(choice + round_up(experts * 4, 16)) {}
};

// Puts the experts of the unused groups behind all others.
GPU_FN void exclude_groups(const RouteAttr& attr, int experts, gpu::Shared<float> choice, gpu::Shared<uint64_t> keys,
                           gpu::Shared<uint64_t> group_keys) {
  const int groups = static_cast<int>(attr.groups), in_group = experts / groups;
  for (int g = gpu::thread(); g < groups; g += gpu::threads()) {
    TwoBest two;
    for (int e = g * in_group; e < (g + 1) * in_group; ++e) two.add(choice[e]);
    group_keys[g] = choice_key(attr.scoring == Scoring::sigmoid ? gpu::add(two.best, two.second) : two.best, g);
  }
  gpu::sync();
  for_ranks(group_keys, groups, [&](int g, int rank) {
    if (rank < attr.groups_used) return;
    for (int e = g * in_group; e < (g + 1) * in_group; ++e) keys[e] = excluded_key(e);
  });
  gpu::sync();
}

// A block a token. Bound by its barriers, the latency of one read, and sums in order.
GPU_KERNEL void route(Router p, RouteMemory memory) {
  GPU_DYNAMIC_SHARED(uint8_t, shared);
  const int experts = static_cast<int>(p.logits.cols), used = static_cast<int>(p.attr.used), mine = gpu::thread();
  const auto keys = gpu::cast<uint64_t>(shared), group_keys = gpu::cast<uint64_t>(shared + memory.group_keys);
  const auto scores = gpu::cast<float>(shared + memory.scores), choice = gpu::cast<float>(shared + memory.choice);
  gpu::wait_for_inputs();
  const int64_t token = gpu::block();
  const auto logits = p.logits.row(token);
  const bool softmax = p.attr.scoring == Scoring::softmax;
  const float bias = p.has_bias && mine < experts ? p.bias[mine] : 0;  // comes with the logits
  float top = -INFINITY;
  for (int e = mine; e < experts; e += gpu::threads()) {
    const float x = logits[e];
    choice[e] = x;
    if (!p.by_score) keys[e] = choice_key(x, e);
    top = x > top ? x : top;
  }
  if (softmax) top = gpu::block_max(top);
  for (int e = mine; e < experts; e += gpu::threads())
    scores[e] = softmax ? softmax_part(choice[e], top) : sigmoid_score(choice[e]);
  gpu::sync();
  const float sum = softmax ? in_order(scores, experts) : 1;
  if (p.by_score) {
    for (int e = mine; e < experts; e += gpu::threads()) {
      const float score = scores[e] / sum;
      choice[e] = p.has_bias ? gpu::add(score, e == mine ? bias : p.bias[e]) : score;
      keys[e] = choice_key(choice[e], e);
    }
    gpu::sync();
  }
  if (p.attr.groups_used < p.attr.groups) exclude_groups(p.attr, experts, choice, keys, group_keys);
  // The chosen scores in their order take the place of the choices.
  for_ranks(keys, experts, [&](int e, int rank) {
    if (rank >= used) return;
    choice[rank] = scores[e] / sum;
    p.ids[token * used + rank] = e;
  });
  gpu::sync();
  const float total = gpu::add(in_order(choice, used), 1e-20f);
  for (int i = mine; i < used; i += gpu::threads())
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
  const RouteMemory memory(p.logits.cols, attr.groups);
  gpu::launch_early<route, route_threads>(device, {p.logits.rows}, memory.end, p, memory);
}

}  // namespace

GpuKernel route_gpu() { return {"route", Op::route, can_run, nullptr, launch}; }

}  // namespace consonant::GPU_BUILD
