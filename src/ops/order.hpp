// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

namespace consonant {

// A number's place in a sorted row as an unsigned integer, the smaller one first. -0 and 0 have the same place; NaN
// comes last whichever way the row is sorted.
constexpr uint32_t place_of(uint32_t bits, bool descending) {
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return 0xFFFFFFFFu;
  if (bits == 0x80000000u) bits = 0;
  const uint32_t ascending = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
  return descending ? ~ascending : ascending;
}

// Place and index as one integer: a sort of these is stable, and the same on every device.
constexpr uint64_t sort_key(uint32_t bits, int64_t index, bool descending) {
  return uint64_t{place_of(bits, descending)} << 32 | static_cast<uint32_t>(index);
}
inline uint64_t sort_key(float x, int64_t index, bool descending) {
  return sort_key(std::bit_cast<uint32_t>(x), index, descending);
}
constexpr int32_t index_of(uint64_t key) { return static_cast<int32_t>(static_cast<uint32_t>(key)); }

constexpr uint64_t last_key = ~uint64_t{0};  // behind all others

}  // namespace consonant
