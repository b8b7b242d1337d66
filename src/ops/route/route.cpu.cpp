// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/route/route_node.hpp"
#include "ops/route/score.hpp"

namespace consonant {

namespace {

constexpr int64_t chunk_elements = 1024;

// Keys of experts and of groups; scores and choices.
Work work(const Args& args) {
  const int64_t experts = args.in[0].last(), groups = args.attr<RouteAttr>().groups;
  return {RowChunks(args.in[0], chunk_elements).count(), (experts + groups) * 8 + 2 * experts * 4};
}

void make_scores(const RouteAttr& attr, const float* logits, int64_t experts, float* scores) {
  if (attr.scoring == Scoring::sigmoid) {
    for (int64_t e = 0; e < experts; ++e) scores[e] = sigmoid_score(logits[e]);
    return;
  }
  float top = -__builtin_inff(), sum = 0;
  for (int64_t e = 0; e < experts; ++e) top = logits[e] > top ? logits[e] : top;
  for (int64_t e = 0; e < experts; ++e) scores[e] = softmax_part(logits[e], top);
  for (int64_t e = 0; e < experts; ++e) sum = rounded_add(sum, scores[e]);
  for (int64_t e = 0; e < experts; ++e) scores[e] = scores[e] / sum;
}

// Sorts the groups' keys: those that are used come first.
void rank_groups(const RouteAttr& attr, const float* choice, int64_t in_group, uint64_t* keys) {
  for (int64_t g = 0; g < attr.groups; ++g) {
    TwoBest two;
    for (int64_t e = g * in_group; e < (g + 1) * in_group; ++e) two.add(choice[e]);
    keys[g] = choice_key(attr.scoring == Scoring::sigmoid ? rounded_add(two.best, two.second) : two.best, g);
  }
  std::sort(keys, keys + attr.groups);
}

void run(const Args& args, int64_t chunk, std::byte* scratch) {
  const View &logits = args.in[0], &ids = args.out[0], &weights = args.out[1];
  const auto& attr = args.attr<RouteAttr>();
  const float* bias = args.in.size() > 1 ? args.in[1].as<float>() : nullptr;
  const int64_t experts = logits.last(), in_group = experts / attr.groups;
  const bool by_score = chooses_by_score(attr, bias != nullptr);
  auto* keys = reinterpret_cast<uint64_t*>(scratch);
  auto *groups = keys + experts, *end = groups + attr.groups;
  auto *scores = reinterpret_cast<float*>(end), *choice = scores + experts;
  const RowChunks chunks(logits, chunk_elements);
  for (int64_t t = chunks.first(chunk); t < chunks.last(chunk); ++t) {
    const float* row = logits.row<float>(t);
    make_scores(attr, row, experts, scores);
    for (int64_t e = 0; e < experts; ++e)
      choice[e] = !by_score ? row[e] : bias ? rounded_add(scores[e], bias[e]) : scores[e];
    for (int64_t e = 0; e < experts; ++e) keys[e] = choice_key(choice[e], e);
    if (attr.groups_used < attr.groups) {
      rank_groups(attr, choice, in_group, groups);
      for (int64_t i = attr.groups_used; i < attr.groups; ++i)
        for (int64_t j = 0; j < in_group; ++j) {
          const int64_t e = index_of(groups[i]) * in_group + j;
          keys[e] = excluded_key(e);
        }
    }
    std::partial_sort(keys, keys + attr.used, keys + experts);
    float sum = 0;
    for (int64_t i = 0; i < attr.used; ++i) sum = rounded_add(sum, scores[index_of(keys[i])]);
    sum = rounded_add(sum, 1e-20f);
    for (int64_t i = 0; i < attr.used; ++i) {
      const int32_t e = index_of(keys[i]);
      ids.row<int32_t>(t)[i] = e;
      weights.row<float>(t)[i] = rounded_mul(attr.normalise ? scores[e] / sum : scores[e], attr.scale);
    }
  }
}

}  // namespace

extern const Kernel route_cpu = {DeviceKind::cpu, Op::route, wants_router, work, run};

}  // namespace consonant
