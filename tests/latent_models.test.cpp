// SPDX-License-Identifier: Apache-2.0
// Models with latent attention (deepseek2) against the goldens of the reference implementation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/error.hpp"
#include "tests/golden.hpp"

namespace consonant {
namespace {

using testing::HasSubstr;

std::string path_of(const std::string& model, const std::string& file) {
  return std::string(CONSONANT_TEST_DATA) + "/llm_mla/models/" + model + "/" + file;
}

constexpr const char* models[] = {"glm4_moe_lite", "deepseek_v2", "deepseek_v3"};

std::shared_ptr<Engine> load(const std::string& path, const std::string& device,
                             const std::vector<std::string>& overrides = {}) {
  EngineOptions options;
  options.device = device, options.precision = "f32", options.kv = "f32", options.threads = 2;
  options.override_kv = overrides;
  return Engine::load(path, options);
}

std::vector<float> watched(Runner& runner, const std::string& node, std::span<const int32_t> ids) {
  runner.watch({node});
  all_logits(runner, ids);
  const auto taps = runner.take_taps();
  runner.watch({});
  EXPECT_EQ(taps.size(), 1u) << node;
  return taps.empty() ? std::vector<float>() : taps[0].rows;
}

// The first layer is a dense one: a model of it alone needs no experts.
TEST(LatentAttention, AgreesWithTheReferenceInTheFirstLayer) {
  for (const char* model : models)
    for (const std::string file : {"model-f32.gguf", ""})
      for (const char* device : {"cpu", "reference"}) {
        SCOPED_TRACE(fmt::format("{} {} on {}", model, file, device));
        const Golden golden(path_of(model, "golden.safetensors"));
        const auto ids = golden.ids("input_ids");
        const auto engine = load(path_of(model, file), device, {"deepseek2.block_count=int:1"});
        Runner& runner = language_engine(*engine).runner();
        std::vector<float> after = golden.floats("hidden.embed");
        const auto attention = golden.floats("self_attn.0");
        for (size_t i = 0; i < after.size(); ++i) after[i] += attention[i];
        EXPECT_LE(distance_of(after, watched(runner, "blk.0/add", ids), 64).max_abs, 1e-5);
        EXPECT_LE(distance_of(golden.floats("hidden.0"), watched(runner, "blk.0/add.2", ids), 64).max_abs, 1e-5);
      }
}

}  // namespace
}  // namespace consonant
