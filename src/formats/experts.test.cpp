// SPDX-License-Identifier: Apache-2.0
// Experts: a matrix each in a Hugging Face folder, one tensor a layer in GGUF.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <map>

#include "base/error.hpp"
#include "formats/convert.hpp"
#include "formats/inspect.hpp"
#include "formats/names/names.hpp"
#include "formats/safetensors.hpp"

namespace consonant {
namespace {

using testing::HasSubstr;

const std::filesystem::path folder = CONSONANT_TEST_DATA "/llm_moe/models/qwen3moe";

TEST(MatchName, FindsLayerAndExpert) {
  const auto match = [](std::string_view pattern, std::string_view name) -> std::pair<int64_t, int64_t> {
    const auto found = match_name(pattern, name);
    return found ? std::pair(found->layer, found->expert) : std::pair<int64_t, int64_t>(-2, -2);
  };
  using P = std::pair<int64_t, int64_t>;
  EXPECT_EQ(match("a.{}.b.{}.c", "a.3.b.17.c"), P(3, 17));
  EXPECT_EQ(match("a.{}.c", "a.12.c"), P(12, -1));
  EXPECT_EQ(match("a", "a"), P(-1, -1));
  for (const char* name : {"a.3.b..c", "a..b.1.c", "a.3.b.01.c", "a.03.b.1.c", "a.3.b.1", "a.3.c", "a.3.b.1.c.c", "a.3",
                           "a.x.b.1.c", "a.3.b.99999999999999999999.c"})
    EXPECT_EQ(match("a.{}.b.{}.c", name), P(-2, -2)) << name;
}

TEST(ExpertFolder, HoldsWhatTheGgufHolds) {
  const ModelFile ours = open_model(folder), gguf = open_model(folder / "model-f32.gguf");
  EXPECT_EQ(ours.tensors.size(), gguf.tensors.size());
  for (const StoredTensor& t : gguf.tensors) {
    const StoredTensor* same = ours.find(t.name);
    ASSERT_NE(same, nullptr) << t.name;
    EXPECT_EQ(same->sizes, t.sizes) << t.name;
    EXPECT_EQ(same->bytes, t.bytes) << t.name;
    EXPECT_EQ(same->load().to_floats(), t.load().to_floats()) << t.name;
  }
  for (const char* key : {"block_count", "context_length", "embedding_length", "feed_forward_length",
                          "attention.head_count", "attention.head_count_kv", "attention.key_length",
                          "attention.value_length", "expert_count", "expert_used_count", "expert_feed_forward_length"})
    EXPECT_EQ(ours.meta->integer(std::string("qwen3moe.") + key), gguf.meta->integer(std::string("qwen3moe.") + key));
  for (const char* key : {"rope.freq_base", "attention.layer_norm_rms_epsilon"})
    EXPECT_EQ(ours.meta->number(std::string("qwen3moe.") + key), gguf.meta->number(std::string("qwen3moe.") + key));
  EXPECT_FALSE(ours.meta->has("qwen3moe.expert_weights_norm"));
}

// The folder with its tensors changed.
std::string refusal(const std::function<void(std::vector<NamedTensor>&)>& change) {
  const auto path = std::filesystem::path(testing::TempDir()) / fmt::format("experts-{}", ::getpid());
  std::filesystem::create_directories(path);
  for (const char* name : {"config.json", "tokenizer.json", "tokenizer_config.json"})
    std::filesystem::copy_file(folder / name, path / name, std::filesystem::copy_options::overwrite_existing);
  const SafetensorsFile file = SafetensorsFile::open(folder / "model.safetensors");
  std::vector<NamedTensor> tensors;
  for (const auto& entry : file.entries()) tensors.push_back({entry.name, file.tensor(entry)});
  change(tensors);
  write_safetensors(path / "model.safetensors", tensors);
  std::string said = "accepted";
  try {
    open_model(path);
  } catch (const Error& error) {
    EXPECT_EQ(error.exit(), Exit::input);
    said = error.what();
  }
  std::filesystem::remove_all(path);
  return said;
}

TEST(ExpertFolder, RefusesGapsAndExpertsThatDiffer) {
  const std::string expert = "model.layers.1.mlp.experts.5.up_proj.weight";
  const auto with = [&](std::vector<NamedTensor>& tensors, const auto& change) {
    for (NamedTensor& t : tensors)
      if (t.name == expert) return change(t);
    FAIL() << expert;
  };
  EXPECT_EQ(refusal([](auto&) {}), "accepted");
  EXPECT_THAT(refusal([&](auto& tensors) { std::erase_if(tensors, [&](const auto& t) { return t.name == expert; }); }),
              HasSubstr("experts.6.up_proj.weight\": is there, but not that of expert 5"));
  EXPECT_THAT(refusal([&](auto& tensors) {
                with(tensors, [](NamedTensor& t) { t.tensor = HostTensor::allocate(DType::f32, {32, 63}); });
              }),
              HasSubstr("f32 [32, 63], but that of expert"));
  EXPECT_THAT(refusal([&](auto& tensors) {
                with(tensors, [](NamedTensor& t) { t.tensor = HostTensor::allocate(DType::f16, {32, 64}); });
              }),
              HasSubstr("f16 [32, 64], but that of expert"));
  EXPECT_THAT(refusal([&](auto& tensors) {
                with(tensors, [](NamedTensor& t) { t.tensor = HostTensor::allocate(DType::f32, {2048}); });
              }),
              HasSubstr("has 1 dimensions, not two"));
}

TEST(ExpertFolder, ConvertsWithItsRoutersAsTheyAre) {
  std::map<std::string, DType> types;
  for (const auto& t : plan_conversion(open_model(folder), "q8_0")) types[t.name] = t.type;
  EXPECT_EQ(types.at("blk.0.ffn_gate_inp.weight"), DType::f32);
  EXPECT_EQ(types.at("blk.1.ffn_gate_exps.weight"), DType::q8_0);
  const auto out = std::filesystem::path(testing::TempDir()) / fmt::format("experts-{}.gguf", ::getpid());
  convert_model(open_model(folder), out, "q8_0", 2);
  {
    const ModelFile made = open_model(out), from = open_model(folder);
    const HostTensor tensor = made.find("blk.1.ffn_down_exps.weight")->load();
    EXPECT_EQ(tensor.sizes, (Sizes{8, 64, 32}));
    const auto got = tensor.to_floats(), want = from.find("blk.1.ffn_down_exps.weight")->load().to_floats();
    float largest = 0;
    for (const float x : want) largest = std::max(largest, std::abs(x));
    for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], largest / 200) << i;
  }
  std::filesystem::remove(out);
}

}  // namespace
}  // namespace consonant
