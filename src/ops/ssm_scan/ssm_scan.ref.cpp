// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/ssm_scan/ssm_scan_node.hpp"

namespace consonant {

namespace {

double softplus(double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }

void run_token(const SsmArgs& args, int64_t token, int64_t head, float* h) {
  const int64_t group = args.group_of(head), states = args.states(), dim = args.dim();
  const float *x = args.x.row<float>(token * args.heads() + head),
              *b = args.b.row<float>(token * args.b.shape[1] + group),
              *c = args.c.row<float>(token * args.b.shape[1] + group);
  float* y = args.y.row<float>(token * args.heads() + head);
  const double dt = softplus(double{args.dt.row<float>(token)[head]} + args.dt_bias[head]);
  const double decay = std::exp(dt * args.a[head]);
  for (int64_t i = 0; i < dim; ++i) {
    double sum = double{args.d[head]} * x[i];
    for (int64_t s = 0; s < states; ++s) {
      h[s * dim + i] = static_cast<float>(decay * h[s * dim + i] + dt * b[s] * x[i]);
      sum += double{c[s]} * h[s * dim + i];
    }
    y[i] = static_cast<float>(sum);
  }
}

void run(const Args& node_args, int64_t, std::byte*) {
  const SsmArgs args(node_args);
  for_sequences(args.pos, args.seq, args.slots, [&](const SequenceRun& run) {
    for (int64_t head = 0; head < args.heads(); ++head) {
      float* h = args.state.row<float>((run.slot * args.heads() + head) * args.states());
      if (run.position == 0) std::fill_n(h, args.states() * args.dim(), 0.0f);
      for (int64_t token = run.first; token < run.last; ++token) run_token(args, token, head, h);
    }
  });
}

}  // namespace

extern const Kernel ssm_scan_ref = {DeviceKind::reference, Op::ssm_scan, ssm_scan_can_run, whole, run};

}  // namespace consonant
