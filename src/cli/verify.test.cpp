// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/error.hpp"
#include "cli/world.hpp"

namespace consonant {
namespace {

TEST(VerifyOps, RunsTheKernelsOfThisProgram) {
  World world{Output(STDOUT_FILENO)};
  for (const char* device : {"cpu", "emu64"}) {
    const std::vector<KernelReport> kernels = world.verify_ops({device, "scale", true}).kernels;
    ASSERT_EQ(kernels.size(), 1u);
    EXPECT_EQ(kernels[0].device, device);
    EXPECT_EQ(kernels[0].kernel, "scale");
    EXPECT_EQ(kernels[0].takes, "`x`: f32");
    EXPECT_GT(kernels[0].cases, 10);
    EXPECT_THAT(kernels[0].faults, testing::IsEmpty());
  }
  EXPECT_THROW(world.verify_ops({"cpu", "sale"}), Error);
  EXPECT_THROW(world.verify_ops({"cuba"}), Error);
  EXPECT_THROW(world.verify_ops({"emu32:1"}), Error);
  EXPECT_THAT(describe_ops(), testing::StartsWith("# Ops and their kernels\n"));
}

}  // namespace
}  // namespace consonant
