// SPDX-License-Identifier: Apache-2.0
#include "engine/tts_steps.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "engine/buckets.hpp"

namespace consonant {

namespace {

Tensor integers(const std::string& name, int64_t n, Axis axis) { return input(name, DType::i32, Shape({n}, axis)); }

}  // namespace

std::string TtsPlanner::of_group(int64_t group) { return fmt::format(".{}", group); }

CacheLayout TtsPlanner::cache_of(const Qwen3Tts& model, const RunnerOptions& options) {
  if (options.context < 0) bad_usage("a context of {} positions", options.context);
  return {CacheRole::self, model.kv, options.kv, options.context > 0 ? options.context : model.context,
          options.sequences};
}

CacheLayout TtsPlanner::frames_of(const Qwen3Tts& model, const RunnerOptions& options) {
  return {CacheRole::cross, model.frame_kv, options.kv, model.vocabulary().groups, options.sequences};
}

std::vector<Tensor> TtsPlanner::build(const TtsStep& step) const {
  const TtsVocabulary& v = model.vocabulary();
  FrameInputs s;
  s.text = integers("tokens", step.tokens, Axis::token);
  s.pos = integers("pos", step.tokens, Axis::token);
  const Tensor seq = integers("seq", step.tokens, Axis::token);
  for (int64_t g = 0; g < v.groups; ++g) s.codes.push_back(integers("code" + of_group(g), step.tokens, Axis::token));
  if (step.voices) {
    s.voices = input("voices", DType::f32, {options.sequences, model.width});
    s.voice = integers("voice", step.tokens, Axis::token);
  }
  s.wanted = integers("wanted", step.wanted, Axis::wanted);
  s.mask = {s.pos, seq, input("pages", DType::i32, {options.sequences, step.pages}), 0};
  s.kv = cache.states();
  const Tensor hidden = model.hidden(s);
  std::vector<Tensor> outputs = {hidden};
  if (step.slots > 0) {
    for (int64_t g = 0; g < v.groups; ++g)
      s.places.push_back(integers("place" + of_group(g), step.wanted, Axis::wanted));
    s.frame = integers("frame", step.wanted, Axis::wanted);
    s.frame_pages = input("frame_pages", DType::i32, {options.sequences, 1});
    s.frame_kv = frames.states();
    const Tensor logits = model.logits(hidden);
    std::vector<Tensor> code_logits;
    const auto draw = [&](int64_t group, Tensor of) {
      if (group > 0) code_logits.push_back(of);
      const int64_t slots = group > 0 ? 1 : step.slots;  // others change for a forced code only
      return DrawColumns::sample_from(of, step.wanted, slots, of_group(group)).first;
    };
    const Tensor first = draw(0, model.allowed(logits));
    const std::vector<Tensor> others = model.predict(hidden, first, s, draw);
    outputs.insert(outputs.end(), {logits, first});
    outputs.insert(outputs.end(), others.begin(), others.end());
    outputs.insert(outputs.end(), code_logits.begin(), code_logits.end());
    for (const KvState& kv : s.frame_kv) outputs.insert(outputs.end(), {kv.keys, kv.values});
  }
  for (const KvState& kv : s.kv) outputs.insert(outputs.end(), {kv.keys, kv.values});
  return outputs;
}

View TtsPlanner::unplaced(const StateAttr& state) const {
  return (state.cache == CacheRole::self ? cache : frames).view(state);
}

Plan TtsPlanner::plan(const TtsStep& step, const States& states, const std::vector<std::string>& taps) const {
  PlanOptions plan;
  plan.device = options.device;
  plan.small_activations = options.small_activations;
  plan.taps = taps;
  plan.weights = &weights;
  plan.states = states;
  return make_plan(build(step), plan);
}

std::vector<TtsStep> TtsPlanner::largest() const {
  const int64_t pages = cache.pages_per_sequence(), slots = DrawInputs::most_slots, most = bucket(options.sequences);
  std::vector<TtsStep> steps = {{most_tokens, 1, pages, 0, true}, {most_tokens, 1, pages, slots, true}};
  // Fewer tokens may need more: attention splits the texts of few tokens into more parts.
  for (const int64_t tokens : {int64_t{1}, int64_t{8}, int64_t{64}})
    if (tokens <= most) steps.push_back({tokens, tokens, pages, slots, true});
  return steps;
}

int64_t TtsPlanner::largest_arena(const States& states) const {
  int64_t most = 0;
  for (const TtsStep& step : largest()) most = std::max(most, plan(step, states, {}).arena_bytes);
  return most;
}

}  // namespace consonant
