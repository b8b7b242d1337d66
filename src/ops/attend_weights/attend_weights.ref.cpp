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
  if (Refusal refusal = wants_head_rows(node.inputs[0], "q")) return refusal;
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
  std::vector<double> scores(static_cast<size_t>(attr.positions));
  for (int64_t p = 0; p < attr.positions; ++p) {
    const KvPage page(keys, StateKind::keys, page_of[p / kv_page]);
    double sum = 0;
    for (int64_t i = 0; i < q.shape[2]; ++i) sum += double{x[i]} * page.read(kv_head, p % kv_page, i);
    scores[static_cast<size_t>(p)] = sum * attr.scale;
  }
  const double greatest = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (double& s : scores) sum += s = std::exp(s - greatest);
  float* y = args.out[0].row<float>(at);
  for (int64_t p = 0; p < attr.positions; ++p) y[p] = static_cast<float>(scores[static_cast<size_t>(p)] / sum);
}

void run(const Args& args, int64_t, std::byte*) {
  const int64_t rows = args.out[0].shape[0] * args.out[0].shape[1];
  for (int64_t r = 0; r < rows; ++r) weigh(args, r);
}

}  // namespace

extern const Kernel attend_weights_ref = {DeviceKind::reference, Op::attend_weights, can_run, whole, run};

}  // namespace consonant
