// SPDX-License-Identifier: Apache-2.0
#include "ops/kernel.hpp"

#include <array>

namespace consonant {

#define OP(name) extern const Kernel name##_ref, name##_cpu;
#include "ops/all.def"
#undef OP

std::string_view op_name(OpId op) {
  static constexpr std::string_view names[] = {
      "input",
      "weight",
      "state",
      "view",
#define OP(name) #name,
#include "ops/all.def"
#undef OP
  };
  return op < std::size(names) ? names[op] : "unknown";
}

std::span<const Kernel* const> all_kernels() {
  static const Kernel* const kernels[] = {
#define OP(name) &name##_ref, &name##_cpu,
#include "ops/all.def"
#undef OP
  };
  return kernels;
}

Choice choose_kernel(const Node& node, DeviceKind device) {
  std::string reasons;
  for (const Kernel* kernel : all_kernels()) {
    if (!is(node, kernel->op) || kernel->device != device) continue;
    Refusal refusal = kernel->can_run(node);
    if (!refusal) return {kernel, {}};
    reasons += (reasons.empty() ? "" : "; ") + refusal.reason;
  }
  if (reasons.empty()) reasons = "no kernel";
  return {nullptr, {reasons}};
}

bool View::contiguous() const {
  int64_t stride = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    if (shape[i] > 1 && strides[static_cast<size_t>(i)] != stride) return false;
    stride *= shape[i];
  }
  return true;
}

int64_t View::row_offset(int64_t r) const {
  int64_t offset = 0;
  for (int i = shape.rank() - 2; i >= 0; --i) {
    offset += r % shape[i] * strides[static_cast<size_t>(i)];
    r /= shape[i];
  }
  return offset;
}

}  // namespace consonant
