// SPDX-License-Identifier: Apache-2.0
// What is said to be needed before a model is loaded is what it takes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/emu/faults.hpp"
#include "engine/model_setup.hpp"
#include "engine/placement.hpp"
#include "engine/speech_engine.hpp"
#include "tests/golden.hpp"
#include "tests/whisper_golden.hpp"

namespace consonant {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

std::string path_of(const std::string& model) { return llm_data + "models/" + model + "/model-f32.gguf"; }
const std::string tiny_whisper = asr_data + "tiny-random-whisper";

EngineOptions options_for(int64_t context) {
  EngineOptions options;
  options.device = "emu32", options.threads = 2, options.context = context;
  return options;
}

std::vector<int32_t> ids(size_t count) {
  const auto some = Golden(llm_data + "models/llama/golden.safetensors").ids("input_ids");
  std::vector<int32_t> all;
  for (size_t i = 0; i < count; ++i) all.push_back(some[i % some.size()]);
  return all;
}

TEST(Memory, OfALanguageModelIsCountedToTheLastStep) {
  const Placement said = plan_language(path_of("llama"), options_for(1500));
  EXPECT_THAT(said.refusals, IsEmpty());
  EXPECT_EQ(said.needed_bytes, said.weight_bytes + said.cache_bytes + said.arena_bytes);

  const auto engine = Engine::load(path_of("llama"), options_for(1500));
  EmulatedDevice& device = emulated(*language_engine(*engine).target().accelerator);
  const int64_t loaded = device.allocated_bytes();
  // Every buffer is rounded up to the device's alignment.
  EXPECT_GE(loaded, said.needed_bytes);
  EXPECT_LT(loaded - said.needed_bytes, 64 * 256);
  GenerateOptions options;
  options.ignore_eos = true, options.sampling.temperature = 1, options.sampling.repeat_penalty = 1.1f;
  for (const int penalty_window : {64, -1})
    for (const size_t length : {1, 7, 40, 600, 1400}) {
      options.max_tokens = 3, options.sampling.penalty_window = penalty_window;
      engine->session()->generate(ids(length), options);
    }
  EXPECT_EQ(device.allocated_bytes(), loaded);
}

TEST(Memory, ThatIsJustEnoughIsEnoughAndLessIsRefused) {
  const Placement said = plan_language(path_of("llama"), options_for(256));
  for (const bool enough : {true, false}) {
    Target target = open_target("emu32");
    emulated(*target.accelerator).set_total_bytes(said.needed_bytes + (enough ? 64 * 256 : -1));
    const auto load = [&] { return std::make_shared<LanguageEngine>(path_of("llama"), options_for(256), target); };
    if (enough) {
      load();
      continue;
    }
    try {
      load();
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.exit(), Exit::memory);
      EXPECT_THAT(error.what(), HasSubstr("for weights, cache and a step on "));
    }
    EXPECT_EQ(emulated(*target.accelerator).allocated_bytes(), 0);  // nothing was begun
  }
}

TEST(Memory, OfASpeechModelIsCountedToo) {
  const Placement said = plan_speech(tiny_whisper, options_for(0));
  EXPECT_THAT(said.refusals, IsEmpty());
  const LoadedWhisper tiny(tiny_whisper, speech_runner_options(options_for(0), open_target("emu32")));
  WhisperRunner& runner = *tiny.runner;
  EmulatedDevice& device = emulated(*runner.device().accelerator);
  const int64_t loaded = device.allocated_bytes();
  EXPECT_GE(loaded, said.needed_bytes);
  EXPECT_LT(loaded - said.needed_bytes, 64 * 256);
  float peak = -1e30f;
  const int window = runner.encode(std::vector<float>(static_cast<size_t>(runner.window_samples() + 2 * 200)), peak);
  const int text = runner.open(window);
  const std::vector<int32_t> prompt = {1, 2, 3}, next = {4};
  for (const auto& tokens : {prompt, next, next, next}) {
    const WindowModel::Piece piece{text, tokens, 1};
    runner.evaluate({&piece, 1});
  }
  runner.align(window, prompt, 500);
  EXPECT_EQ(device.allocated_bytes(), loaded);
}

// With no --context the cache gets what is free beside the weights and the largest step.
TEST(Memory, ThatIsShortMakesAShortContext) {
  const Placement one = plan_language(path_of("llama"), options_for(64)),
                  two = plan_language(path_of("llama"), options_for(128));
  Target target = open_target("emu32");
  const int64_t bytes = two.needed_bytes + two.needed_bytes / 8;
  emulated(*target.accelerator).set_total_bytes(bytes);
  const LanguageEngine engine(path_of("llama"), options_for(0), target);
  EXPECT_GE(engine.info().context, 64);
  EXPECT_LT(engine.info().context, 512);
  EXPECT_GT(one.needed_bytes, 0);
}

TEST(Memory, PlansOfTheProcessorAndOfTheReferenceAreMadeToo) {
  for (const char* name : {"cpu", "reference"}) {
    EngineOptions options = options_for(100);
    options.device = name;
    const Placement said = plan_language(path_of("qwen3"), options);
    EXPECT_THAT(said.refusals, IsEmpty());
    EXPECT_GT(said.cache_bytes, 0);
    EXPECT_GT(said.arena_bytes, 0);
    EXPECT_EQ(said.info.device, name);
    EXPECT_EQ(said.info.context, 100);
    EXPECT_FALSE(said.ops.empty());
  }
}

}  // namespace
}  // namespace consonant
