// SPDX-License-Identifier: Apache-2.0
// Greedy continuations of real models. Each test skips, by the file's name, where that file isn't at hand.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/golden.hpp"

namespace consonant {
namespace {

struct RealCase {
  const char *file, *goldens, *precision;
  double tie;  // steps whose two best logits are nearer than this end a comparison
};

class RealModel : public testing::TestWithParam<RealCase> {};

TEST_P(RealModel, ContinuesAsTheReferenceDoes) {
  const RealCase& c = GetParam();
  const auto path = std::filesystem::path(CONSONANT_MODELS) / c.file;
  if (!std::filesystem::exists(path)) GTEST_SKIP() << c.file << " is not in " << CONSONANT_MODELS;
  std::ifstream file(llm_data + c.goldens);
  const auto goldens = nlohmann::json::parse(file);
  const auto engine = load_engine(path.string(), c.precision);
  const auto session = engine->session();
  size_t compared = 0;
  for (const auto& prompt : goldens["prompts"]) {
    const auto& wanted = prompt["decoded_f32"];
    const auto ids = prompt["prompt_ids"].get<std::vector<int32_t>>(), next = wanted["ids"].get<std::vector<int32_t>>();
    GenerateOptions options;
    options.max_tokens = static_cast<int64_t>(next.size()), options.ignore_eos = true;
    const auto made = session->generate(ids, options).tokens;
    for (size_t i = 0; i < next.size(); ++i) {
      const auto& best = wanted["best"][i];
      if (best[0][1].get<double>() - best[1][1].get<double>() < c.tie) break;
      ASSERT_LT(i, made.size());
      ASSERT_EQ(made[i], next[i]) << prompt["text"] << ", step " << i;
      ++compared;
    }
  }
  EXPECT_GT(compared, 20u);
}

INSTANTIATE_TEST_SUITE_P(
    All, RealModel,
    testing::Values(RealCase{"SmolLM2-135M-Instruct.Q4_1.gguf", "greedy_smollm2.json", "f32", 0.02},
                    RealCase{"SmolLM2-135M-Instruct.Q4_1.gguf", "greedy_smollm2.json", "auto", 1.5},
                    RealCase{"gemma-3-270m-q4_k_m.gguf", "greedy_gemma3.json", "f32", 0.02},
                    RealCase{"gemma-3-270m-q4_k_m.gguf", "greedy_gemma3.json", "auto", 1.5}),
    [](const auto& info) {
      return std::string(info.param.file).substr(0, info.param.file[0] == 'S' ? 7 : 5) + "_" + info.param.precision;
    });

}  // namespace
}  // namespace consonant
