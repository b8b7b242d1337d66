// SPDX-License-Identifier: Apache-2.0
// The first chunk has the rows before x and then replaces them in the slot: nobody else looks at it. The others copy x.
#include <algorithm>

#include "ops/carry/carry.hpp"
#include "ops/slots.hpp"

namespace consonant {

namespace {

constexpr int64_t chunk_elements = 65536;

Work work(const Args& args) { return {1 + RowChunks(args.in[1], chunk_elements).count(), 0}; }

void bring_and_keep(const Args& args) {
  const View &x = args.in[1], &y = args.out[0], &state = args.out[1];
  const int64_t kept = state.shape[1], rows = x.rows(), n = x.last();
  const bool begins = args.in[2].as<int32_t>()[0] == 0, repeats = args.attr<CarryAttr>().edge == Edge::repeat;
  const int64_t first = args.in[3].as<int32_t>()[0] * kept;
  for (int64_t r = 0; r < kept; ++r) {
    float* to = y.row<float>(r);
    if (!begins)
      std::copy_n(state.row<float>(first + r), n, to);
    else if (repeats)
      std::copy_n(x.row<float>(0), n, to);
    else
      std::fill_n(to, n, 0.0f);
  }
  for (int64_t r = 0; r < kept; ++r)
    std::copy_n(rows + r < kept ? y.row<float>(rows + r) : x.row<float>(rows + r - kept), n,
                state.row<float>(first + r));
}

void run(const Args& args, int64_t chunk, std::byte*) {
  if (chunk == 0) return bring_and_keep(args);
  const View &x = args.in[1], &y = args.out[0];
  const int64_t kept = args.out[1].shape[1];
  const RowChunks chunks(x, chunk_elements);
  for (int64_t r = chunks.first(chunk - 1); r < chunks.last(chunk - 1); ++r)
    std::copy_n(x.row<float>(r), x.last(), y.row<float>(kept + r));
}

Refusal can_run(const Node& node) { return wants_float_inputs(node, 2); }

}  // namespace

extern const Kernel carry_cpu = {DeviceKind::cpu, Op::carry, can_run, work, run};

}  // namespace consonant
