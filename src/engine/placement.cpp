// SPDX-License-Identifier: Apache-2.0
#include "engine/placement.hpp"

#include <algorithm>
#include <map>

#include "base/error.hpp"
#include "engine/count_kernels.hpp"
#include "engine/language_engine.hpp"
#include "engine/speech_engine.hpp"

namespace consonant {

std::vector<std::pair<std::string, int64_t>> count_kernels(std::initializer_list<const Plan*> plans) {
  std::map<std::string, int64_t> counts;
  for (const Plan* plan : plans)
    for (const auto& wave : plan->waves)
      for (const PlannedNode& planned : wave) ++counts[std::string(planned.kernel_name())];
  std::vector<std::pair<std::string, int64_t>> kernels(counts.begin(), counts.end());
  std::stable_sort(kernels.begin(), kernels.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return kernels;
}

Placement placement_of(Engine& engine) {
  Runner& runner = language_engine(engine).runner();
  const Plan& plan = runner.plan();
  return {count_kernels({&plan}), runner.weight_bytes(), runner.kv_bytes_per_position(), plan.arena_bytes};
}

Placement placement_of(Transcriber& transcriber) {
  WhisperRunner& runner = speech_engine(transcriber).runner();
  const Plan &encoder = runner.encoder_plan(), &decoder = runner.decoder_plan();
  return {count_kernels({&encoder, &decoder}), runner.weight_bytes(), runner.text_bytes_per_position(),
          encoder.arena_bytes + decoder.arena_bytes};
}

}  // namespace consonant
