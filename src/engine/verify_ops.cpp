// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/threads.hpp"
#include "consonant/verify.hpp"
#include "ops/ops_page.hpp"
#include "ops/sweep_gpu.hpp"
#include "runtime/backends.hpp"

namespace consonant {

namespace {

// Of a case that `reduced` leaves in: enough for every path of a kernel, and soon over where a tool slows each access
// down.
constexpr int64_t reduced_work = 20000;

KernelReport report(Op op, std::string_view kernel, std::string takes, const std::string& device, SweepResult found) {
  return {std::string(op_name(id(op))),
          std::string(kernel),
          device,
          std::move(takes),
          found.cases,
          found.error,
          found.tolerance,
          std::move(found.faults)};
}

void sweep_host(const DeviceName& device, const OpsOptions& options, OpsReport& all) {
  ThreadPool pool(std::max(2, usable_cores()));
  const int64_t most_work = options.reduced ? reduced_work : INT64_MAX;
  all.machine = name(device.kind);
  for (const Kernel* kernel : all_kernels()) {
    const std::string_view op = op_name(id(kernel->op));
    if (kernel->device == device.kind && (options.op.empty() || options.op == op))
      all.kernels.push_back(
          report(kernel->op, op, what_it_takes(*kernel), all.machine, sweep(*kernel, pool, most_work)));
  }
}

void sweep_accelerator(const DeviceName& name, const OpsOptions& options, OpsReport& all) {
  const Backend& backend = find_backend(name.kind);
  std::unique_ptr<Accelerator> device = backend.open(name.index);
  const AcceleratorInfo& info = device->info();
  const Limits limits = info.limits;
  all.machine = fmt::format("{}, {}, {}", info.name, info.target, info.driver);
  for (const GpuKernel& kernel : backend.kernels()) {
    const std::string_view op = op_name(id(kernel.op));
    if (!options.op.empty() && options.op != op && options.op != kernel.name) continue;
    SweepResult found = sweep(kernel, *device, options.reduced ? reduced_work : INT64_MAX);
    const bool lost = found.lost;
    all.kernels.push_back(report(kernel.op, kernel.name, what_it_takes(kernel, limits),
                                 std::string(consonant::name(name.kind)), std::move(found)));
    if (!lost) continue;
    // What the driver can't recover is an error for the kernels that are left.
    device.reset();
    device = backend.open(name.index);
  }
}

}  // namespace

OpsReport verify_ops(const OpsOptions& options) {
  const DeviceName device = parse_device_name(options.device == "auto" ? "cpu" : options.device);
  OpsReport all;
  if (is_accelerator(device.kind))
    sweep_accelerator(device, options, all);
  else
    sweep_host(device, options, all);
  if (!all.kernels.empty()) return all;
  std::string known;
  for (OpId i = first_op; i < id(Op::count); ++i) known += fmt::format("{}{}", known.empty() ? "" : ", ", op_name(i));
  bad_usage("{} has no kernel for '{}'; there are the ops {}", options.device, options.op, known);
}

std::string describe_ops() {
  const Backend& emulator = find_backend(DeviceKind::emu32);
  return ops_page(emulator.kernels(), emulator.open(0)->limits());
}

}  // namespace consonant
