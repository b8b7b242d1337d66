// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace consonant {

// xoshiro256** (Blackman and Vigna, 2018), its state filled from a 64-bit seed by SplitMix64. The standard library's
// engines are portable but its distributions are not: the same seed has to give the same tokens everywhere.
class Random {
 public:
  explicit Random(uint64_t seed) {
    for (uint64_t& word : state_) {
      seed += 0x9e3779b97f4a7c15u;
      uint64_t z = seed;
      z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
      z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
      word = z ^ (z >> 31);
    }
  }
  explicit Random(const std::array<uint64_t, 4>& state) : state_(state) {}

  uint64_t next() {
    const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  // Uniform from 0 to 2^53 - 1, and in [0, 1).
  uint64_t number() { return next() >> 11; }
  double uniform() { return double(number()) * 0x1p-53; }

 private:
  std::array<uint64_t, 4> state_;
};

}  // namespace consonant
