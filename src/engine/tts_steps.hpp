// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/draw_inputs.hpp"
#include "engine/paged_cache.hpp"
#include "engine/runner.hpp"
#include "models/qwen3_tts.hpp"

namespace consonant {

// A step of a talker: positions are read, and after those that are wanted a whole frame of codes is drawn, so that
// nothing waits for the host within a frame.
struct TtsStep {
  int64_t tokens, wanted, pages;  // capacities
  int64_t slots = 0;              // codes of codebook 0 whose logits may change before the draw; 0: nothing is drawn
  bool voices = false;            // whether a position may hold a voice's vector
  auto operator<=>(const TtsStep&) const = default;
};

// Where a step's outputs are. Without a draw there is the state alone.
struct TtsOutputs {
  int64_t groups;
  static constexpr size_t hidden = 0;                                                          // [wanted, width]
  static constexpr size_t logits = 1;                                                          // [wanted, codes], raw
  size_t code(int64_t group) const { return static_cast<size_t>(2 + group); }                  // [wanted]
  size_t code_logits(int64_t group) const { return static_cast<size_t>(1 + groups + group); }  // of groups from 1 on
};

// What the steps of a talker are planned for. The predictor's cache is the graph's second one: a page for each wanted
// row, whatever sequence it is of, since a frame's positions are forgotten with it.
struct TtsPlanner {
  const Qwen3Tts& model;
  const RunnerOptions& options;
  const CacheLayout &cache, &frames;
  const WeightStore& weights;

  static CacheLayout cache_of(const Qwen3Tts& model, const RunnerOptions& options);
  static CacheLayout frames_of(const Qwen3Tts& model, const RunnerOptions& options);

  std::vector<Tensor> build(const TtsStep& step) const;
  using States = std::function<View(const StateAttr&)>;
  View unplaced(const StateAttr& state) const;  // a state without memory, for plans that aren't run
  Plan plan(const TtsStep& step, const States& states, const std::vector<std::string>& taps) const;
  // Of the steps that a generation is made of.
  std::vector<TtsStep> largest() const;
  int64_t largest_arena(const States& states) const;

  // The suffix of the names of a codebook's inputs.
  static std::string of_group(int64_t group);
};

}  // namespace consonant
