// SPDX-License-Identifier: Apache-2.0
#include "engine/placement.hpp"

#include <algorithm>
#include <map>

#include "base/error.hpp"
#include "engine/language_engine.hpp"
#include "engine/speech_engine.hpp"
#include "ops/op.hpp"

namespace consonant {

namespace {

std::vector<std::pair<std::string, int64_t>> count_ops(std::initializer_list<const Plan*> plans) {
  std::map<std::string, int64_t> counts;
  for (const Plan* plan : plans)
    for (const auto& wave : plan->waves)
      for (const PlannedNode& planned : wave) ++counts[std::string(op_name(planned.node->op))];
  std::vector<std::pair<std::string, int64_t>> ops(counts.begin(), counts.end());
  std::stable_sort(ops.begin(), ops.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return ops;
}

}  // namespace

Placement placement_of(Engine& engine) {
  Runner& runner = language_engine(engine).runner();
  const Plan& plan = runner.plan();
  return {count_ops({&plan}), runner.weight_bytes(), runner.kv_bytes_per_position(), plan.arena_bytes};
}

Placement placement_of(Transcriber& transcriber) {
  auto* speech = dynamic_cast<SpeechEngine*>(&transcriber);
  if (!speech) bad_usage("{} isn't a speech model", transcriber.info().path);
  WhisperRunner& runner = speech->runner();
  const Plan &encoder = runner.encoder_plan(), &decoder = runner.decoder_plan();
  return {count_ops({&encoder, &decoder}), runner.weight_bytes(), runner.text_bytes_per_position(),
          encoder.arena_bytes + decoder.arena_bytes};
}

}  // namespace consonant
