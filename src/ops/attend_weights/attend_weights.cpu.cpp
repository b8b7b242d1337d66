// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "ops/attend_weights/attend_weights.hpp"
#include "ops/kv_cache.hpp"
#include "ops/work.hpp"

namespace consonant {

namespace {

Refusal can_run(const Node& node) {
  if (Refusal refusal = wants_head_rows(node.inputs[0], "q")) return refusal;
  return wants_cache(node.inputs[1], node.inputs[1]);
}

// A chunk is a row: a token and a chosen head. Its scratch holds the head's keys of a page.
Work work(const Args& args) {
  const View& out = args.out[0];
  return {out.shape[0] * out.shape[1], args.in[1].shape[2] * kv_page * int64_t{sizeof(float)}};
}

void run(const Args& args, int64_t chunk, std::byte* scratch) {
  const View &q = args.in[0], &keys = args.in[1];
  const auto& attr = args.attr<AttendWeightsAttr>();
  const auto chosen = static_cast<int64_t>(attr.heads.size());
  const int64_t token = chunk / chosen, head = attr.heads[static_cast<size_t>(chunk % chosen)];
  const int64_t kv_head = head / (q.shape[1] / keys.shape[1]);
  const float* x = q.row<float>(token * q.shape[1] + head);
  const int32_t* page_of = args.in[3].row<int32_t>(args.in[2].as<int32_t>()[token]);
  auto* page = reinterpret_cast<float*>(scratch);
  float* y = args.out[0].row<float>(chunk);
  for (int64_t p = 0; p < attr.positions; p += kv_page) {
    KvPage(keys, StateKind::keys, page_of[p / kv_page]).decode(kv_head, page);
    float sums[kv_page] = {};
    for (int64_t i = 0; i < q.shape[2]; ++i)
      for (int64_t k = 0; k < kv_page; ++k) sums[k] += x[i] * page[i * kv_page + k];
    const int64_t n = std::min(kv_page, attr.positions - p);
    for (int64_t k = 0; k < n; ++k) y[p + k] = sums[k] * attr.scale;
  }
  const float greatest = *std::max_element(y, y + attr.positions);
  float sum = 0;
  for (int64_t p = 0; p < attr.positions; ++p) sum += y[p] = std::exp(y[p] - greatest);
  for (int64_t p = 0; p < attr.positions; ++p) y[p] /= sum;
}

}  // namespace

extern const Kernel attend_weights_cpu = {DeviceKind::cpu, Op::attend_weights, can_run, work, run};

}  // namespace consonant
