// SPDX-License-Identifier: Apache-2.0
// One launch writes y, the next one keeps its last rows.
#include "ops/carry/carry.hpp"
#include "ops/gpu_rows.hpp"
#include "ops/slots.hpp"

namespace consonant::GPU_BUILD {

namespace {

// A stream's place in the state.
struct Slot {
  gpu::Ptr<float> state;
  gpu::Ptr<const int32_t> pos, number;
  int64_t kept = 0, n = 0;

  GPU_FN gpu::Ptr<float> row(int64_t r) const { return state + (number[0] * kept + r) * n; }
};

GPU_KERNEL void carry(Rows<const float> x, Slot slot, bool repeats, Rows<float> y) {
  const bool begins = slot.pos[0] == 0;
  for_elements(y.rows, y.cols, [&](int64_t r, int64_t i) {
    if (r >= slot.kept)
      y.row(r)[i] = x.row(r - slot.kept)[i];
    else if (!begins)
      y.row(r)[i] = slot.row(r)[i];
    else
      y.row(r)[i] = repeats ? static_cast<float>(x.row(0)[i]) : 0;
  });
}

GPU_KERNEL void keep(Rows<const float> y, Slot slot) {
  for_elements(slot.kept, slot.n, [&](int64_t r, int64_t i) { slot.row(r)[i] = y.row(y.rows - slot.kept + r)[i]; });
}

void launch(const Args& args, Accelerator& device, std::byte*) {
  const View &y = args.out[0], &state = args.out[1];
  const Slot slot = {pointer<float>(state), pointer<const int32_t>(args.in[2]), pointer<const int32_t>(args.in[3]),
                     state.shape[1], state.shape[2]};
  gpu::launch<carry, elementwise_threads>(device, elementwise_grid(y), 0, rows_of<const float>(args.in[1]), slot,
                                          args.attr<CarryAttr>().edge == Edge::repeat, rows_of<float>(y));
  gpu::launch<keep, elementwise_threads>(device, elementwise_grid(slot.kept, slot.n), 0, rows_of<const float>(y), slot);
}

Refusal can_run(const Node& node, const Limits& limits) {
  if (Refusal refusal = wants_gpu_shapes(node, limits)) return refusal;
  return wants_float_inputs(node, 2);
}

}  // namespace

GpuKernel carry_gpu() { return {"carry", Op::carry, can_run, nullptr, launch}; }

}  // namespace consonant::GPU_BUILD
