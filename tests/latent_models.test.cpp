// SPDX-License-Identifier: Apache-2.0
// Models with latent attention (deepseek2: DeepSeek V2 and V3, GLM-4.7-Flash) against the goldens of the reference
// implementation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
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

// ---- a cache in q8_0

// A model whose rows are whole blocks of 32: 16 more latent numbers, which are 0. What they add to the norm's mean is
// in the matrix before it, and taken out again by the norm's weight (80 numbers in place of 64: s = sqrt(80 / 64)), so
// that the model's logits stay what the goldens say.
struct WideRows {
  static constexpr size_t latent = 64, wide = 80, turned = 16, heads = 4;
  TempFile file;

  explicit WideRows(const std::string& model) {
    ModelFile narrow = open_model(path_of(model, "model-f32.gguf"));
    narrow.meta->replace("deepseek2.attention.kv_lora_rank", {MetaType::u32, false, int64_t{wide}});
    narrow.meta->replace("deepseek2.attention.key_length", {MetaType::u32, false, int64_t{wide + turned}});
    narrow.meta->replace("deepseek2.attention.value_length", {MetaType::u32, false, int64_t{wide}});
    const float s = std::sqrt(float{wide} / float{latent});
    for (StoredTensor& tensor : narrow.tensors) {
      const auto is = [&](const char* part) { return tensor.name.ends_with(fmt::format(".{}.weight", part)); };
      const bool matrix = is("attn_kv_a_mqa"), norm = is("attn_kv_a_norm"), keys = is("attn_k_b");
      if (!matrix && !norm && !keys && !is("attn_v_b")) continue;
      // As [outer][latent][inner].
      const size_t count = tensor.load().to_floats().size(),
                   outer = matrix || norm ? 1
                           : keys         ? heads
                                          : count / latent,
                   inner = matrix ? width
                           : keys ? count / (heads * latent)
                                  : 1,
                   behind = matrix ? turned * inner : 0;
      const float scale = matrix ? s : norm ? 1 / s : 1;
      Sizes sizes = tensor.sizes;
      sizes[matrix || norm ? 0 : keys ? 1 : 2] += wide - latent;
      const HostTensor widened = widen(tensor.load().to_floats(), sizes, outer, inner, behind, scale);
      tensor = {tensor.name, DType::f32, widened.sizes, static_cast<int64_t>(widened.bytes.size()),
                [widened] { return widened; }};
    }
    convert_model(narrow, file.path, "f32", 2);
  }

  static HostTensor widen(const std::vector<float>& from, const Sizes& sizes, size_t outer, size_t inner, size_t behind,
                          float scale) {
    HostTensor to = HostTensor::allocate(DType::f32, sizes);
    std::vector<float> numbers;
    for (size_t o = 0; o < outer; ++o) {
      for (size_t i = 0; i < latent * inner; ++i) numbers.push_back(scale * from[o * latent * inner + i]);
      numbers.resize(numbers.size() + (wide - latent) * inner);
    }
    numbers.insert(numbers.end(), from.end() - static_cast<int64_t>(behind), from.end());
    EXPECT_EQ(numbers.size() * sizeof(float), to.bytes.size());
    std::copy_n(reinterpret_cast<const std::byte*>(numbers.data()), to.bytes.size(), to.mutable_bytes().data());
    return to;
  }

  std::shared_ptr<Engine> with(const std::string& kv, const std::string& device = "cpu",
                               const std::string& precision = "f32") const {
    return load(file.path.string(), {.device = device, .precision = precision, .kv = kv});
  }
};

struct Seen {
  std::vector<float> logits;
  std::vector<std::vector<int32_t>> experts;  // that each token goes to, layer by layer
};

Seen seen(Engine& engine, std::span<const int32_t> ids) {
  Seen s;
  s.experts.resize(ids.size());
  Runner& runner = language_engine(engine).runner();
  runner.observe([&](const PlannedNode& planned, std::span<const View> outputs) {
    if (!is(*planned.node, Op::route)) return false;
    for (int64_t t = 0; t < outputs[0].rows(); ++t) {
      std::vector<int32_t> chosen(outputs[0].row<int32_t>(t), outputs[0].row<int32_t>(t) + outputs[0].last());
      std::sort(chosen.begin(), chosen.end());
      auto& all = s.experts[static_cast<size_t>(t)];
      all.insert(all.end(), chosen.begin(), chosen.end());
    }
    return false;
  });
  s.logits = all_logits(runner, ids);
  runner.observe({});
  return s;
}

// A number of a block of 32 is off by half a step at most, 1/254 of the block's greatest. That may send a token to
// other experts, after which its logits are others: those of tokens that keep all of theirs stay near, and the others
// are few.
TEST(LatentCacheInQ8_0, StaysNearF32) {
  for (const char* model : models) {
    const WideRows wide(model);
    const Golden golden = golden_of(model);
    const auto ids = golden.ids("input_ids");
    for (const char* device : {"cpu", "reference", "emu32", "emu64"}) {
      SCOPED_TRACE(fmt::format("{} on {}", model, device));
      const Seen exact = seen(*wide.with("f32", device), ids), rounded = seen(*wide.with("q8_0", device), ids);
      EXPECT_LE(distance_of(golden.floats("logits"), exact.logits, vocabulary).max_abs, 1e-4) << "it is another model";
      EXPECT_GE(distance_of(exact.logits, rounded.logits, vocabulary).max_abs, 1e-5) << "it is another arithmetic";
      size_t elsewhere = 0;
      for (size_t t = 0; t < ids.size(); ++t) {
        ASSERT_FALSE(exact.experts[t].empty());
        const auto row = [&](const Seen& s) { return std::span(s.logits).subspan(t * vocabulary, vocabulary); };
        if (exact.experts[t] != rounded.experts[t])
          ++elsewhere;
        else
          EXPECT_GE(distance_of(row(exact), row(rounded), vocabulary).worst_cosine, 0.999) << "token " << t;
      }
      EXPECT_LE(elsewhere, ids.size() / 10);
    }
  }
}

TEST(LatentCacheInQ8_0, IsHalfOfF16AndTwoBytesABlock) {
  const WideRows wide("glm4_moe_lite");
  EXPECT_EQ(language_engine(*wide.with("f16")).runner().kv_bytes_per_position(), 3 * 96 * 2);
  EXPECT_EQ(language_engine(*wide.with("q8_0")).runner().kv_bytes_per_position(), 3 * 96 / 32 * 34);
}

TEST(LatentCacheInQ8_0, CutsNeighboursAndThreadsChangeNoBit) {
  const WideRows wide("deepseek_v3");
  const Golden golden = golden_of("deepseek_v3");
  for (const char* device : {"cpu", "emu32"}) {
    SCOPED_TRACE(device);
    const auto engine = wide.with("q8_0", device, "auto");
    expect_same_bits_in_any_step(*engine, golden.ids("input_ids"), golden.ids("input_ids_b"));
  }
}

TEST(LatentCacheInQ8_0, AgreesNodeByNode) {
  for (const char* model : models) {
    const WideRows wide(model);
    auto ids = golden_of(model).ids("input_ids");
    ids.resize(20);
    for (const char* device : {"emu32", "emu64"}) {
      SCOPED_TRACE(fmt::format("{} on {}", model, device));
      const Agreement found = prove(*wide.with("q8_0"), *wide.with("q8_0", device), ids);
      EXPECT_TRUE(found.agree) << found.first_divergent_node;
      EXPECT_TRUE(found.positive_control);
      EXPECT_TRUE(found.not_compared.empty());
    }
  }
}

void (*right_append)(const Args& args, Accelerator& device, std::byte* scratch) = nullptr;

TEST(LatentCacheInQ8_0, AWrongAppendIsFound) {
  const WideRows wide("deepseek_v2");
  Target target = open_target("emu32");
  std::vector<GpuKernel> kernels(target.kernels.begin(), target.kernels.end());
  for (GpuKernel& kernel : kernels) {
    if (kernel.op != Op::latent_append) continue;
    right_append = kernel.launch;
    kernel.launch = [](const Args& args, Accelerator& device, std::byte* scratch) {
      right_append(args, device, scratch);
      device.wait();
      const View& rows = args.out[0];
      auto* numbers = reinterpret_cast<int8_t*>(rows.data);
      const int64_t page = kv_page_bytes(DType::q8_0, rows.shape[1], rows.shape[3]);
      for (int64_t p = 0; p < rows.shape[0]; ++p)
        for (int64_t i = 0; i < page / 34 * 32; ++i)
          numbers[p * page + i] = static_cast<int8_t>(numbers[p * page + i] / 2);
    };
  }
  target.kernels = kernels;
  EngineOptions options;
  options.precision = "f32", options.kv = "q8_0";
  auto ids = golden_of("deepseek_v2").ids("input_ids");
  ids.insert(ids.end(), ids.begin(), ids.begin() + 30);  // too many to be captured: the wrong kernel waits
  LanguageEngine device(wide.file.path.string(), options, target);
  const Agreement found = prove(*wide.with("q8_0"), device, ids);
  EXPECT_FALSE(found.agree);
  EXPECT_EQ(found.first_divergent_node, "blk.0/latent_append");
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
