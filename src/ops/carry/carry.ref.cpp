// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "ops/carry/carry.hpp"
#include "ops/slots.hpp"

namespace consonant {

namespace {

void run(const Args& args, int64_t, std::byte*) {
  const View &x = args.in[1], &y = args.out[0], &state = args.out[1];
  const int64_t kept = state.shape[1], rows = kept + x.rows();
  const bool begins = args.in[2].as<int32_t>()[0] == 0, repeats = args.attr<CarryAttr>().edge == Edge::repeat;
  const int64_t first = args.in[3].as<int32_t>()[0] * kept;  // of the slot
  for (int64_t i = 0; i < y.last(); ++i) {
    std::vector<float> column;
    for (int64_t r = 0; r < rows; ++r) {
      if (r >= kept)
        column.push_back(x.row<float>(r - kept)[i]);
      else if (!begins)
        column.push_back(state.row<float>(first + r)[i]);
      else
        column.push_back(repeats ? x.row<float>(0)[i] : 0);
    }
    for (int64_t r = 0; r < rows; ++r) y.row<float>(r)[i] = column[static_cast<size_t>(r)];
    for (int64_t r = 0; r < kept; ++r) state.row<float>(first + r)[i] = column[static_cast<size_t>(rows - kept + r)];
  }
}

Refusal can_run(const Node& node) { return wants_float_inputs(node, 2); }

}  // namespace

extern const Kernel carry_ref = {DeviceKind::reference, Op::carry, can_run, whole, run};

}  // namespace consonant
