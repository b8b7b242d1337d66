// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "ops/ops_page.hpp"
#include "runtime/backends.hpp"

namespace consonant {
namespace {

std::string page_of(DeviceKind emulator) {
  const Backend& backend = find_backend(emulator);
  return ops_page(backend.kernels(), backend.open(0)->limits());
}

// tools/render_docs.py fills a part in, and a test of its own checks that.
std::string without_cards(const std::string& page) {
  const size_t begin = page.find("-->\n", page.find("<!-- cards: ")), end = page.find("<!-- end cards -->");
  if (begin >= end || end == std::string::npos) return page;
  return page.substr(0, begin + 4) + page.substr(end);
}

TEST(OpsPage, IsTheOneInDocs) {
  std::ifstream file(CONSONANT_SOURCE_DIR "/docs/ops.md");
  const std::string kept{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(without_cards(kept), page_of(DeviceKind::emu32))
      << "write it anew: consonant verify ops --list > docs/ops.md && tools/render_docs.py";
}

TEST(OpsPage, SaysTheSameOfBothEmulators) { EXPECT_EQ(page_of(DeviceKind::emu32), page_of(DeviceKind::emu64)); }

TEST(OpsPage, ListsWhatKernelsTakeAndNothingElse) {
  const std::string page = page_of(DeviceKind::emu32);
  EXPECT_THAT(page, testing::HasSubstr("| `attend` | cpu | `cache`: f32, f16, q8_0;"));
  EXPECT_THAT(page, testing::HasSubstr("| `silu` | cpu | `x`: f32 |"));
  EXPECT_THAT(page, testing::HasSubstr("| `silu` | cuda, hip | `x`: f32 |"));
  EXPECT_THAT(page, testing::HasSubstr("`pos`: i32;"));
  EXPECT_THAT(page, testing::HasSubstr("`bias`: any, held as f32"));
}

}  // namespace
}  // namespace consonant
