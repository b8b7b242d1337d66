// SPDX-License-Identifier: Apache-2.0
// A chunk is a part of a head's elements, for all tokens: its states stay in the nearest cache over a prompt. Each
// element, in float32, whatever vector it is in:
//   h[s] = fma(decay, h[s], b[s] (dt x)),  y = fma(c[s], h[s], y)   for s ascending, then y = fma(d, x, y)
// Decode is bound by the bytes of the states, which are read and written once a token.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/ssm_scan/ssm_scan.cpu.cpp"
#include <hwy/foreach_target.h>
// After foreach_target: both are compiled once a target.
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "ops/ssm_scan/ssm_scan_node.hpp"

#ifndef CONSONANT_SSM_SCAN_ONCE
#define CONSONANT_SSM_SCAN_ONCE
namespace consonant {

constexpr int64_t ssm_chunk_dims = 32;

// One token and head, elements from the chunk's first on.
struct SsmStep {
  const float *x, *b, *c;
  float *y, *h;
  float dt, decay, d;
  int64_t states, dim;
};

}  // namespace consonant
#endif

HWY_BEFORE_NAMESPACE();
namespace consonant {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// `V` vectors at once, so that sums don't wait for one another.
template <int V, class D>
HWY_INLINE void step_vectors(D d, const SsmStep& s, int64_t at) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto decay = hn::Set(d, s.decay);
  hn::Vec<D> x[V], y[V];
  for (int v = 0; v < V; ++v) {
    x[v] = hn::Mul(hn::Set(d, s.dt), hn::LoadU(d, s.x + at + v * lanes));
    y[v] = hn::Zero(d);
  }
  for (int64_t i = 0; i < s.states; ++i) {
    float* h = s.h + i * s.dim + at;
    const auto b = hn::Set(d, s.b[i]), c = hn::Set(d, s.c[i]);
    for (int v = 0; v < V; ++v) {
      const auto next = hn::MulAdd(decay, hn::LoadU(d, h + v * lanes), hn::Mul(b, x[v]));
      hn::StoreU(next, d, h + v * lanes);
      y[v] = hn::MulAdd(c, next, y[v]);
    }
  }
  for (int v = 0; v < V; ++v)
    hn::StoreU(hn::MulAdd(hn::Set(d, s.d), hn::LoadU(d, s.x + at + v * lanes), y[v]), d, s.y + at + v * lanes);
}

void ssm_step(const SsmStep& s, int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t at = 0;
  for (; at + 4 * lanes <= n; at += 4 * lanes) step_vectors<4>(d, s, at);
  for (; at + lanes <= n; at += lanes) step_vectors<1>(d, s, at);
  for (; at < n; ++at) step_vectors<1>(hn::CappedTag<float, 1>(), s, at);
}

}  // namespace HWY_NAMESPACE
}  // namespace consonant
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace consonant {

HWY_EXPORT(ssm_step);

namespace {

float softplus(float x) { return std::max(x, 0.0f) + std::log1p(std::exp(-std::abs(x))); }

Work work(const Args& args) {
  const SsmArgs a(args);
  return {a.heads() * ceil_div(a.dim(), ssm_chunk_dims), 0};
}

void run(const Args& node_args, int64_t chunk, std::byte*) {
  const SsmArgs args(node_args);
  const int64_t parts = ceil_div(args.dim(), ssm_chunk_dims), head = chunk / parts;
  const int64_t first = chunk % parts * ssm_chunk_dims, n = std::min(ssm_chunk_dims, args.dim() - first);
  const int64_t groups = args.b.shape[1], group = args.group_of(head);
  for_sequences(args.pos, args.seq, args.slots, [&](const SequenceRun& run) {
    float* h = args.state.row<float>((run.slot * args.heads() + head) * args.states()) + first;
    if (run.position == 0)
      for (int64_t s = 0; s < args.states(); ++s) std::fill_n(h + s * args.dim(), n, 0.0f);
    for (int64_t token = run.first; token < run.last; ++token) {
      const int64_t row = token * args.heads() + head;
      const float dt = softplus(args.dt.row<float>(token)[head] + args.dt_bias[head]);
      const SsmStep step{args.x.row<float>(row) + first,
                         args.b.row<float>(token * groups + group),
                         args.c.row<float>(token * groups + group),
                         args.y.row<float>(row) + first,
                         h,
                         dt,
                         std::exp(dt * args.a[head]),
                         args.d[head],
                         args.states(),
                         args.dim()};
      HWY_DYNAMIC_DISPATCH(ssm_step)(step, n);
    }
  });
}

}  // namespace

extern const Kernel ssm_scan_cpu = {DeviceKind::cpu, Op::ssm_scan, ssm_scan_can_run, work, run};

}  // namespace consonant
#endif
