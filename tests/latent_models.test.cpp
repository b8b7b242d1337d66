// SPDX-License-Identifier: Apache-2.0
// Models with latent attention (deepseek2: DeepSeek V2 and V3, GLM-4.7-Flash) against the goldens of the reference
// implementation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/error.hpp"
#include "consonant/verify.hpp"
#include "engine/model_setup.hpp"
#include "engine/placement.hpp"
#include "formats/convert.hpp"
#include "tests/language_golden.hpp"

namespace consonant {
namespace {

using testing::HasSubstr;

constexpr int64_t vocabulary = 512, width = 64;
constexpr const char* models[] = {"glm4_moe_lite", "deepseek_v2", "deepseek_v3"};

std::string path_of(const std::string& model, const std::string& file) {
  return std::string(CONSONANT_TEST_DATA) + "/llm_mla/models/" + model + "/" + file;
}

Golden golden_of(const std::string& model) { return Golden(path_of(model, "golden.safetensors")); }

struct Loading {
  std::string device = "cpu", precision = "f32", kv = "f32";
  std::vector<std::string> overrides;
  int threads = 2;
};

std::shared_ptr<Engine> load(const std::string& path, const Loading& loading = {}) {
  EngineOptions options;
  options.device = loading.device, options.precision = loading.precision, options.kv = loading.kv;
  options.override_kv = loading.overrides, options.threads = loading.threads;
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

// ---- against the reference

struct Place {
  std::string model, file, device;
};

class LatentModel : public testing::TestWithParam<Place> {
 protected:
  std::shared_ptr<Engine> engine() const {
    return load(path_of(GetParam().model, GetParam().file), {.device = GetParam().device});
  }
  Golden golden() const { return golden_of(GetParam().model); }
};

TEST_P(LatentModel, AgreesWithTheReference) { expect_goldens(*engine(), golden()); }

TEST_P(LatentModel, AgreesWithTheReferenceAfterAttentionAndLayer) {
  const auto engine = this->engine();
  const Golden golden = this->golden();
  Runner& runner = language_engine(*engine).runner();
  const auto ids = golden.ids("input_ids");
  std::vector<float> after = golden.floats("hidden.embed");
  const auto attention = golden.floats("self_attn.0");
  for (size_t i = 0; i < after.size(); ++i) after[i] += attention[i];
  EXPECT_LE(distance_of(after, watched(runner, "blk.0/add", ids), width).max_abs, 1e-5);
  EXPECT_LE(distance_of(golden.floats("hidden.0"), watched(runner, "blk.0/add.2", ids), width).max_abs, 1e-5);
}

TEST_P(LatentModel, ChoosesTheExpertsOfTheReference) {
  const auto engine = this->engine();
  expect_routing(language_engine(*engine).runner(), golden(), static_cast<size_t>(engine->info().layers - 1));
}

std::vector<Place> places() {
  std::vector<Place> all;
  for (const char* model : models) {
    for (const char* device : {"cpu", "reference", "emu32", "emu64"}) all.push_back({model, "model-f32.gguf", device});
    all.push_back({model, "", "cpu"});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, LatentModel, testing::ValuesIn(places()), [](const auto& info) {
  return info.param.model + (info.param.file.empty() ? "_folder_" : "_gguf_") + info.param.device;
});

// ---- other files

struct TempFile {
  std::filesystem::path path = std::filesystem::path(testing::TempDir()) / fmt::format("latent-{}.gguf", ::getpid());
  ~TempFile() { std::filesystem::remove(path); }
};

TEST(LatentFiles, ConvertedFromTheFolderTheyAreTheSame) {
  for (const char* model : models) {
    SCOPED_TRACE(model);
    const TempFile file;
    convert_model(open_model(path_of(model, "")), file.path, "f32", 2);
    const Golden golden = golden_of(model);
    const auto engine = load(file.path.string());
    const auto logits = all_logits(language_engine(*engine).runner(), golden.ids("input_ids"));
    EXPECT_LE(distance_of(golden.floats("logits"), logits, vocabulary).max_abs, 1e-4);
  }
}

// What older converters wrote: one matrix for keys and values, and the heads' own sizes in the plain keys.
TEST(LatentFiles, OlderOnesHaveBothProjectionsInOne) {
  ModelFile file = open_model(path_of("deepseek_v3", "model-f32.gguf"));
  for (const char* part : {"key", "value"})
    file.meta->replace(fmt::format("deepseek2.attention.{}_length", part), {MetaType::u32, false, int64_t{48}});
  const ModelFile folder = open_model(path_of("deepseek_v3", ""));
  for (int layer = 0; layer < 2; ++layer) {
    const auto k_b = file.find(fmt::format("blk.{}.attn_k_b.weight", layer))->load().to_floats(),
               v_b = file.find(fmt::format("blk.{}.attn_v_b.weight", layer))->load().to_floats();
    HostTensor both = HostTensor::allocate(DType::f32, {4 * 80, 64});
    auto* to = reinterpret_cast<float*>(both.mutable_bytes().data());
    for (size_t head = 0; head < 4; ++head) {
      for (size_t i = 0; i < 32; ++i)
        for (size_t l = 0; l < 64; ++l) *to++ = k_b[(head * 64 + l) * 32 + i];
      to = std::copy_n(v_b.begin() + static_cast<int64_t>(head * 48 * 64), 48 * 64, to);
    }
    std::erase_if(file.tensors, [&](const StoredTensor& t) {
      return t.name == fmt::format("blk.{}.attn_k_b.weight", layer) ||
             t.name == fmt::format("blk.{}.attn_v_b.weight", layer);
    });
    file.tensors.push_back({fmt::format("blk.{}.attn_kv_b.weight", layer), DType::f32, both.sizes,
                            static_cast<int64_t>(both.bytes.size()), [both] { return both; }});
  }
  const TempFile older;
  convert_model(file, older.path, "f32", 2);
  const Golden golden = golden_of("deepseek_v3");
  const auto engine = load(older.path.string());
  const auto logits = all_logits(language_engine(*engine).runner(), golden.ids("input_ids"));
  EXPECT_LE(distance_of(golden.floats("logits"), logits, vocabulary).max_abs, 1e-4);
}

std::vector<float> rows_of(const std::vector<float>& logits, const Golden& of) {
  std::vector<float> kept;
  for (const int32_t row : of.ids("rows"))
    kept.insert(kept.end(), logits.begin() + row * vocabulary, logits.begin() + (row + 1) * vocabulary);
  return kept;
}

TEST(LatentFiles, InQ8_0) {
  const std::string file = path_of("glm4_moe_lite", "model-Q8_0.gguf");
  const Golden quantised(path_of("glm4_moe_lite", "golden-Q8_0.safetensors"));
  const auto ids = golden_of("glm4_moe_lite").ids("input_ids");
  const auto wanted = quantised.floats("logits_dequant");
  for (const char* device : {"cpu", "reference", "emu32"}) {
    const auto engine = load(file, {.device = device});
    const auto logits = rows_of(all_logits(language_engine(*engine).runner(), ids), quantised);
    EXPECT_LE(distance_of(wanted, logits, vocabulary).max_abs, 1e-3) << device;
  }
  // With activations in 8 bits a near tie may send a token to another expert: the median row tells.
  const auto engine = load(file, {.precision = "auto", .kv = "f16"});
  const auto logits = rows_of(all_logits(language_engine(*engine).runner(), ids), quantised);
  std::vector<double> errors;
  for (size_t at = 0; at < logits.size(); at += vocabulary)
    errors.push_back(
        distance_of(std::span(wanted).subspan(at, vocabulary), std::span(logits).subspan(at, vocabulary), vocabulary)
            .rms);
  std::sort(errors.begin(), errors.end());
  EXPECT_LT(errors[errors.size() / 2], 0.1);
}

// ---- the cache

TEST(LatentCache, HoldsOneRowAPosition) {
  const auto engine = load(path_of("glm4_moe_lite", "model-f32.gguf"), {.kv = "f16"});
  EXPECT_EQ(language_engine(*engine).runner().kv_bytes_per_position(), 3 * (64 + 16) * 2);
}

// What a sequence's logits are doesn't depend on how its tokens are cut into steps, on its neighbours, or on threads.
TEST(LatentCache, CutsNeighboursAndThreadsChangeNoBit) {
  for (const auto& [model, file] : {std::pair{"deepseek_v3", "model-f32.gguf"}, {"glm4_moe_lite", "model-Q8_0.gguf"}})
    for (const char* kv : {"f16", "f32"}) {
      SCOPED_TRACE(fmt::format("{} {} {}", model, file, kv));
      const Golden golden = golden_of(model);
      const auto ids = golden.ids("input_ids"), other = golden.ids("input_ids_b");
      const auto engine = load(path_of(model, file), {.precision = "auto", .kv = kv, .threads = 1});
      expect_same_bits_in_any_step(*engine, ids, other);
    }
}

TEST(LatentCache, CopiesAndCutsLeaveWhatIsBeforeThem) {
  for (const char* device : {"cpu", "emu32"}) {
    SCOPED_TRACE(device);
    const Golden golden = golden_of("deepseek_v2");
    const auto ids = golden.ids("input_ids");
    const auto engine = load(path_of("deepseek_v2", "model-f32.gguf"), {.device = device, .kv = "f16"});
    const auto runner = language_engine(*engine).make_runner(2, 2);
    const auto read = [&](int sequence, size_t from, size_t to) {
      const Piece piece{sequence, std::span(ids).subspan(from, to - from), true};
      const auto logits = runner->evaluate({&piece, 1});
      return std::vector<float>(logits.begin(), logits.end());
    };
    const int first = runner->open();
    const auto whole = read(first, 0, ids.size());
    const std::vector<float> tail(whole.begin() + 30 * vocabulary, whole.end());
    runner->truncate(first, 30);
    const int copy = runner->cache().fork(first);
    EXPECT_EQ(read(first, 30, ids.size()), tail);
    EXPECT_EQ(read(copy, 30, ids.size()), tail) << "the copy has pages of its own";
  }
}

TEST(LatentCache, RefusesRowsThatAreNoWholeBlocks) {
  EXPECT_THROW(load(path_of("deepseek_v2", "model-f32.gguf"), {.kv = "q8_0"}), Error);  // rows of 80
}

// A file whose rows are whole blocks of q8_0: heads turn 32 of their numbers instead of 16. Those that are added repeat
// the others, half as large.
ModelFile widened() {
  constexpr int64_t latent = 64, nope = 32, turned = 16, heads = 4;
  ModelFile file = open_model(path_of("deepseek_v3", "model-f32.gguf"));
  for (const auto& [key, value] : {std::pair<std::string, int64_t>{"attention.key_length", latent + 2 * turned},
                                   {"attention.key_length_mla", nope + 2 * turned},
                                   {"rope.dimension_count", 2 * turned}})
    file.meta->replace("deepseek2." + key, {MetaType::u32, false, value});
  // After each `kept` rows and those that turn.
  const auto widen = [&](const std::string& name, int64_t groups, int64_t kept) {
    auto tensor = std::find_if(file.tensors.begin(), file.tensors.end(), [&](const auto& t) { return t.name == name; });
    ASSERT_NE(tensor, file.tensors.end()) << name;
    const std::vector<float> old = tensor->load().to_floats();
    const int64_t columns = tensor->sizes.back(), before = (kept + turned) * columns;
    HostTensor wide = HostTensor::allocate(DType::f32, {groups * (kept + 2 * turned), columns});
    auto* to = reinterpret_cast<float*>(wide.mutable_bytes().data());
    for (int64_t g = 0; g < groups; ++g) {
      const float* const from = old.data() + g * before;
      to = std::copy_n(from, before, to);
      to = std::transform(from + kept * columns, from + before, to, [](float x) { return x / 2; });
    }
    *tensor = {name, DType::f32, wide.sizes, static_cast<int64_t>(wide.bytes.size()), [wide] { return wide; }};
  };
  for (int layer = 0; layer < 2; ++layer) {
    widen(fmt::format("blk.{}.attn_kv_a_mqa.weight", layer), 1, latent);
    widen(fmt::format("blk.{}.attn_q_b.weight", layer), heads, nope);
  }
  return file;
}

// Numbers of 8 bits with a scale for 32 of them are off by at most 1/254 of the greatest: logits turn by little. Every
// device makes the same blocks of the same rows, so they agree as they do with other caches.
TEST(LatentCache, InQ8_0) {
  const TempFile wide;
  convert_model(widened(), wide.path, "f32", 2);
  const auto ids = golden_of("deepseek_v3").ids("input_ids");
  const auto logits = [&](const char* device, const char* kv) {
    const auto engine = load(wide.path.string(), {.device = device, .kv = kv});
    EXPECT_EQ(language_engine(*engine).runner().kv_bytes_per_position(),
              2 * 96 * (kv == std::string("q8_0") ? 34 : 128) / 32);
    return all_logits(language_engine(*engine).runner(), ids);
  };
  const auto exact = logits("cpu", "f32"), eight = logits("cpu", "q8_0");
  const Distance coarse = distance_of(exact, eight, vocabulary);
  EXPECT_GT(coarse.max_abs, 1e-4) << "nothing was rounded";
  EXPECT_GT(coarse.worst_cosine, 0.999);
  for (const char* device : {"reference", "emu32", "emu64"})
    EXPECT_GT(distance_of(eight, logits(device, "q8_0"), vocabulary).worst_cosine, 0.9999) << device;
}

// ---- accelerators

TEST(LatentAccelerators, AgreeNodeByNode) {
  for (const char* model : models)
    for (const char* device : {"emu32", "emu64"}) {
      SCOPED_TRACE(fmt::format("{} on {}", model, device));
      auto ids = golden_of(model).ids("input_ids");
      ids.resize(20);
      const std::string path = path_of(model, "model-f32.gguf");
      const Agreement found = prove(*load(path, {.kv = "f16"}), *load(path, {.device = device, .kv = "f16"}), ids);
      EXPECT_TRUE(found.agree) << found.first_divergent_node;
      EXPECT_TRUE(found.positive_control);
      EXPECT_GE(found.worst_cosine, 0.999999);
      EXPECT_EQ(found.disagreements, 0);
      EXPECT_TRUE(found.not_compared.empty());
    }
}

TEST(LatentAccelerators, AModelIsRefusedWhereAKernelIsMissing) {
  for (const Op missing : {Op::attend_latent, Op::latent_append, Op::linear_heads}) {
    Target target = open_target("emu32");
    std::vector<GpuKernel> kernels(target.kernels.begin(), target.kernels.end());
    std::erase_if(kernels, [&](const GpuKernel& kernel) { return kernel.op == missing; });
    target.kernels = kernels;
    EngineOptions options;
    options.device = "emu32", options.precision = "f32";
    try {
      LanguageEngine(path_of("deepseek_v2", "model-f32.gguf"), options, std::move(target));
      ADD_FAILURE() << "runs without " << op_name(id(missing));
    } catch (const Error& error) {
      EXPECT_EQ(error.exit(), Exit::device);
      EXPECT_THAT(error.what(), HasSubstr(fmt::format("blk.1/{}", op_name(id(missing)))));
    }
  }
}

TEST(LatentAccelerators, CountTheCacheBeforeTheyLoad) {
  EngineOptions options;
  options.device = "emu32", options.context = 128;
  const Placement placement = plan_language(path_of("deepseek_v2", "model-f32.gguf"), options);
  EXPECT_TRUE(placement.refusals.empty());
  EXPECT_EQ(placement.cache_bytes, 2 * 128 * (64 + 16) * 2);
}

// ---- bad input

void expect_bad(const std::string& model, const std::string& override_kv, const std::string& named) {
  try {
    load(path_of(model, "model-f32.gguf"), {.overrides = {override_kv}});
    ADD_FAILURE() << override_kv << " is taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.exit(), Exit::input) << override_kv << ": " << error.what();
    EXPECT_THAT(error.what(), HasSubstr(named)) << override_kv;
  }
}

TEST(LatentFiles, WithNumbersThatDoNotFitAreRefused) {
  expect_bad("deepseek_v3", "deepseek2.expert_group_count=int:3", "expert_group_count");
  expect_bad("deepseek_v3", "deepseek2.expert_group_used_count=int:5", "expert_group_used_count");
  expect_bad("deepseek_v3", "deepseek2.expert_used_count=int:9", "expert_used_count");
  expect_bad("deepseek_v3", "deepseek2.expert_used_count=int:5", "expert_used_count");  // two groups have four
  expect_bad("deepseek_v3", "deepseek2.expert_count=int:16", "expert_count");
  expect_bad("deepseek_v3", "deepseek2.expert_shared_count=int:2", "ffn_gate_shexp");
  expect_bad("deepseek_v3", "deepseek2.leading_dense_block_count=int:3", "leading_dense_block_count");
  expect_bad("deepseek_v3", "deepseek2.leading_dense_block_count=int:-1", "leading_dense_block_count");
  expect_bad("deepseek_v3", "deepseek2.attention.kv_lora_rank=int:0", "attention.kv_lora_rank");
  expect_bad("deepseek_v3", "deepseek2.attention.kv_lora_rank=int:32", "attn_kv_a_mqa");
  expect_bad("deepseek_v3", "deepseek2.attention.key_length_mla=int:16", "attention.key_length_mla");
  expect_bad("deepseek_v3", "deepseek2.rope.dimension_count=int:15", "rope.dimension_count");
  expect_bad("deepseek_v3", "deepseek2.rope.scaling.factor=float:0", "rope.scaling.factor");
  expect_bad("deepseek_v3", "deepseek2.rope.scaling.yarn_log_multiplier=float:-1", "yarn_log_multiplier");
  expect_bad("deepseek_v3", "deepseek2.rope.scaling.type=str:ntk", "rope.scaling.type");
  expect_bad("deepseek_v2", "deepseek2.expert_gating_func=int:2", "blk.1.exp_probs_b.bias");  // has no correction
  expect_bad("deepseek_v2", "deepseek2.expert_gating_func=int:7", "expert_gating_func");
}

}  // namespace
}  // namespace consonant
