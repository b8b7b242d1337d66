// SPDX-License-Identifier: Apache-2.0
#include "ops/patches/patches.hpp"

#include "ops/cases.hpp"

namespace consonant {

std::vector<OpCase> patches_cases() {
  std::vector<OpCase> cases;
  for (const Edge edge : {Edge::zeros, Edge::mirror, Edge::repeat})
    for (const int64_t groups : {0, 1, 3, 70})
      for (const auto& [time, n, kernel, stride, before, after] :
           std::vector<std::array<int64_t, 6>>{{576, 1, 256, 128, 0, 64},
                                               {4, 129, 3, 1, 1, 1},
                                               {5, 8, 3, 2, 1, 1},
                                               {9, 3, 1, 1, 0, 0},
                                               {9, 3, 2, 3, 0, 0},
                                               {3, 5, 7, 1, 2, 2},
                                               {6, 2, 4, 4, 5, 5}})
        cases.push_back(
            {fmt::format("{} [{}, {}, {}], {} rows, stride {}, {} and {} {}", "x", groups, time, n, kernel, stride,
                         before, after,
                         edge == Edge::zeros    ? "zeros"
                         : edge == Edge::mirror ? "mirrored"
                                                : "repeated"),
             [=, time = time, n = n, kernel = kernel, stride = stride, before = before, after = after](CaseBuilder& b) {
               return patches(b.values("x", {groups, time, n}), {kernel, stride, before, after, edge});
             }});
  // More padding than a patch is long; groups that overlap, as windows of sound do.
  cases.push_back({"[2, 1, 4] between rows of zeros", [](CaseBuilder& b) {
                     return patches(b.values("x", {2, 1, 4}), {2, 1, 3, 3, Edge::zeros});
                   }});
  cases.push_back(
      {"overlapping groups", [](CaseBuilder& b) {
         return patches(split_heads(unfold(b.values("x", {500, 1}), 100, 50), 100), {20, 10, 0, 30, Edge::mirror});
       }});
  return cases;
}

}  // namespace consonant
