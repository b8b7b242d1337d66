// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/slots.hpp"
#include "ops/ssm_scan/ssm_scan.hpp"

namespace consonant {

// The inputs and outputs of a node by name.
struct SsmArgs {
  const View &x, &dt, &b, &c;
  const float *dt_bias, *a, *d;
  const View &pos, &seq, &slots, &y, &state;

  explicit SsmArgs(const Args& args)
      : x(args.in[1]),
        dt(args.in[2]),
        b(args.in[3]),
        c(args.in[4]),
        dt_bias(args.in[5].as<float>()),
        a(args.in[6].as<float>()),
        d(args.in[7].as<float>()),
        pos(args.in[8]),
        seq(args.in[9]),
        slots(args.in[10]),
        y(args.out[0]),
        state(args.out[1]) {}

  int64_t heads() const { return state.shape[1]; }
  int64_t states() const { return state.shape[2]; }
  int64_t dim() const { return state.shape[3]; }
  int64_t group_of(int64_t head) const { return head / (heads() / b.shape[1]); }
};

inline Refusal ssm_scan_can_run(const Node& node) { return wants_float_inputs(node, 8); }

}  // namespace consonant
