// SPDX-License-Identifier: Apache-2.0
#include "ops/ops_page.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

namespace consonant {
namespace {

TEST(OpsPage, IsTheOneInDocs) {
  std::ifstream file(CONSONANT_SOURCE_DIR "/docs/ops.md");
  const std::string kept{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(kept, ops_page()) << "write it anew: consonant verify ops --list > docs/ops.md";
}

TEST(OpsPage, ListsWhatKernelsTakeAndNothingElse) {
  const std::string page = ops_page();
  EXPECT_THAT(page, testing::HasSubstr("| `attend` | cpu | `cache`: f32, f16, q8_0;"));
  EXPECT_THAT(page, testing::HasSubstr("| `silu` | cpu | `x`: f32 |"));
  EXPECT_THAT(page, testing::HasSubstr("`pos`: i32;"));
  EXPECT_THAT(page, testing::HasSubstr("`bias`: any, held as f32"));
}

}  // namespace
}  // namespace consonant
