// SPDX-License-Identifier: Apache-2.0
#include "ops/linear_set/linear_set_parts.hpp"

namespace consonant::GPU_BUILD {

namespace {

Refusal can_run(const Node& node, const Limits& limits) { return LinearSetParts(linear_gpu()).can_run(node, limits); }

int64_t scratch(const Node& node, const Limits& limits) { return LinearSetParts(linear_gpu()).scratch(node, limits); }

void launch(const Args& args, Accelerator& device, std::byte* scratch) {
  LinearSetParts(linear_gpu()).launch(args, device, scratch);
}

}  // namespace

GpuKernel linear_set_gpu() { return {"linear_set", Op::linear_set, can_run, scratch, launch}; }

}  // namespace consonant::GPU_BUILD
