// SPDX-License-Identifier: Apache-2.0
// The kernels of accelerators on both emulators, each over all cases of its op.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "ops/sweep_gpu.hpp"
#include "runtime/backends.hpp"
#include "tests/faulty_kernels.hpp"

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

std::string faults_of(emu32::Fault fault) {
  const std::unique_ptr<Accelerator> device = find_backend(DeviceKind::emu32).open(0);
  const GpuKernel kernel = emu32::faulty_kernel(fault);
  const std::vector<OpCase> cases = cases_of(Op::scale);
  std::string all;
  for (size_t i = 0; i < 18; ++i) all += run_case(kernel, cases[i], {}, *device).fault + "\n";
  return all;
}

TEST(AcceleratorSweep, SeesEveryKindOfFault) {
  using emu32::Fault;
  using testing::HasSubstr;
  EXPECT_EQ(faults_of(Fault::none), std::string(18, '\n'));
  EXPECT_THAT(faults_of(Fault::wrong_factor), HasSubstr("differs by 6.9"));
  EXPECT_THAT(faults_of(Fault::skips_an_element), HasSubstr("differs by inf"));
  EXPECT_THAT(faults_of(Fault::sees_the_batch), HasSubstr("depends on which tokens share a batch"));
  EXPECT_THAT(faults_of(Fault::captures_data), HasSubstr("depends on what was there when it was captured"));
  EXPECT_THAT(faults_of(Fault::passes_scratch), HasSubstr("writes past the end of its 8 bytes of scratch memory"));
  EXPECT_THAT(faults_of(Fault::passes_output), HasSubstr("writes past the end of its output"));
  EXPECT_THAT(faults_of(Fault::passes_everything), HasSubstr("kernel write_at, block (0, 0, 0)"));
  EXPECT_THAT(faults_of(Fault::writes_input), HasSubstr("writes to its inputs"));
}

}  // namespace
}  // namespace consonant
