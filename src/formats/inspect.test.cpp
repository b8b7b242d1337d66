// SPDX-License-Identifier: Apache-2.0
#include "formats/inspect.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace consonant {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::filesystem::path models = CONSONANT_TEST_DATA "/llm/models";

TEST(Inspect, Text) {
  const ModelFile model = open_model(models / "llama_q256/model-Q4_K_M.gguf");
  const std::string text = describe_model(model, true);
  EXPECT_THAT(text, HasSubstr("GGUF v3"));
  EXPECT_THAT(text, testing::ContainsRegex("llama.embedding_length +u32  256\n"));
  EXPECT_THAT(text, testing::ContainsRegex("llama.attention.layer_norm_rms_epsilon +f32  1e-05\n"));
  EXPECT_THAT(text, HasSubstr("15 (Q4_K_M)"));
  EXPECT_THAT(text, HasSubstr("array of string [512]  [\"!\", "));
  EXPECT_THAT(text, testing::ContainsRegex("blk.0.ffn_down.weight +q6_k .*\\[256, 256\\]\n"));
  EXPECT_THAT(describe_model(model, false), Not(HasSubstr("blk.0.ffn_down.weight")));
  EXPECT_THAT(describe_model(open_model(models / "qwen3"), false), HasSubstr("Hugging Face folder"));
}

TEST(Inspect, SumsAgree) {
  const ModelFile model = open_model(models / "llama_q256/model-Q4_K_M.gguf");
  const Json json = model_to_json(model, true);
  int64_t by_type = 0, by_tensor = 0;
  for (const auto& [type, bytes] : json["bytes_by_type"].items()) by_type += bytes.get<int64_t>();
  for (const Json& t : json["tensors"]) by_tensor += t["bytes"].get<int64_t>();
  EXPECT_EQ(by_type, json["tensor_bytes"]);
  EXPECT_EQ(by_tensor, json["tensor_bytes"]);
  EXPECT_EQ(json["tensor_count"], model.tensors.size());
  EXPECT_EQ(json["metadata"]["llama.embedding_length"], 256);
  EXPECT_EQ(json["metadata"]["llama.attention.layer_norm_rms_epsilon"], 1e-5);
  EXPECT_EQ(json["metadata"]["tokenizer.ggml.tokens"], (Json{{"type", "string"}, {"length", 512}}));
  EXPECT_EQ(json["metadata_types"]["tokenizer.ggml.add_bos_token"], "bool");
  EXPECT_FALSE(model_to_json(model, false).contains("tensors"));
}

TEST(Inspect, ShowsHostileValuesHarmlessly) {
  ModelFile model;
  model.meta = std::make_shared<Meta>();
  model.meta->source = "x";
  model.meta->add("s", {MetaType::string, false, std::string_view("a\x1B[2J\nb\xFF")});
  model.meta->add("f", {MetaType::f32, false, std::numeric_limits<double>::infinity()});
  model.meta->add("flags", {MetaType::boolean, true, MetaBools{true, false}});
  model.meta->add("tokenizer.ggml.tokens", {MetaType::string, true, MetaStrings{"\xFF"}});
  MetaNested nested;
  nested.values.push_back({MetaType::u8, true, MetaInts{1, 2}});
  model.meta->add("n", {MetaType::array, true, nested});
  const std::string text = describe_model(model, true);
  EXPECT_THAT(text, HasSubstr("a\\x1b[2J\\nb\xEF\xBF\xBD"));
  EXPECT_THAT(text, HasSubstr("[true, false]"));
  EXPECT_THAT(text, HasSubstr("[array of u8 [2]]"));
  const Json json = model_to_json(model, true);
  EXPECT_EQ(json["metadata"]["f"], "inf");
  EXPECT_EQ(json["metadata"]["n"], Json::array({Json::array({1, 2})}));
  EXPECT_EQ(parse_json(json.dump(), "dump"), json);
}

}  // namespace
}  // namespace consonant
