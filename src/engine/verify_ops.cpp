// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "base/threads.hpp"
#include "consonant/verify.hpp"
#include "engine/model_setup.hpp"
#include "runtime/backends.hpp"
#include "ops/ops_page.hpp"
#include "ops/sweep.hpp"

namespace consonant {

std::vector<KernelReport> verify_ops(const std::string& device, const std::string& op) {
  const DeviceKind kind = parse_device_name(device == "auto" ? "cpu" : device).kind;
  ThreadPool pool(std::max(2, usable_cores()));
  std::vector<KernelReport> reports;
  for (const Kernel* kernel : all_kernels()) {
    const std::string name(op_name(id(kernel->op)));
    if (kernel->device != kind || (!op.empty() && op != name)) continue;
    SweepResult found = sweep(*kernel, pool);
    reports.push_back(
        {name, std::string(consonant::name(kind)), found.cases, found.error, found.tolerance, std::move(found.faults)});
  }
  if (!reports.empty()) return reports;
  std::string known;
  for (OpId i = first_op; i < id(Op::count); ++i) known += fmt::format("{}{}", known.empty() ? "" : ", ", op_name(i));
  bad_usage("there is no op '{}'; there are {}", op, known);
}

std::string describe_ops() { return ops_page(); }

}  // namespace consonant
