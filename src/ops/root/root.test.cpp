// SPDX-License-Identifier: Apache-2.0
#include "ops/root/root.hpp"

#include <cmath>

#include "ops/test_support.hpp"

namespace consonant {
namespace {

using namespace testing_ops;

TEST(Root, AddsFirst) {
  expect_near([](CaseBuilder& b) { return root(b.numbers("x", {1, 3}, {0, 3, 8.75f}), 0.25f); }, {0.5f, 1.8027756f, 3});
}

}  // namespace
}  // namespace consonant
