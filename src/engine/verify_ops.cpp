// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "base/threads.hpp"
#include "consonant/verify.hpp"
#include "engine/model_setup.hpp"
#include "ops/ops_page.hpp"
#include "ops/sweep_gpu.hpp"

namespace consonant {

namespace {

// Of a case, for tools that slow a device down by hundreds.
constexpr int64_t reduced_work = 1 << 16;


KernelReport report_of(std::string_view kernel, const std::string& device, SweepResult found) {
  return {std::string(kernel), device, found.cases, found.error, found.tolerance, std::move(found.faults)};
}

}  // namespace

std::vector<KernelReport> verify_ops(const std::string& device, const std::string& op, bool reduced) {
  const Target target = open_target(device);
  const auto wanted = [&](Op which) { return op.empty() || op == op_name(id(which)); };
  std::vector<KernelReport> reports;
  if (target.accelerator) {
    for (const GpuKernel& kernel : target.kernels)
      if (wanted(kernel.op))
        reports.push_back(report_of(kernel.name, device,
                                    sweep(kernel, *target.accelerator, reduced ? reduced_work : INT64_MAX)));
  } else {
    ThreadPool pool(std::max(2, usable_cores()));
    for (const Kernel* kernel : all_kernels())
      if (kernel->device == target.kind && wanted(kernel->op))
        reports.push_back(report_of(op_name(id(kernel->op)), std::string(name(target.kind)), sweep(*kernel, pool)));
  }
  if (!reports.empty()) return reports;
  std::string known;
  for (OpId i = first_op; i < id(Op::count); ++i) known += fmt::format("{}{}", known.empty() ? "" : ", ", op_name(i));
  bad_usage("no kernel of {} is for an op '{}'; the ops are {}", device, op, known);
}

std::string describe_ops() { return ops_page(); }

}  // namespace consonant
