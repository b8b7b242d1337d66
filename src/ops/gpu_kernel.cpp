// SPDX-License-Identifier: Apache-2.0
#include "ops/gpu_kernel.hpp"

#include <fmt/format.h>

#include "ops/work.hpp"

namespace consonant {

GpuChoice choose_kernel(const Node& node, std::span<const GpuKernel> kernels, const Limits& limits, bool exact) {
  std::string reasons;
  for (const GpuKernel& kernel : kernels) {
    if (!is(node, kernel.op) || (exact && kernel.rounding > 0)) continue;
    const Refusal refusal = kernel.can_run(node, limits);
    if (!refusal) return {&kernel, {}};
    reasons += (reasons.empty() ? "" : "; ") + refusal.reason;
  }
  if (reasons.empty()) reasons = "no kernel";
  return {nullptr, {reasons}};
}

Refusal wants_gpu_shapes(const Node& node, const Limits& limits) {
  const auto check = [&](const Shape& shape) {
    if (shape.rank() > 3) return fmt::format("{} has more than three dimensions", to_string(shape));
    if (shape.rows() > limits.grid) return fmt::format("{} has more than {} rows", to_string(shape), limits.grid);
    return std::string();
  };
  for (const Tensor& x : node.inputs)
    if (std::string reason = check(x.shape()); !reason.empty()) return {reason};
  for (const Output& out : node.outputs)
    if (std::string reason = check(out.shape); !reason.empty()) return {reason};
  return {};
}

Refusal wants_gpu_rows(const Node& node, const Limits& limits) {
  Refusal refusal = wants_gpu_shapes(node, limits);
  return refusal ? refusal : wants_float_rows(node);
}

int64_t extent(const View& view) {
  if (view.shape.count() == 0) return 0;
  int64_t last = 0;  // element
  for (int i = 0; i < view.shape.rank(); ++i) last += (view.shape[i] - 1) * view.strides[static_cast<size_t>(i)];
  if (view.layout == Layout::rows8) return packed_shape(view.type, view.shape.sizes()).bytes();
  return row_bytes(view.type, info(view.type).block) * ((last + info(view.type).block) / info(view.type).block);
}

}  // namespace consonant
