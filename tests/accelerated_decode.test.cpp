// SPDX-License-Identifier: Apache-2.0
// Tokens that an emulated accelerator draws are those that the sampler picks from its logits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.hpp"
#include "device/emu/faults.hpp"
#include "engine/draw_inputs.hpp"
#include "engine/model_setup.hpp"
#include "tests/golden.hpp"

namespace consonant {
namespace {

using testing::HasSubstr;

std::string path_of(const std::string& model) { return llm_data + "models/" + model + "/model-f32.gguf"; }

EngineOptions options_for(const std::string& device, int64_t context = 128) {
  EngineOptions options;
  options.device = device, options.threads = 2, options.context = context;
  return options;
}

std::vector<int32_t> some_ids(const std::string& model, size_t count = 20) {
  const auto ids = Golden(llm_data + "models/" + model + "/golden.safetensors").ids("input_ids");
  std::vector<int32_t> some;
  for (size_t i = 0; i < count; ++i) some.push_back(ids[i % ids.size()]);
  return some;
}

// What a generation gives that brings the logits here and samples from them.
struct Sampled {
  std::vector<int32_t> tokens;
  std::vector<float> log_probabilities;
};
Sampled sample_here(Runner& runner, const std::vector<int32_t>& prompt, const Sampling& sampling, int64_t count) {
  Sampler sampler(sampling);
  Sampled result;
  std::vector<int32_t> all = prompt, next = prompt;
  const int sequence = runner.open();
  while (count-- > 0) {
    const Piece piece{sequence, next, false};
    const Drawn drawn = draw_from(runner.evaluate({&piece, 1}), {&sampler, all, true});
    result.tokens.push_back(drawn.token), result.log_probabilities.push_back(drawn.log_probability);
    all.push_back(drawn.token), next = {drawn.token};
  }
  runner.close(sequence);
  return result;
}

std::vector<SamplingOptions> settings() {
  SamplingOptions greedy, plain{.temperature = 1, .seed = 5}, usual{.temperature = 0.8f, .top_k = 40, .top_p = 0.95f};
  usual.min_p = 0.05f, usual.seed = 77;
  SamplingOptions typical{.temperature = 1.3f, .typical = 0.8f, .seed = 3}, penalties = usual, window = plain;
  penalties.repeat_penalty = 1.3f, penalties.frequency_penalty = 0.2f, penalties.presence_penalty = 0.4f;
  penalties.logit_bias = {{3, 2.5f}, {5, -std::numeric_limits<float>::infinity()}};
  window.repeat_penalty = 1.1f, window.penalty_window = -1;
  return {greedy, plain, usual, typical, penalties, window};
}

Sampling same(const SamplingOptions& o) {
  return {o.temperature,      o.top_k,          o.top_p,      o.min_p, o.typical, o.repeat_penalty, o.frequency_penalty,
          o.presence_penalty, o.penalty_window, o.logit_bias, o.seed};
}

TEST(DeviceDraws, AreTheSamplersFromItsLogits) {
  for (const char* model : {"llama", "gemma3"})
    for (const char* name : {"emu32", "emu64"}) {
      const auto engine = Engine::load(path_of(model), options_for(name));
      Runner& runner = language_engine(*engine).runner();
      ASSERT_TRUE(runner.draws_on_device());
      size_t number = 0;
      for (const SamplingOptions& sampling : settings()) {
        SCOPED_TRACE(fmt::format("{} on {}, setting {}", model, name, number++));
        GenerateOptions options;
        options.ignore_eos = true, options.max_tokens = 24, options.logprobs = true, options.sampling = sampling;
        Generation made;
        {
          const auto session = engine->session();
          made = session->generate(some_ids(model), options);
        }
        const Sampled wanted = sample_here(runner, some_ids(model), same(sampling), 24);
        EXPECT_EQ(made.tokens, wanted.tokens);
        EXPECT_EQ(made.logprobs, wanted.log_probabilities);  // to the bit
      }
    }
}

TEST(DeviceDraws, OfSeveralSequencesAreThoseOfEach) {
  const auto engine = Engine::load(path_of("llama"), options_for("emu32", 1024));
  const auto runner = language_engine(*engine).make_runner(2, 3);
  const std::vector<std::vector<int32_t>> prompts = {some_ids("llama", 700), some_ids("qwen2", 1),
                                                     some_ids("gemma3", 30)};
  std::vector<Sampler> samplers, same_samplers;
  for (const auto& settings : {Sampling{.temperature = 1, .repeat_penalty = 1.2f, .seed = 1}, Sampling{},
                               Sampling{.temperature = 0.7f, .top_k = 9, .seed = 2}})
    samplers.emplace_back(settings), same_samplers.emplace_back(settings);
  std::vector<int> sequences;
  std::vector<Piece> pieces;
  std::vector<Draw> draws, same_draws;
  for (size_t i = 0; i < prompts.size(); ++i) {
    sequences.push_back(runner->open());
    pieces.push_back({sequences[i], prompts[i], false});
    draws.push_back({&samplers[i], prompts[i], true}), same_draws.push_back({&same_samplers[i], prompts[i], true});
  }
  const std::vector<Drawn> drawn = runner->evaluate_and_draw(pieces, draws);
  for (const int sequence : sequences) runner->truncate(sequence, 0);
  const auto logits = runner->evaluate(pieces);
  const auto row = static_cast<size_t>(runner->model().vocabulary);
  ASSERT_EQ(drawn.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    const Drawn wanted = draw_from(logits.subspan(i * row, row), same_draws[i]);
    EXPECT_EQ(drawn[i].token, wanted.token);
    EXPECT_EQ(drawn[i].log_probability, wanted.log_probability);
  }
}

// Of a kernel that gives a token other bits in steps of more than four, no sequence sees whom it shares a step with:
// longer pieces have steps of their own.
TEST(SharedSteps, KeepToWhatGivesASequenceTheBitsThatItHasAlone) {
  Target target = open_target("emu32");
  std::vector<GpuKernel> kernels(target.kernels.begin(), target.kernels.end());
  for (GpuKernel& kernel : kernels)
    if (kernel.op == Op::linear) kernel.same_bits_to = 4;
  target.kernels = kernels;
  LanguageEngine engine(path_of("llama"), options_for("emu32"), target);
  const auto runner = engine.make_runner(2, 5);
  std::vector<int64_t> steps;
  runner->observe([&](const PlannedNode& planned, std::span<const View> outputs) {
    if (is(*planned.node, Op::attend) && planned.node->name.find("blk.0") == 0) steps.push_back(outputs[0].shape[0]);
    return false;
  });
  const std::vector<int32_t> ids = some_ids("llama", 9);
  std::vector<Piece> pieces;
  for (const size_t length : {2, 2, 9, 3, 2}) pieces.push_back({runner->open(), std::span(ids).first(length), false});
  runner->evaluate(pieces);
  EXPECT_THAT(steps, testing::ElementsAre(4, 9, 3, 2));
}

TEST(DeviceDraws, ALogProbabilityIsGivenOnRequest) {
  const auto engine = Engine::load(path_of("llama"), options_for("emu32"));
  GenerateOptions options;
  options.ignore_eos = true, options.max_tokens = 3;
  EXPECT_TRUE(engine->session()->generate(some_ids("llama"), options).logprobs.empty());
}

TEST(DeviceDraws, ABenchmarkTimesTheKernelsOfATokenOnRequest) {
  BenchOptions options{.prompt = 3, .generate = 2};
  options.repeat = 1, options.kernels = true;
  const BenchResult result = run_bench(*Engine::load(path_of("llama"), options_for("emu32")), options);
  int64_t attends = 0;
  for (const BenchResult::Kernel& kernel : result.kernels) {
    EXPECT_GT(kernel.seconds, 0) << kernel.name;
    if (kernel.name.find("attend ") == 0) attends += kernel.count;
    EXPECT_EQ(kernel.weight_bytes > 0, kernel.name.find("linear") == 0 || kernel.name.find("rows f32[512") == 0)
        << kernel.name;
  }
  EXPECT_EQ(attends, 2) << "one a layer";
  EXPECT_THROW(run_bench(*Engine::load(path_of("llama"), options_for("cpu")), options), Error);
}

TEST(DeviceDraws, ABenchmarkCountsOneLaunchAndOneWaitAToken) {
  const auto engine = Engine::load(path_of("llama"), options_for("emu32"));
  const BenchResult result = run_bench(*engine, {.prompt = 16, .generate = 4, .repeat = 1});
  EXPECT_EQ(result.launches_per_token, 1);
  EXPECT_EQ(result.waits_per_token, 1);
}

// ---- what can't be drawn from

void (*right)(const Args&, Accelerator&, std::byte*) = nullptr;
float spoilt = 0;  // what the logit of token 7 becomes, or if it is minus infinity all of them

void spoil_and_sample(const Args& args, Accelerator& device, std::byte* scratch) {
  device.wait();
  View logits = args.in[0];
  for (int64_t r = 0; r < logits.rows(); ++r)
    if (spoilt == -INFINITY)
      std::fill_n(logits.row<float>(r), logits.last(), spoilt);
    else
      logits.row<float>(r)[7] = spoilt;
  right(args, device, scratch);
}

std::string failure_with(float value) {
  spoilt = value;
  Target target = open_target("emu32");
  std::vector<GpuKernel> kernels(target.kernels.begin(), target.kernels.end());
  for (GpuKernel& kernel : kernels)
    if (kernel.op == Op::sample) right = kernel.launch, kernel.launch = spoil_and_sample;
  target.kernels = kernels;
  const auto engine = std::make_shared<LanguageEngine>(path_of("llama"), options_for("emu32"), target);
  GenerateOptions options;
  options.max_tokens = 4, options.sampling.temperature = 1;
  try {
    engine->session()->generate(some_ids("llama"), options);
  } catch (const Error& error) {
    EXPECT_EQ(error.exit(), Exit::failed);
    return error.what();
  }
  return "it was drawn from";
}

TEST(DeviceDraws, SayWhatTheSamplerSaysOfBrokenLogits) {
  for (const float value : {NAN, INFINITY, -INFINITY}) {
    const std::string failure = failure_with(value);
    const auto vocabulary = static_cast<size_t>(Engine::load(path_of("llama"), options_for("cpu"))->info().vocabulary);
    std::vector<float> logits(vocabulary, value == -INFINITY ? value : 1.0f);
    logits[7] = value;
    try {
      Sampler(Sampling{.temperature = 1}).pick(logits, {});
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(failure, error.what());
    }
  }
}

// ---- the inputs

TEST(DrawInputs, AreRefusedWholeWhereTooManyLogitsChange) {
  constexpr int64_t vocabulary = 10000;
  const auto biased = [](int32_t count) {
    Sampling sampling{.temperature = 1, .seed = 9};
    for (int32_t id = 0; id < count; ++id) sampling.logit_bias.push_back({id, 1.0f});
    return Sampler(sampling);
  };
  const auto slots_for = [&](int32_t count) {
    Sampler sampler = biased(count), fresh = biased(count);
    const Draw draw{&sampler, {}};
    const DrawInputs inputs({&draw, 1}, vocabulary);
    EXPECT_EQ(sampler.next_number() == fresh.next_number(), !inputs.fit());  // nothing was taken
    return inputs.slots();
  };
  EXPECT_EQ(slots_for(0), 64);
  EXPECT_EQ(slots_for(64), 64);
  EXPECT_EQ(slots_for(65), 512);
  EXPECT_EQ(slots_for(4096), 4096);
  EXPECT_EQ(slots_for(4097), 0);
}

}  // namespace
}  // namespace consonant
