// SPDX-License-Identifier: Apache-2.0
#include "ops/sample/cut.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

namespace consonant {
namespace {

struct Doubt {
  float key;
  uint64_t mass;
  uint32_t index;
};

constexpr int bins = 1024;

// Maps a range of keys to bins; in double, where neither the range nor its inverse can overflow.
struct Binning {
  double low, scale;
  int operator()(float key) const { return std::min(int((double(key) - low) * scale), bins - 1); }
};

// Adds the bins to `before` up to the one in which `target` is reached, and returns that one; `bins` if none is.
int cross(const std::array<uint64_t, bins>& sums, uint64_t& before, uint64_t target) {
  int bin = 0;
  while (bin < bins && before + sums[size_t(bin)] < target) before += sums[size_t(bin++)];
  return bin;
}

// Leaves in `doubt` those of the bin that crosses; false if none does or if all keys are equal.
bool narrow(std::vector<Doubt>& doubt, uint64_t& before, uint64_t target) {
  const auto less = [](const Doubt& a, const Doubt& b) { return a.key < b.key; };
  const auto [least, greatest] = std::minmax_element(doubt.begin(), doubt.end(), less);
  if (!(least->key < greatest->key)) return false;
  const Binning bin{least->key, bins / (double(greatest->key) - double(least->key))};
  std::array<uint64_t, bins> sums{};
  for (const Doubt& d : doubt) sums[size_t(bin(d.key))] += d.mass;
  uint64_t crossed = before;
  const int cut = cross(sums, crossed, target);
  if (cut == bins) return false;
  before = crossed;
  // Fewer than there were: the least and the greatest key lie in different bins.
  std::erase_if(doubt, [&](const Doubt& d) { return bin(d.key) != cut; });
  return true;
}

}  // namespace

Cut find_cut(std::span<const float> keys, std::span<const uint64_t> masses, uint64_t target) {
  constexpr size_t few = 256;
  const auto mass = [&](size_t i) { return masses.empty() ? uint64_t{1} : masses[i]; };
  uint64_t before = 0;  // of those that are better than all in doubt
  std::vector<Doubt> doubt;

  // The first round is `narrow` without a copy of everything.
  float low = INFINITY, high = -INFINITY;
  for (const float key : keys) {
    low = key < low ? key : low;
    high = key > high ? key : high;
  }
  if (keys.size() > few && low < high) {
    const Binning bin{low, bins / (double(high) - double(low))};
    std::array<uint64_t, bins> sums{};
    for (size_t i = 0; i < keys.size(); ++i) sums[size_t(bin(keys[i]))] += mass(i);
    const int cut = cross(sums, before, target);
    if (cut == bins) return {high, keys.size()};
    for (size_t i = 0; i < keys.size(); ++i)
      if (bin(keys[i]) == cut) doubt.push_back({keys[i], mass(i), uint32_t(i)});
  } else {
    for (size_t i = 0; i < keys.size(); ++i) doubt.push_back({keys[i], mass(i), uint32_t(i)});
  }
  while (doubt.size() > few && narrow(doubt, before, target)) {
  }

  std::stable_sort(doubt.begin(), doubt.end(), [](const Doubt& a, const Doubt& b) { return a.key < b.key; });
  for (const Doubt& d : doubt) {
    before += d.mass;
    if (before >= target) return {d.key, d.index};
  }
  return {high, keys.size()};
}

}  // namespace consonant
