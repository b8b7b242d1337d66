// SPDX-License-Identifier: Apache-2.0
#include "ops/relu/relu.hpp"

#include <hwy/targets.h>

#include <cmath>
#include <limits>

#include "ops/test_support.hpp"

namespace consonant {
namespace {

using namespace testing_ops;

TEST(Relu, KeepsWhatIsAboveZero) {
  expect_exactly(
      [](CaseBuilder& b) {
        return relu(b.numbers("x", {2, 3}, {0, 1, -1, 3e38f, -20, 1e-40f}));
      },
      {0, 1, 0, 3e38f, 0, 1e-40f});
}

TEST(Relu, ShowsWhatIsNoNumber) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (const DeviceKind device : both_devices) {
    const std::vector<float> y = compute(device, [=](CaseBuilder& b) {
      return relu(b.numbers("x", {1, 3}, {nan, inf, -inf}));
    });
    EXPECT_TRUE(std::isnan(y[0])) << name(device);
    EXPECT_EQ(y[1], inf) << name(device);
    EXPECT_EQ(y[2], 0) << name(device);
  }
}

TEST(Relu, AgreesOnEveryInstructionSet) {
  ThreadPool pool(1);
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    CaseBuilder probe;
    const Tensor y = relu(probe.values("x", {1, 1}));
    const SweepResult result = sweep(*choose_kernel(*y.node, DeviceKind::cpu).kernel, pool);
    for (const std::string& fault : result.faults) ADD_FAILURE() << fault;
  }
  hwy::SetSupportedTargetsForTest(0);
}

}  // namespace
}  // namespace consonant
