// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/language_engine.hpp"
#include "formats/safetensors.hpp"

namespace consonant {

inline const std::string llm_data = CONSONANT_TEST_DATA "/llm/";

// A golden file's tensors, as plain numbers.
class Golden {
 public:
  explicit Golden(const std::string& path) : file_(SafetensorsFile::open(path)) {}

  bool has(const std::string& name) const { return file_.find(name) != nullptr; }
  Sizes sizes(const std::string& name) const { return file_.tensor(name).sizes; }
  std::vector<float> floats(const std::string& name) const { return file_.tensor(name).to_floats(); }
  std::vector<int32_t> ids(const std::string& name) const {
    const std::vector<float> numbers = floats(name);  // ids are far below 2^24
    return {numbers.begin(), numbers.end()};
  }

 private:
  SafetensorsFile file_;
};

inline std::shared_ptr<Engine> load_engine(const std::string& path, const std::string& precision, int threads = 2,
                                           const std::string& device = "cpu") {
  EngineOptions options;
  options.device = device, options.precision = precision, options.threads = threads;
  return Engine::load(path, options);
}

// Logits [tokens, vocabulary] of all positions.
inline std::vector<float> all_logits(Runner& runner, std::span<const int32_t> tokens) {
  const int sequence = runner.open();
  const Piece piece{sequence, tokens, true};
  const auto logits = runner.evaluate({&piece, 1});
  std::vector<float> kept(logits.begin(), logits.end());
  runner.close(sequence);
  return kept;
}

struct Distance {
  double max_abs = 0, rms = 0, worst_cosine = 1;
};

// Rows of `columns` numbers each.
inline Distance distance_of(std::span<const float> a, std::span<const float> b, size_t columns) {
  Distance d;
  double squares = 0;
  for (size_t r = 0; r < a.size(); r += columns) {
    double dot = 0, aa = 0, bb = 0;
    for (size_t i = r; i < r + columns; ++i) {
      const double x = a[i], y = b[i];
      dot += x * y, aa += x * x, bb += y * y;
      squares += (x - y) * (x - y);
      if (!(std::fabs(x - y) <= d.max_abs)) d.max_abs = std::fabs(x - y);  // NaN sticks
    }
    d.worst_cosine = std::min(d.worst_cosine, dot / std::sqrt(aa * bb));
  }
  d.rms = std::sqrt(squares / static_cast<double>(a.size()));
  return d;
}

}  // namespace consonant
