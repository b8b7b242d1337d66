// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/options.hpp"

namespace consonant {

// Of repetitions.
struct Spread {
  double median = 0, min = 0, max = 0;
};

inline Spread spread_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const size_t n = values.size(), half = n / 2;
  return {n % 2 ? values[half] : (values[half - 1] + values[half]) / 2, values.front(), values.back()};
}

inline void put(nlohmann::ordered_json& json, const std::string& key, const Spread& s) {
  json[key] = s.median;
  json[key + "_min"] = s.min;
  json[key + "_max"] = s.max;
}

// Lets the kernel's high-water mark of memory begin anew, so that each count of threads has its own; false if it can't.
bool reset_peak();

// `bench --audio`: a recording transcribed over and over.
struct AudioBench {
  std::string audio, language = "auto";
  int beam = 5, repeat = 3;
  std::vector<int> threads;
  bool json = false;

  int run(World& world, const ModelOptions& model) const;
};

}  // namespace consonant
