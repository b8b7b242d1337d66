// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <vector>

#include "ops/attend/attend.hpp"
#include "ops/kv_cache.hpp"
#include "ops/work.hpp"

namespace consonant {

namespace {

void attend_row(const Args& args, int64_t token, int64_t head) {
  const View &q = args.in[0], &keys = args.in[1], &values = args.in[2], &pages = args.in[5], &y = args.out[0];
  const auto& attr = args.attr<AttendAttr>();
  const int64_t position = args.in[3].as<int32_t>()[token], heads = q.shape[1];
  const int32_t* page_of = pages.row<int32_t>(args.in[4].as<int32_t>()[token]);
  const int64_t kv_head = head / (heads / keys.shape[1]);
  const int64_t first = attr.window > 0 ? std::max<int64_t>(0, position - attr.window + 1) : 0;
  const float* query = q.row<float>(token * heads + head);
  std::vector<double> scores;
  double greatest = -HUGE_VAL, sum = 0;
  for (int64_t p = first; p <= position; ++p) {
    const KvPage page(keys, StateKind::keys, page_of[p / kv_page]);
    double score = 0;
    for (int64_t i = 0; i < q.last(); ++i) score += double{query[i]} * page.read(kv_head, p % kv_page, i);
    scores.push_back(score * attr.scale);
    greatest = std::max(greatest, scores.back());
  }
  for (double& score : scores) sum += score = std::exp(score - greatest);
  std::vector<double> out(static_cast<size_t>(y.last()));
  for (int64_t p = first; p <= position; ++p) {
    const KvPage page(values, StateKind::values, page_of[p / kv_page]);
    for (int64_t i = 0; i < y.last(); ++i)
      out[static_cast<size_t>(i)] += scores[static_cast<size_t>(p - first)] / sum * page.read(kv_head, p % kv_page, i);
  }
  for (int64_t i = 0; i < y.last(); ++i)
    y.row<float>(token * heads + head)[i] = static_cast<float>(out[static_cast<size_t>(i)]);
}

void run(const Args& args, int64_t, std::byte*) {
  for (int64_t t = 0; t < args.in[0].shape[0]; ++t)
    for (int64_t h = 0; h < args.in[0].shape[1]; ++h) attend_row(args, t, h);
}

Refusal can_run(const Node& node) {
  if (node.inputs[0].type() != DType::f32) return {"q must be f32"};
  return wants_cache(node.inputs[1], node.inputs[2]);
}

}  // namespace

extern const Kernel attend_ref = {DeviceKind::reference, Op::attend, can_run, whole, run};

}  // namespace consonant
