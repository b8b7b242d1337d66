// SPDX-License-Identifier: Apache-2.0
#include "ops/sweep.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>

namespace consonant {
namespace {

using testing::HasSubstr;

class Sweep : public testing::TestWithParam<const Kernel*> {};

TEST_P(Sweep, AgreesWithTheReference) {
  ThreadPool pool(3);
  const SweepResult result = sweep(*GetParam(), pool);
  EXPECT_GT(result.cases, 0);
  for (const std::string& fault : result.faults) ADD_FAILURE() << fault;
}

// All but the reference's own.
std::vector<const Kernel*> device_kernels() {
  std::vector<const Kernel*> kernels;
  for (const Kernel* kernel : all_kernels())
    if (kernel->device != DeviceKind::reference) kernels.push_back(kernel);
  return kernels;
}

INSTANTIATE_TEST_SUITE_P(Kernels, Sweep, testing::ValuesIn(device_kernels()), [](const auto& test) {
  return std::string(op_name(id(test.param->op))) + "_" + std::string(name(test.param->device));
});

Refusal takes_all(const Node&) { return {}; }
Work four_chunks(const Args&) { return {4, 8}; }

// Kernels that multiply as scale does, each with a fault that the sweep must see. The first has none.
template <int fault>
void scaled(const Args& args, int64_t chunk, std::byte* scratch) {
  const View &x = args.in[0], &y = args.out[0];
  static std::atomic<int64_t> previous{0};
  if (fault == 5) scratch[8] = std::byte{1};
  if (fault == 6 && chunk == 3) y.as<float>()[y.shape.count()] = 0;
  for (int64_t r = chunk; r < y.rows(); r += 4)
    for (int64_t i = 0; i < y.last(); ++i) {
      float v = 25.298221f * x.row<float>(r)[i];
      if (fault == 1) v *= 1.0001f;
      if (fault == 2 && r == 2 && i == 0) continue;
      if (fault == 3 && previous > chunk) v = std::nextafter(v, 0.0f);
      if (fault == 4 && y.rows() == 1) v = std::nextafter(v, 0.0f);
      y.row<float>(r)[i] = v;
    }
  previous = chunk;
}

TEST(SweepItself, SeesEveryKindOfFault) {
  ThreadPool pool(2);
  const auto cases = cases_of(Op::scale);
  const auto faults = [&](auto run) {
    const Kernel kernel{DeviceKind::cpu, Op::scale, takes_all, four_chunks, run};
    std::string all;
    for (size_t i = 0; i < 18; ++i) all += run_case(kernel, cases[i], {}, pool).fault + "\n";
    return all;
  };
  const std::string none(18, '\n');
  EXPECT_EQ(faults(scaled<0>), none);
  EXPECT_THAT(faults(scaled<1>), HasSubstr("differs by 9."));
  EXPECT_NE(faults(scaled<2>), none);
  EXPECT_NE(faults(scaled<3>), none);
  EXPECT_THAT(faults(scaled<4>), HasSubstr("depends on which tokens share a batch"));
  EXPECT_THAT(faults(scaled<5>), HasSubstr("writes past its 8 bytes of scratch memory"));
  EXPECT_THAT(faults(scaled<6>), HasSubstr("writes past the end of its output"));
}

TEST(SweepItself, EveryOpHasCasesThatItsReferenceTakes) {
  for (OpId op = first_op; op < id(Op::count); ++op) {
    const auto cases = cases_of(static_cast<Op>(op));
    EXPECT_GE(cases.size(), 5u) << op_name(op);
    for (const OpCase& c : cases) {
      CaseBuilder b;
      const Tensor y = c.build(b);
      EXPECT_EQ(y.node->op, op) << c.name;
      EXPECT_EQ(choose_kernel(*y.node, DeviceKind::reference).refusal.reason, "") << op_name(op) << ": " << c.name;
      EXPECT_EQ(choose_kernel(*y.node, DeviceKind::cpu).refusal.reason, "") << op_name(op) << ": " << c.name;
    }
  }
}

}  // namespace
}  // namespace consonant
