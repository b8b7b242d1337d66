// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace consonant {

// Token ids that a benchmark reads: any will do, but not always the same one.
inline std::vector<int32_t> some_tokens(int64_t n, int64_t vocabulary, int64_t salt) {
  std::vector<int32_t> tokens(static_cast<size_t>(n));
  uint64_t x = 0x9E3779B97F4A7C15u + static_cast<uint64_t>(salt);
  for (int32_t& token : tokens) {
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    token = static_cast<int32_t>(x % static_cast<uint64_t>(vocabulary));
  }
  return tokens;
}

}  // namespace consonant
