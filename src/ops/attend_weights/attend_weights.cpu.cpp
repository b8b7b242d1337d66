// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/attend_weights/attend_weights.hpp"
#include "ops/kv_cache.hpp"
#include "ops/work.hpp"

namespace consonant {

namespace {

Refusal can_run(const Node& node) {
  const Tensor& q = node.inputs[0];
  if (q.type() != DType::f32) return {"q must be f32"};
  if (q.node->outputs[static_cast<size_t>(q.output)].strides[2] != 1) return {"q's rows aren't contiguous"};
  return wants_cache(node.inputs[1], node.inputs[1]);
}

// Row `at`, counted over tokens and chosen heads.
void weigh(const Args& args, int64_t at) {
  const View &q = args.in[0], &keys = args.in[1], &pages = args.in[3];
  const auto& attr = args.attr<AttendWeightsAttr>();
  const auto chosen = static_cast<int64_t>(attr.heads.size());
  const int64_t token = at / chosen, head = attr.heads[static_cast<size_t>(at % chosen)], heads = q.shape[1];
  const int64_t kv_head = head / (heads / keys.shape[1]);
  const float* x = q.row<float>(token * heads + head);
  const int32_t* page_of = pages.row<int32_t>(args.in[2].as<int32_t>()[token]);
  std::vector<float> scores(static_cast<size_t>(attr.positions));
  for (int64_t p = 0; p < attr.positions; ++p) {
    const KvPage page(keys, StateKind::keys, page_of[p / kv_page]);
    float sum = 0;
    for (int64_t i = 0; i < q.shape[2]; ++i) sum += float{x[i]} * page.read(kv_head, p % kv_page, i);
    scores[static_cast<size_t>(p)] = sum * attr.scale;
  }
  const float greatest = *std::max_element(scores.begin(), scores.end());
  float sum = 0;
  for (float& s : scores) sum += s = std::exp(s - greatest);
  float* y = args.out[0].row<float>(at);
  for (int64_t p = 0; p < attr.positions; ++p) y[p] = static_cast<float>(scores[static_cast<size_t>(p)] / sum);
}

// A chunk is a row.
Work work(const Args& args) { return {args.out[0].shape[0] * args.out[0].shape[1], 0}; }

void run(const Args& args, int64_t chunk, std::byte*) { weigh(args, chunk); }

}  // namespace

extern const Kernel attend_weights_cpu = {DeviceKind::cpu, Op::attend_weights, can_run, work, run};

}  // namespace consonant
