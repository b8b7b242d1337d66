// SPDX-License-Identifier: Apache-2.0
// Models whose layers are of several kinds, against the goldens of the reference implementation.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.hpp"
#include "tests/golden.hpp"

namespace consonant {
namespace {

std::string hybrid_path(const std::string& name, const std::string& file) {
  return CONSONANT_TEST_DATA "/llm_mamba/models/" + name + "/" + file;
}

std::vector<int32_t> greedy(Engine& engine, std::span<const int32_t> prompt, int64_t n) {
  GenerateOptions options;
  options.max_tokens = n, options.ignore_eos = true;
  return engine.session()->generate(prompt, options).tokens;
}

struct HybridCase {
  const char *model, *file, *device;
};

class HybridModel : public testing::TestWithParam<HybridCase> {};

TEST_P(HybridModel, AgreesWithTheReference) {
  const auto [model, file, device] = GetParam();
  const Golden golden(hybrid_path(model, "golden.safetensors"));
  const auto engine = load_engine(hybrid_path(model, file), "f32", 2, device);
  Runner& runner = language_engine(*engine).runner();
  const auto ids = golden.ids("input_ids"), other = golden.ids("input_ids_b");
  const auto logits = all_logits(runner, ids), wanted = golden.floats("logits");
  ASSERT_EQ(logits.size(), wanted.size());
  EXPECT_LE(distance_of(wanted, logits, static_cast<size_t>(engine->info().vocabulary)).max_abs, 1e-4);
  EXPECT_EQ(greedy(*engine, ids, 16), golden.ids("greedy_ids"));
  const auto other_logits = all_logits(runner, other), last = golden.floats("last_logits_b");
  EXPECT_LE(distance_of(last, std::span(other_logits).last(last.size()), last.size()).max_abs, 1e-4);
  EXPECT_EQ(greedy(*engine, other, 16), golden.ids("greedy_ids_b"));
}

std::vector<HybridCase> hybrid_cases() {
  std::vector<HybridCase> cases;
  for (const char* model : {"nemotron_h_dense"})
    for (const char* device : {"cpu", "reference"}) cases.push_back({model, "model-f32.gguf", device});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, HybridModel, testing::ValuesIn(hybrid_cases()), [](const auto& info) {
  return std::string(info.param.model) + (*info.param.file ? "_gguf_" : "_folder_") + info.param.device;
});

}  // namespace
}  // namespace consonant
