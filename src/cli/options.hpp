// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/world.hpp"
#include "consonant/engine.hpp"

namespace consonant {

// -v and -q, which every command has; they act as soon as they are read.
void add_logging(CLI::App& app);

// The model and where it runs.
struct ModelOptions {
  std::string path;
  EngineOptions engine;
  bool allow_split = false;

  void add(CLI::App& app, bool required = true);
  void add_draft(CLI::App& app);  // for commands that generate

  // Refuses what can't be honoured, then loads.
  std::shared_ptr<Engine> load(World& world) const;
  void check() const;
};

// How text is sampled, for `generate` and `chat`. Unless told otherwise, what is customary for an answer that reads
// naturally, and a seed that is new each time and reported.
struct SamplingFlags {
  float temperature = 0.8f;
  int top_k = 40;
  float top_p = 0.95f;
  float min_p = 0.05f;
  float typical = 1;
  float repeat_penalty = 1;
  float frequency_penalty = 0;
  float presence_penalty = 0;
  std::vector<std::string> logit_bias;
  std::optional<uint64_t> seed;

  void add(CLI::App& app);

  // Wrong usage for values outside their range.
  SamplingOptions options() const;
};

// Bounds of a generation.
struct GenerationFlags {
  SamplingFlags sampling;
  std::optional<int64_t> max_tokens;
  std::vector<std::string> stop;
  bool ignore_eos = false;
  std::optional<double> deadline;

  void add(CLI::App& app);
  GenerateOptions options() const;
};

// What is left of `deadline` seconds that began with the program. Never 0, which would mean none.
double deadline_left(const World& world, double deadline);

// A whole number from `low` on; what is above `high` is refused too.
CLI::Validator whole_number(int64_t low, int64_t high);

// An option that may be given several times, with one value each time.
template <class T>
CLI::Option* add_repeatable(CLI::App& app, const std::string& name, T& values, const std::string& help) {
  return app.add_option(name, values, help)->allow_extra_args(false);
}

}  // namespace consonant
