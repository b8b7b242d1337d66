// SPDX-License-Identifier: Apache-2.0
// Ids of the reference tokenizers for the fixture models and for two real files.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "formats/gguf.hpp"
#include "formats/hf_tokenizer.hpp"
#include "formats/mapped_file.hpp"
#include "text/tokenizer.hpp"

namespace consonant {
namespace {

namespace fs = std::filesystem;
using Ids = std::vector<int32_t>;

const fs::path llm = CONSONANT_TEST_DATA "/llm";

// The fixtures hold GGUF files of these models only.
const std::set<std::string> has_gguf = {"gemma3", "llama", "llama_q256", "llama_rope", "qwen2", "qwen3"};

struct Loaded {
  std::shared_ptr<Meta> meta;
  Tokenizer tokenizer;
};

Loaded load(std::shared_ptr<Meta> meta) { return {meta, Tokenizer::load(*meta)}; }

Json load_json(const fs::path& path) { return parse_json(MappedFile::open(path)->text(), path.string()); }

class FixtureModel : public testing::TestWithParam<const char*> {
 protected:
  fs::path folder() const { return llm / "models" / GetParam(); }

  void compare(const Tokenizer& tokenizer) const {
    const Json vectors = load_json(folder() / "tokenizer_vectors.json");
    int compared = 0;
    for (const char* kind : {"strings", "chats"}) {
      for (const Json& row : vectors.at(kind)) {
        const auto text = row.at("text").get<std::string>();
        EXPECT_EQ(tokenizer.encode(text), row.at("ids").get<Ids>()) << text;
        ++compared;
      }
    }
    EXPECT_EQ(compared, 78);
  }
};

TEST_P(FixtureModel, IdsFromTokenizerJson) {
  const auto meta = std::make_shared<Meta>();
  const fs::path config = folder() / "config.json";
  add_tokenizer(TokenizerFiles::read(folder()), HfConfig(load_json(config), config.string()), *meta);
  compare(load(meta).tokenizer);
}

TEST_P(FixtureModel, IdsFromGguf) {
  int files = 0;
  for (const auto& entry : fs::directory_iterator(folder())) {
    if (entry.path().extension() != ".gguf") continue;
    SCOPED_TRACE(entry.path().filename());
    compare(load(open_gguf(entry.path()).meta).tokenizer);
    ++files;
  }
  EXPECT_EQ(files > 0, has_gguf.count(GetParam()) > 0);
}

INSTANTIATE_TEST_SUITE_P(Vectors, FixtureModel,
                         testing::Values("deepseek_v2", "deepseek_v3", "gemma3", "glm4_moe_lite", "llama", "llama_q256",
                                         "llama_rope", "nemotron_h", "nemotron_h_dense", "nemotron_h_latent", "qwen2",
                                         "qwen3", "qwen3moe"),
                         [](const auto& info) { return std::string(info.param); });

class RealModel : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(RealModel, IdsAndText) {
  const auto [vectors_name, model_name] = GetParam();
  const fs::path model = fs::path(CONSONANT_MODELS) / model_name;
  if (!fs::exists(model)) GTEST_SKIP() << model_name << " is not in the folder of real models";
  const Loaded loaded = load(open_gguf(model).meta);
  const Tokenizer& tokenizer = loaded.tokenizer;
  const Json vectors = load_json(llm / vectors_name);
  const auto ids_of = [](const Json& row, const char* key) { return row.at(key).get<Ids>(); };
  for (const Json& row : vectors.at("strings")) {
    const auto text = row.at("text").get<std::string>();
    const Ids ids = ids_of(row, "parse_special");
    EXPECT_EQ(tokenizer.encode(text), ids) << text;
    EXPECT_EQ(tokenizer.encode(text, {.parse_special = false}), ids_of(row, "no_parse_special")) << text;
    EXPECT_EQ(tokenizer.encode(text, {.add_special = true}), ids_of(row, "add_special")) << text;
    EXPECT_EQ(tokenizer.decode(ids), row.at("decoded").get<std::string>());
  }
  for (const Json& row : vectors.at("chats"))
    if (row.contains("text")) {
      EXPECT_EQ(tokenizer.encode(row.at("text").get<std::string>()), ids_of(row, "ids")) << row.at("text");
    }
  const Json& stated = vectors.at("tokenizer");
  EXPECT_EQ(tokenizer.bos(), stated.at("bos_token_id").get<int32_t>());
  EXPECT_EQ(tokenizer.eos(), stated.at("eos_token_id").get<int32_t>());
  EXPECT_EQ(tokenizer.unknown(), stated.at("unknown_token_id").get<int32_t>());
  EXPECT_EQ(tokenizer.add_bos(), stated.at("add_bos_token").get<bool>());
  EXPECT_FALSE(tokenizer.add_eos());
  EXPECT_EQ(tokenizer.size(), vectors.at("vocab_size").get<int32_t>());
}

INSTANTIATE_TEST_SUITE_P(Vectors, RealModel,
                         testing::Values(std::pair("tokenizer_smollm2.json", "SmolLM2-135M-Instruct.Q4_1.gguf"),
                                         std::pair("tokenizer_gemma3.json", "gemma-3-270m-q4_k_m.gguf")),
                         [](const auto& info) { return std::string(info.index == 0 ? "smollm2" : "gemma3"); });

}  // namespace
}  // namespace consonant
