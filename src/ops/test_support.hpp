// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <functional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "ops/sweep.hpp"

// What the tests of the ops share.
namespace consonant::testing_ops {

using testing::HasSubstr;

inline constexpr DeviceKind both_devices[] = {DeviceKind::cpu, DeviceKind::reference};

using Build = std::function<Tensor(CaseBuilder&)>;

// The node's first output is exactly this on every device.
inline void expect_exactly(const Build& build, const std::vector<float>& want) {
  for (const DeviceKind device : both_devices) EXPECT_EQ(compute(device, build), want) << name(device);
}

inline void expect_near(const Build& build, const std::vector<float>& want, float share = 1e-6f) {
  for (const DeviceKind device : both_devices) {
    const std::vector<float> got = compute(device, build);
    ASSERT_EQ(got.size(), want.size()) << name(device);
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_NEAR(got[i], want[i], share * (1 + std::abs(want[i]))) << name(device) << ", element " << i;
  }
}

// The message of the error that making the node is.
inline std::string refusal_of(const Build& build) {
  CaseBuilder b;
  try {
    build(b);
  } catch (const Error& error) {
    EXPECT_EQ(error.exit(), Exit::failed);
    return error.what();
  }
  return "no error";
}

// The CPU's kernel for such a node agrees with the reference over the op's cases, on each instruction set that it is
// compiled for and that this machine has.
inline void expect_on_every_instruction_set(const Build& build) {
  ThreadPool pool(1);
  CaseBuilder probe;
  const Tensor y = build(probe);
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    const SweepResult result = sweep(*choose_kernel(*y.node, DeviceKind::cpu).kernel, pool);
    for (const std::string& fault : result.faults) ADD_FAILURE() << fault;
  }
  hwy::SetSupportedTargetsForTest(0);
}

}  // namespace consonant::testing_ops
