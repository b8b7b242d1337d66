// SPDX-License-Identifier: Apache-2.0
#include "formats/convert.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "base/error.hpp"
#include "formats/gguf.hpp"

namespace consonant {
namespace {

using testing::HasSubstr;

const std::filesystem::path models = CONSONANT_TEST_DATA "/llm/models";

struct Output {
  std::filesystem::path path = std::filesystem::path(testing::TempDir()) /
                               fmt::format("{}-{}.gguf", testing::UnitTest::GetInstance()->random_seed(), ::getpid());
  ~Output() { std::filesystem::remove(path); }
};

std::map<std::string, DType> types_of(const std::vector<GgufTensorPlan>& plan) {
  std::map<std::string, DType> out;
  for (const auto& t : plan) out.emplace(t.name, t.type);
  return out;
}

std::map<std::string, DType> types_of(const ModelFile& model) {
  std::map<std::string, DType> out;
  for (const auto& t : model.tensors) out.emplace(t.name, t.type);
  return out;
}

struct Case {
  const char *model, *type, *file;
};

class Convert : public testing::TestWithParam<Case> {};

// The published quantiser made the files from the same weights.
TEST_P(Convert, ChoosesTheReferencesTypes) {
  const Case c = GetParam();
  const ModelFile from = open_model(models / c.model), reference = open_model(models / c.model / c.file);
  EXPECT_EQ(types_of(plan_conversion(from, c.type)), types_of(reference));
}

TEST_P(Convert, WritesWhatTheReferenceHolds) {
  const Case c = GetParam();
  const Output out;
  convert_model(open_model(models / c.model), out.path, c.type, 2);
  const ModelFile ours = open_model(out.path), reference = open_model(models / c.model / c.file);
  EXPECT_EQ(ours.format, "GGUF v3");
  EXPECT_EQ(types_of(ours), types_of(reference));
  EXPECT_EQ(ours.meta->integer("general.file_type"), reference.meta->integer("general.file_type"));
  EXPECT_EQ(ours.meta->integer("general.quantization_version"), 2);
  EXPECT_EQ(ours.meta->strings("tokenizer.ggml.tokens"), reference.meta->strings("tokenizer.ggml.tokens"));
  const ModelFile original = open_model(models / c.model);
  for (const StoredTensor& t : reference.tensors) {
    const std::vector<float> want = t.load().to_floats(), have = ours.find(t.name)->load().to_floats(),
                             exact = original.find(t.name)->load().to_floats();
    if (!is_quantized(t.type)) {
      EXPECT_EQ(have, want) << t.name;
      continue;
    }
    // As close to the weights as the reference comes; the searches for scales may differ in the last step.
    double ours_off = 0, reference_off = 0;
    for (size_t i = 0; i < exact.size(); ++i) {
      ours_off += std::pow(have[i] - exact[i], 2);
      reference_off += std::pow(want[i] - exact[i], 2);
    }
    EXPECT_LE(ours_off, reference_off * 1.05) << t.name;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Published, Convert,
    testing::Values(Case{"llama_q256", "bf16", "model-bf16.gguf"}, Case{"llama_q256", "f16", "model-f16.gguf"},
                    Case{"llama_q256", "q8_0", "model-Q8_0.gguf"}, Case{"llama_q256", "q4_0", "model-Q4_0.gguf"},
                    Case{"llama_q256", "q4_k_m", "model-Q4_K_M.gguf"}, Case{"llama_q256", "q6_k", "model-Q6_K.gguf"},
                    Case{"gemma3", "q4_0", "model-Q4_0.gguf"}, Case{"llama_rope", "f32", "model-f32.gguf"}));

// A model of many layers, to see the mix.
ModelFile many_layers(int layers, int64_t width) {
  ModelFile model;
  model.meta = std::make_shared<Meta>();
  model.meta->add("general.architecture", {MetaType::string, false, std::string_view("llama")});
  model.meta->add("llama.block_count", {MetaType::u32, false, int64_t{layers}});
  const auto add = [&](const std::string& name) {
    model.tensors.push_back({name, DType::f32, {4, width}, 16 * width, [width] {
                               HostTensor t = HostTensor::allocate(DType::f32, {4, width});
                               return t;
                             }});
  };
  add("token_embd.weight");
  for (int i = 0; i < layers; ++i)
    for (const char* part : {"attn_q", "attn_v", "ffn_down"}) add(fmt::format("blk.{}.{}.weight", i, part));
  return model;
}

TEST(Convert, MixesTypesByLayer) {
  const auto types = types_of(plan_conversion(many_layers(16, 256), "q4_k_m"));
  std::string marks;
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(types.at(fmt::format("blk.{}.attn_q.weight", i)), DType::q4_k);
    EXPECT_EQ(types.at(fmt::format("blk.{}.attn_v.weight", i)), types.at(fmt::format("blk.{}.ffn_down.weight", i)));
    marks += types.at(fmt::format("blk.{}.attn_v.weight", i)) == DType::q6_k ? '6' : '4';
  }
  EXPECT_EQ(marks, "6644644644644666");
  EXPECT_EQ(types_of(plan_conversion(many_layers(80, 256), "q4_k_m")).at("blk.10.attn_v.weight"), DType::q5_k);
}

TEST(Convert, FallsBackWhereRowsDoNotFit) {
  const auto narrow = types_of(plan_conversion(many_layers(1, 96), "q4_k_m"));
  EXPECT_EQ(narrow.at("blk.0.attn_q.weight"), DType::q5_0);
  EXPECT_EQ(narrow.at("blk.0.attn_v.weight"), DType::q8_0);
  EXPECT_EQ(narrow.at("token_embd.weight"), DType::q8_0);
  EXPECT_EQ(types_of(plan_conversion(many_layers(1, 40), "q4_0")).at("blk.0.attn_q.weight"), DType::f16);
}

template <class F>
std::string refusal(Exit exit, F&& f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit(), exit);
    return error.what();
  }
  return "accepted";
}

TEST(Convert, Refuses) {
  const Output out;
  EXPECT_THAT(refusal(Exit::usage, [&] { convert_model(many_layers(1, 32), out.path, "q5_x"); }), HasSubstr("q4_k_m"));
  EXPECT_THAT(
      refusal(Exit::usage, [&] { convert_model(open_model(models / "llama_q256/model-Q8_0.gguf"), out.path, "q4_0"); }),
      HasSubstr("is q8_0 already"));
  for (int64_t layers : {int64_t{0}, int64_t{-1}, std::numeric_limits<int64_t>::max() / 2}) {
    const ModelFile odd = many_layers(1, 32);
    odd.meta->replace("llama.block_count", {MetaType::i64, false, layers});
    EXPECT_THAT(refusal(Exit::input, [&] { convert_model(odd, out.path, "q4_k_m"); }),
                HasSubstr(fmt::format("llama.block_count is {}", layers)));
  }
  ModelFile model = many_layers(1, 32);
  const auto holding = [](float x) {
    return [x] {
      HostTensor t = HostTensor::allocate(DType::f32, {4, 32});
      std::memcpy(t.mutable_bytes().data(), &x, sizeof x);
      return t;
    };
  };
  model.tensors[1].load = holding(std::numeric_limits<float>::quiet_NaN());
  EXPECT_THAT(refusal(Exit::input, [&] { convert_model(model, out.path, "q8_0"); }), HasSubstr("row 0 holds nan"));
  model.tensors[1].load = holding(1e6f);
  EXPECT_THAT(refusal(Exit::input, [&] { convert_model(model, out.path, "f16"); }), HasSubstr("which f16 can't store"));
  model.tensors[1].load = [] { return HostTensor::allocate(DType::f32, {4, 64}); };
  EXPECT_THAT(refusal(Exit::failed, [&] { convert_model(model, out.path, "f32"); }),
              HasSubstr("more bytes than planned"));
  EXPECT_FALSE(std::filesystem::exists(out.path));
}

TEST(Convert, DecodesQuantisedFiles) {
  const Output out;
  const ModelFile from = open_model(models / "llama_q256/model-Q4_K_M.gguf");
  convert_model(from, out.path, "f32");
  const ModelFile ours = open_model(out.path);
  for (const StoredTensor& t : from.tensors) {
    EXPECT_EQ(ours.find(t.name)->type, DType::f32);
    EXPECT_EQ(ours.find(t.name)->load().to_floats(), t.load().to_floats());
  }
}

}  // namespace
}  // namespace consonant
