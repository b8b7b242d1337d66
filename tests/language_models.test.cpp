// SPDX-License-Identifier: Apache-2.0
// Whole models against the goldens of the reference implementations.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/error.hpp"
#include "formats/convert.hpp"
#include "tests/language_golden.hpp"

namespace consonant {
namespace {

std::string model_path(const std::string& name, const std::string& file) {
  return llm_data + "models/" + name + "/" + file;
}

struct F32Case {
  const char *model, *file, *device;
};

class F32Model : public testing::TestWithParam<F32Case> {};

TEST_P(F32Model, AgreesWithTheReference) {
  const auto [model, file, device] = GetParam();
  const Golden golden(model_path(model, "golden.safetensors"));
  const auto engine = load_engine(model_path(model, file), "f32", 2, device);
  expect_goldens(*engine, golden);
}

std::vector<F32Case> f32_cases() {
  std::vector<F32Case> cases;
  for (const char* model : {"llama", "llama_rope", "qwen2", "qwen3", "gemma3"})
    for (const char* device : {"cpu", "reference"}) {
      cases.push_back({model, "model-f32.gguf", device});
      cases.push_back({model, "", device});
    }
  for (const char* model : {"llama", "llama_rope", "qwen2", "qwen3", "gemma3"})
    for (const char* device : {"emu32", "emu64"}) cases.push_back({model, "model-f32.gguf", device});
  cases.push_back({"llama_q256", "model-bf16.gguf", "cpu"});
  cases.push_back({"llama_q256", "model-f16.gguf", "cpu"});
  cases.push_back({"llama_q256", "", "cpu"});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, F32Model, testing::ValuesIn(f32_cases()), [](const auto& info) {
  std::string name = std::string(info.param.model) + (*info.param.file ? "_gguf_" : "_folder_") + info.param.device;
  if (std::string(info.param.file).find("f16") != std::string::npos)
    name += std::string(info.param.file).find("bf16") != std::string::npos ? "_bf16" : "_f16";
  return name;
});

struct QuantCase {
  const char *model, *kind;
};

class QuantizedModel : public testing::TestWithParam<QuantCase> {
 protected:
  // Positions that the golden file keeps.
  std::vector<float> stored_rows(Engine& engine, const Golden& golden, std::span<const int32_t> ids) {
    const auto logits = all_logits(language_engine(engine).runner(), ids);
    const auto n = static_cast<size_t>(engine.info().vocabulary);
    std::vector<float> kept;
    for (int32_t row : golden.ids("rows")) {
      const auto from = logits.begin() + static_cast<int64_t>(static_cast<size_t>(row) * n);
      kept.insert(kept.end(), from, from + static_cast<int64_t>(n));
    }
    return kept;
  }
};

TEST_P(QuantizedModel, AgreesWithTheReference) {
  const auto [model, kind] = GetParam();
  const auto ids = Golden(model_path(model, "golden.safetensors")).ids("input_ids");
  const Golden golden(model_path(model, "golden-" + std::string(kind) + ".safetensors"));
  const std::string file = model_path(model, "model-" + std::string(kind) + ".gguf");
  for (const std::string device : {"cpu", "reference", "emu32"}) {
    const auto engine = load_engine(file, "f32", 2, device);
    const auto wanted = golden.floats("logits_dequant");
    const auto n = static_cast<size_t>(engine->info().vocabulary);
    EXPECT_LE(distance_of(wanted, stored_rows(*engine, golden, ids), n).max_abs, 1e-3) << device;
  }
  const auto engine = load_engine(file, "auto");
  const auto n = static_cast<size_t>(engine->info().vocabulary);
  const Distance d = distance_of(golden.floats("logits"), stored_rows(*engine, golden, ids), n);
  EXPECT_LT(d.rms, 0.1);
  EXPECT_GT(d.worst_cosine, 0.995);
}

std::vector<QuantCase> quant_cases() {
  std::vector<QuantCase> cases = {{"gemma3", "Q4_0"}};
  for (const char* kind :
       {"Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q2_K", "Q3_K_M", "Q4_K_M", "Q5_K_M", "Q6_K", "IQ4_NL", "IQ4_XS"})
    cases.push_back({"llama_q256", kind});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, QuantizedModel, testing::ValuesIn(quant_cases()),
                         [](const auto& info) { return std::string(info.param.model) + "_" + info.param.kind; });

// What a sequence's logits are doesn't depend on how its tokens are cut into steps, on its neighbours, or on threads.
class Invariance : public testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  std::string path() const { return model_path(std::get<0>(GetParam()), std::get<1>(GetParam())); }
};

TEST_P(Invariance, CutsNeighboursAndThreadsChangeNoBit) {
  const auto ids = Golden(model_path(std::get<0>(GetParam()), "golden.safetensors")).ids("input_ids");
  const auto other = Golden(model_path(std::get<0>(GetParam()), "golden.safetensors")).ids("input_ids_b");
  for (const std::string kv : {"f16", "f32"}) {
    EngineOptions options{.device = "cpu"};
    options.kv = kv, options.threads = 1;
    const auto engine = Engine::load(path(), options);
    expect_same_bits_in_any_step(*engine, ids, other);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Invariance,
                         testing::Values(std::tuple{"llama", "model-f32.gguf"}, std::tuple{"gemma3", "model-Q4_0.gguf"},
                                         std::tuple{"llama_q256", "model-Q4_K_M.gguf"},
                                         std::tuple{"llama_q256", "model-Q8_0.gguf"},
                                         std::tuple{"qwen3", "model-f32.gguf"}));

TEST(Cache, Q8_0StaysNear) {
  const auto ids = Golden(model_path("gemma3", "golden.safetensors")).ids("input_ids");
  EngineOptions options{.device = "cpu"};
  options.precision = "f32", options.kv = "q8_0", options.threads = 2;
  EXPECT_THROW(Engine::load(model_path("llama", "model-f32.gguf"), options), std::exception);  // heads of 16
  const auto engine = Engine::load(model_path("gemma3", "model-f32.gguf"), options);
  const auto wanted = Golden(model_path("gemma3", "golden.safetensors")).floats("logits");
  const Distance d = distance_of(wanted, all_logits(language_engine(*engine).runner(), ids),
                                 static_cast<size_t>(engine->info().vocabulary));
  EXPECT_GT(d.worst_cosine, 0.999);
  EXPECT_GT(d.max_abs, 1e-5);  // it is another arithmetic
}

TEST(Context, EndsAGenerationAndRefusesLongPrompts) {
  EngineOptions options{.device = "cpu"};
  options.context = 50;
  const auto engine = Engine::load(model_path("llama", "model-f32.gguf"), options);
  const auto ids = Golden(model_path("llama", "golden.safetensors")).ids("input_ids");  // 48
  GenerateOptions generate;
  generate.ignore_eos = true;
  const auto session = engine->session();
  const Generation made = session->generate(ids, generate);
  EXPECT_EQ(made.stop_reason, StopReason::context_full);
  EXPECT_EQ(exit_code(made.stop_reason), 5);
  EXPECT_EQ(made.tokens.size(), 2u);
  std::vector<int32_t> longer = ids;
  longer.insert(longer.end(), {1, 2, 3});
  EXPECT_THROW(session->generate(longer, generate), std::exception);
  EXPECT_THROW(session->generate({}, generate), std::exception);
  const int32_t bad = 512;
  EXPECT_THROW(session->generate({&bad, 1}, generate), std::exception);
}

TEST(Session, KeepsItsEngineAndIsTheOnlyOne) {
  auto engine = load_engine(model_path("llama", "model-f32.gguf"), "f32");
  auto session = engine->session();
  EXPECT_THROW(engine->session(), Error);
  engine.reset();
  GenerateOptions generate;
  generate.max_tokens = 2, generate.ignore_eos = true;
  const int32_t prompt = 1;
  EXPECT_EQ(session->generate({&prompt, 1}, generate).tokens.size(), 2u);
  generate.sampling.logit_bias = {{512, 1.0f}};
  try {
    session->generate({&prompt, 1}, generate);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit(), Exit::usage);
  }
}

TEST(Load, RefusesNumbersThatMakeNoSense) {
  for (const char* key : {"gemma3.rope.freq_base_swa=float:0", "gemma3.rope.freq_base_swa=float:-1",
                          "gemma3.attention.scale=float:-0.5", "gemma3.rope.freq_base=float:0"}) {
    EngineOptions options{.device = "cpu"};
    options.override_kv = {key};
    try {
      Engine::load(model_path("gemma3", "model-f32.gguf"), options);
      ADD_FAILURE() << key;
    } catch (const Error& error) {
      EXPECT_EQ(error.exit(), Exit::input) << key;
    }
  }
}

// What llama has no place for, here qwen3's norms, isn't left out without a word.
TEST(Load, NamesTensorsThatItHasNoUseFor) {
  ModelFile file = open_model(model_path("llama", "model-f32.gguf"));
  file.tensors.push_back(*file.find("blk.0.attn_norm.weight"));
  file.tensors.back().name = "blk.0.attn_q_norm.weight";
  const auto path = std::filesystem::path(testing::TempDir()) / fmt::format("unused-{}.gguf", ::getpid());
  convert_model(file, path, "f32");
  testing::internal::CaptureStderr();
  load_engine(path.string(), "f32");
  const std::string said = testing::internal::GetCapturedStderr();
  std::filesystem::remove(path);
  EXPECT_NE(said.find("1 tensors that llama has no use for: blk.0.attn_q_norm.weight"), std::string::npos) << said;
  testing::internal::CaptureStderr();
  load_engine(model_path("llama", "model-f32.gguf"), "f32");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Session, ReusesTheSharedPrefix) {
  const auto engine = load_engine(model_path("qwen3", "model-f32.gguf"), "f32");
  const auto ids = Golden(model_path("qwen3", "golden.safetensors")).ids("input_ids");
  GenerateOptions generate;
  generate.max_tokens = 4, generate.ignore_eos = true;
  const auto session = engine->session();
  const auto first = session->generate(ids, generate).tokens;
  std::vector<int32_t> longer = ids;
  longer.insert(longer.end(), first.begin(), first.end());
  const auto next = session->generate(longer, generate).tokens;
  session->reset();
  EXPECT_EQ(session->generate(longer, generate).tokens, next);
  EXPECT_EQ(session->length(), static_cast<int64_t>(longer.size()) + 3);  // the last token is not evaluated
}

}  // namespace
}  // namespace consonant
