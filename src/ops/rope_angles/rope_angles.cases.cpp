// SPDX-License-Identifier: Apache-2.0
#include "ops/rope_angles/rope_angles.hpp"

#include <fmt/format.h>

#include "ops/op_case.hpp"

namespace consonant {

std::vector<OpCase> rope_angles_cases() {
  std::vector<OpCase> cases;
  const auto add = [&](int64_t tokens, int64_t dims, double base, double scale, bool divided, int32_t greatest) {
    cases.push_back(
        {fmt::format("{} tokens to position {}, {} dims, base {}, scale {}{}", tokens, greatest, dims, base, scale,
                     divided ? ", divisors" : ""),
         [=](CaseBuilder& b) {
           Tensor pos = b.integers("pos", Shape({tokens}, Axis::token), 0, greatest);
           return rope_angles(pos, {dims, base, scale, true, divided ? b.vector("divisors", dims / 2) : Tensor{}});
         }});
  };
  for (int64_t tokens : {0, 1, 2, 7, 1025, 66000}) add(tokens, 4, 10000, 1, false, 4096);
  for (int64_t dims : {2, 6, 64, 256}) add(9, dims, 10000, 1, false, 100);
  add(33, 64, 1e6, 0.125, false, 1 << 20);
  add(33, 128, 500000, 1, true, 131071);
  add(33, 64, 10000, 1, false, 0x7FFFFFFF);
  for (const int64_t dims : {16, 64, 256})
    cases.push_back({fmt::format("33 tokens, {} dims, yarn", dims), [=](CaseBuilder& b) {
                       Tensor pos = b.integers("pos", Shape({33}, Axis::token), 0, 163839);
                       return rope_angles(pos, {dims, 10000, 1, true, {}, {40, 4096, 32, 1}, 1.25});
                     }});
  return cases;
}

}  // namespace consonant
