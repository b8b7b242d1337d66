// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/attend_latent/attend_latent.hpp"
#include "ops/kv_cache.hpp"
#include "ops/work.hpp"

namespace consonant {

namespace {

void attend_row(const Args& args, int64_t token, int64_t head) {
  const View &q = args.in[0], &turned = args.in[1], &rows = args.in[2], &pages = args.in[5], &y = args.out[0];
  const auto& attr = args.attr<AttendAttr>();
  const int64_t position = args.in[3].as<int32_t>()[token], at = token * q.shape[1] + head, n = q.last();
  const int32_t* page_of = pages.row<int32_t>(args.in[4].as<int32_t>()[token]);
  const int64_t first = attr.window > 0 ? std::max<int64_t>(0, position - attr.window + 1) : 0;
  const auto page = [&](int64_t p) { return KvPage(rows, StateKind::values, page_of[p / kv_page]); };
  const float *query = q.row<float>(at), *behind = turned.row<float>(at);
  std::vector<double> scores;
  double greatest = -HUGE_VAL, sum = 0;
  for (int64_t p = first; p <= position; ++p) {
    double score = 0;
    const KvPage on = page(p);
    for (int64_t i = 0; i < n; ++i) score += double{query[i]} * on.read(0, p % kv_page, i);
    for (int64_t i = 0; i < turned.last(); ++i) score += double{behind[i]} * on.read(0, p % kv_page, n + i);
    scores.push_back(score * attr.scale);
    greatest = std::max(greatest, scores.back());
  }
  for (double& score : scores) sum += score = std::exp(score - greatest);
  std::vector<double> out(static_cast<size_t>(n));
  for (int64_t p = first; p <= position; ++p) {
    const KvPage on = page(p);
    const double weight = scores[static_cast<size_t>(p - first)] / sum;
    for (int64_t i = 0; i < n; ++i) out[static_cast<size_t>(i)] += weight * on.read(0, p % kv_page, i);
  }
  for (int64_t i = 0; i < n; ++i) y.row<float>(at)[i] = static_cast<float>(out[static_cast<size_t>(i)]);
}

void run(const Args& args, int64_t, std::byte*) {
  for (int64_t t = 0; t < args.in[0].shape[0]; ++t)
    for (int64_t h = 0; h < args.in[0].shape[1]; ++h) attend_row(args, t, h);
}

Refusal can_run(const Node& node) {
  if (node.inputs[0].type() != DType::f32 || node.inputs[1].type() != DType::f32) return {"q and turned must be f32"};
  return wants_cache(node.inputs[2], node.inputs[2]);
}

}  // namespace

extern const Kernel attend_latent_ref = {DeviceKind::reference, Op::attend_latent, can_run, whole, run};

}  // namespace consonant
