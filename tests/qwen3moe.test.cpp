// SPDX-License-Identifier: Apache-2.0
// Qwen3 with experts against the goldens: logits, and which experts each token went to, one by one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <map>

#include "base/error.hpp"
#include "consonant/verify.hpp"
#include "engine/model_setup.hpp"
#include "formats/convert.hpp"
#include "ops/op.hpp"
#include "tests/language_golden.hpp"

namespace consonant {
namespace {

using testing::HasSubstr;

const std::string folder = CONSONANT_TEST_DATA "/llm_moe/models/qwen3moe";
const std::string f32_file = folder + "/model-f32.gguf", mxfp4_file = folder + "/model-MXFP4_MOE.gguf";
constexpr int64_t vocabulary = 512;

const Golden& golden() {
  static const Golden file(folder + "/golden.safetensors");
  return file;
}

struct Place {
  std::string path, device;
};

class Qwen3Moe : public testing::TestWithParam<Place> {};

TEST_P(Qwen3Moe, AgreesWithTheReference) {
  expect_goldens(*load_engine(GetParam().path, "f32", 2, GetParam().device), golden());
}

// ---- which experts

TEST_P(Qwen3Moe, ChoosesTheExpertsOfTheReference) {
  const auto engine = load_engine(GetParam().path, "f32", 2, GetParam().device);
  expect_routing(language_engine(*engine).runner(), golden(), 2, true);
}

INSTANTIATE_TEST_SUITE_P(All, Qwen3Moe,
                         testing::Values(Place{f32_file, "cpu"}, Place{folder, "cpu"}, Place{f32_file, "reference"},
                                         Place{f32_file, "emu32"}, Place{f32_file, "emu64"}),
                         [](const auto& info) {
                           return (info.param.path == folder ? "folder_" : "gguf_") + info.param.device;
                         });

// ---- other files

TEST(Qwen3MoeFiles, ConvertedFromTheFolderTheyAreTheSame) {
  const auto path = std::filesystem::path(testing::TempDir()) / fmt::format("qwen3moe-{}.gguf", ::getpid());
  convert_model(open_model(folder), path, "f32", 2);
  expect_goldens(*load_engine(path.string(), "f32"), golden());
  std::filesystem::remove(path);
}

std::vector<float> rows_of(const std::vector<float>& logits, const Golden& of) {
  std::vector<float> kept;
  for (const int32_t row : of.ids("rows"))
    kept.insert(kept.end(), logits.begin() + row * vocabulary, logits.begin() + (row + 1) * vocabulary);
  return kept;
}

TEST(Qwen3MoeFiles, ExpertsInMxfp4) {
  const Golden quantised(folder + "/golden-MXFP4_MOE.safetensors");
  const auto ids = golden().ids("input_ids");
  const auto wanted = quantised.floats("logits_dequant");
  for (const std::string device : {"cpu", "reference", "emu32"}) {
    const auto engine = load_engine(mxfp4_file, "f32", 2, device);
    const auto logits = rows_of(all_logits(language_engine(*engine).runner(), ids), quantised);
    EXPECT_LE(distance_of(wanted, logits, vocabulary).max_abs, 1e-3) << device;
  }
  // With activations in 8 and 16 bits a near tie may send a token to another expert: the median row tells.
  const auto engine = load_engine(mxfp4_file, "auto");
  const auto logits = rows_of(all_logits(language_engine(*engine).runner(), ids), quantised);
  std::vector<double> errors;
  for (size_t at = 0; at < logits.size(); at += vocabulary)
    errors.push_back(
        distance_of(std::span(wanted).subspan(at, vocabulary), std::span(logits).subspan(at, vocabulary), vocabulary)
            .rms);
  std::sort(errors.begin(), errors.end());
  EXPECT_LT(errors[errors.size() / 2], 0.1);
}

// What a sequence's logits are doesn't depend on how its tokens are cut into steps, on its neighbours, or on threads:
// few tokens and many, whose products have two forms, give the same bits.
TEST(Qwen3MoeFiles, CutsNeighboursAndThreadsChangeNoBit) {
  const auto ids = golden().ids("input_ids"), other = golden().ids("input_ids_b");
  for (const std::string& path : {f32_file, mxfp4_file}) {
    const auto engine = load_engine(path, "auto", 1);
    expect_same_bits_in_any_step(*engine, ids, other);
  }
}

// ---- on an accelerator

EngineOptions options_for(const std::string& device) {
  EngineOptions options;
  options.device = device, options.precision = "f32", options.threads = 2, options.context = 128;
  return options;
}

TEST(Qwen3MoeOnDevices, IsRefusedWithTheListWhereAKernelIsMissing) {
  for (const Op missing : {Op::route, Op::linear_of, Op::mix}) {
    Target target = open_target("emu32");
    std::vector<GpuKernel> kernels(target.kernels.begin(), target.kernels.end());
    std::erase_if(kernels, [&](const GpuKernel& kernel) { return kernel.op == missing; });
    target.kernels = kernels;
    try {
      LanguageEngine(f32_file, options_for("emu32"), target);
      ADD_FAILURE() << "runs without " << op_name(id(missing));
    } catch (const Error& error) {
      EXPECT_EQ(error.exit(), Exit::device);
      EXPECT_THAT(error.what(), HasSubstr(std::string(op_name(id(missing)))));
      EXPECT_THAT(error.what(), HasSubstr("blk.1/"));  // the whole list
    }
  }
}

TEST(Qwen3MoeOnDevices, AgreeNodeByNode) {
  auto ids = golden().ids("input_ids");
  ids.resize(20);
  for (const char* name : {"emu32", "emu64"}) {
    SCOPED_TRACE(name);
    const auto reference = Engine::load(f32_file, options_for("cpu")),
               device = Engine::load(f32_file, options_for(name));
    const Agreement found = prove(*reference, *device, ids);
    EXPECT_TRUE(found.agree);
    EXPECT_TRUE(found.positive_control);
    EXPECT_EQ(found.first_divergent_node, "");
    EXPECT_EQ(found.disagreements, 0);
    EXPECT_TRUE(found.not_compared.empty());
  }
}

// No launch an expert, no wait in between: a token is one launch and one wait.
TEST(Qwen3MoeOnDevices, ATokenIsOneLaunch) {
  const auto engine = Engine::load(f32_file, options_for("emu32"));
  const Accelerator& device = *language_engine(*engine).target().accelerator;
  const auto session = engine->session();
  GenerateOptions options;
  options.ignore_eos = true, options.max_tokens = 4;
  auto ids = golden().ids("input_ids");
  ids.resize(10);
  const auto made = session->generate(ids, options).tokens;  // what is captured, is by now
  ids.insert(ids.end(), made.begin(), made.end());
  const int64_t launches = device.launches(), waits = device.waits();
  options.max_tokens = 20;
  EXPECT_EQ(session->generate(ids, options).tokens.size(), 20u);
  EXPECT_EQ(device.launches() - launches, 20);
  EXPECT_EQ(device.waits() - waits, 20);
}

// ---- bad input

std::string refusal(const std::string& override_kv) {
  EngineOptions options = options_for("cpu");
  options.override_kv = {override_kv};
  try {
    Engine::load(f32_file, options);
  } catch (const Error& error) {
    EXPECT_EQ(error.exit(), Exit::input) << override_kv;
    return error.what();
  }
  return "accepted";
}

TEST(Qwen3MoeFiles, RefusesExpertsThatDoNotFit) {
  const std::string arch = "qwen3moe.";
  EXPECT_THAT(refusal(arch + "expert_count=int:9"), HasSubstr("qwen3moe.expert_count is 9, but blk."));
  EXPECT_THAT(refusal(arch + "expert_count=int:0"), HasSubstr("qwen3moe.expert_count is 0"));
  EXPECT_THAT(refusal(arch + "expert_used_count=int:9"),
              HasSubstr("qwen3moe.expert_used_count is 9, should be from 1 to 8"));
  EXPECT_THAT(refusal(arch + "expert_feed_forward_length=int:33"),
              HasSubstr("qwen3moe.expert_feed_forward_length is 33, but blk."));
  EXPECT_THAT(refusal(arch + "expert_group_count=int:3"), HasSubstr("qwen3moe.expert_group_count"));
  EXPECT_THAT(refusal(arch + "expert_group_used_count=int:2"), HasSubstr("qwen3moe.expert_group_used_count is 2"));
  EXPECT_THAT(refusal(arch + "expert_gating_func=int:7"), HasSubstr("qwen3moe.expert_gating_func is 7"));
  EXPECT_THAT(refusal(arch + "expert_weights_scale=float:0"), HasSubstr("qwen3moe.expert_weights_scale is 0"));
  EXPECT_THAT(refusal(arch + "expert_count=str:8"), HasSubstr("qwen3moe.expert_count"));
  EXPECT_THAT(refusal(arch + "expert_cuont=int:8"), HasSubstr("qwen3moe.expert_cuont"));
  EXPECT_EQ(refusal(arch + "expert_used_count=int:3"), "accepted");
}

}  // namespace
}  // namespace consonant
