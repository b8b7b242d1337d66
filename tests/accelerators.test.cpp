// SPDX-License-Identifier: Apache-2.0
// The kernels of accelerators on both emulators, each over all cases of its op.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "ops/sweep_gpu.hpp"
#include "runtime/backends.hpp"

namespace consonant {
namespace {

struct Emulated {
  DeviceKind device;
  const GpuKernel* kernel;
};

std::vector<Emulated> emulated_kernels() {
  std::vector<Emulated> all;
  for (const DeviceKind device : {DeviceKind::emu32, DeviceKind::emu64})
    for (const GpuKernel& kernel : find_backend(device).kernels()) all.push_back({device, &kernel});
  return all;
}

class AcceleratorKernels : public testing::TestWithParam<Emulated> {};

TEST_P(AcceleratorKernels, AgreeWithTheReference) {
  const std::unique_ptr<Accelerator> device = find_backend(GetParam().device).open(0);
  const SweepResult result = sweep(*GetParam().kernel, *device);
  EXPECT_GT(result.cases, 0);
  for (const std::string& fault : result.faults) ADD_FAILURE() << fault;
}

INSTANTIATE_TEST_SUITE_P(Ops, AcceleratorKernels, testing::ValuesIn(emulated_kernels()), [](const auto& test) {
  return std::string(test.param.kernel->name) + "_" + std::string(name(test.param.device));
});

TEST(Accelerators, HaveAKernelForEveryOpButThese) {
  std::set<std::string_view> missing;
  for (OpId op = first_op; op < id(Op::count); ++op) missing.insert(op_name(op));
  for (const GpuKernel& kernel : find_backend(DeviceKind::emu32).kernels()) missing.erase(op_name(id(kernel.op)));
  EXPECT_THAT(missing, testing::UnorderedElementsAre("quantize")) << "take the op from this list once it has a kernel";
}

}  // namespace
}  // namespace consonant
