// SPDX-License-Identifier: Apache-2.0
// The three promises on an accelerator, with whole models on the emulated ones: a model is placed whole or refused;
// what a device computes is proven against the CPU, and a kernel that is wrong is found by name; a device that stops is
// an error that says where.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "base/error.hpp"
#include "consonant/verify.hpp"
#include "device/emu/faults.hpp"
#include "engine/model_setup.hpp"
#include "tests/golden.hpp"

namespace consonant {
namespace {

using testing::HasSubstr;

std::string path_of(const std::string& model) { return llm_data + "models/" + model + "/model-f32.gguf"; }

EngineOptions options_for(const std::string& device) {
  EngineOptions options;
  options.device = device, options.precision = "f32", options.threads = 2, options.context = 128;
  return options;
}

std::shared_ptr<LanguageEngine> engine_on(const std::string& model, Target target) {
  return std::make_shared<LanguageEngine>(path_of(model), options_for("emu32"), std::move(target));
}

std::vector<int32_t> some_ids(const std::string& model, size_t n = 20) {
  const auto golden = Golden(llm_data + "models/" + model + "/golden.safetensors").ids("input_ids");
  std::vector<int32_t> ids;
  for (size_t i = 0; i < n; ++i) ids.push_back(golden[i % golden.size()]);
  return ids;
}

// Of a step that is never captured: wrong kernels wait for the right one, which captured work can't.
constexpr size_t uncaptured = 65;

// ---- residency

TEST(Residency, AModelIsRefusedWithTheListWhereAKernelIsMissing) {
  for (const char* model : {"llama", "qwen2", "qwen3", "gemma3"})
    for (const Op missing : {Op::attend, Op::linear, Op::linear_set, Op::rope_append, Op::sample}) {
      Target target = open_target("emu32");
      std::vector<GpuKernel> kernels(target.kernels.begin(), target.kernels.end());
      std::erase_if(kernels, [&](const GpuKernel& kernel) { return kernel.op == missing; });
      target.kernels = kernels;
      try {
        engine_on(model, target);
        ADD_FAILURE() << model << " runs without " << op_name(id(missing));
      } catch (const Error& error) {
        EXPECT_EQ(error.exit(), Exit::device);
        EXPECT_THAT(error.what(), HasSubstr("emu32 can't run this model; no kernel for:"));
        EXPECT_THAT(error.what(), HasSubstr(fmt::format("{} ", op_name(id(missing)))));
        if (missing != Op::sample) {
          EXPECT_THAT(error.what(), HasSubstr("blk.1/"));  // the whole list
        }
      }
    }
}

TEST(Residency, MemoryIsComparedBeforeLoading) {
  Target target = open_target("emu32");
  emulated(*target.accelerator).set_total_bytes(100000);
  try {
    engine_on("llama", target);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit(), Exit::memory);
    EXPECT_THAT(error.what(), HasSubstr("but 0 MB are available"));
  }
}

// ---- agreement

// Kernels by op, each with a launch that computes a little wrongly: the switch is in the list that the test hands over.
using Launch = void (*)(const Args&, Accelerator&, std::byte*);
std::array<Launch, static_cast<size_t>(Op::count)> right;

void disturb(const View& y) {
  if (y.type == DType::f32) {
    for (int64_t r = 0; r < y.rows(); ++r)
      for (int64_t i = 0; i < y.last(); ++i) y.row<float>(r)[i] *= 1.01f;
  } else {  // a cache
    for (int64_t i = 0; i < extent(y) / 4; ++i) y.as<float>()[i] *= 1.01f;
  }
}

template <Op op, size_t output>
void wrong(const Args& args, Accelerator& device, std::byte* scratch) {
  right[static_cast<size_t>(op)](args, device, scratch);
  device.wait();
  disturb(args.out[output]);
}

template <Op op, size_t output = 0>
void expect_found(const char* source) {
  SCOPED_TRACE(fmt::format("output {} of {}", output, op_name(id(op))));
  Target target = open_target("emu32");
  std::vector<GpuKernel> kernels(target.kernels.begin(), target.kernels.end());
  for (GpuKernel& kernel : kernels)
    if (kernel.op == op) right[static_cast<size_t>(op)] = kernel.launch, kernel.launch = wrong<op, output>;
  target.kernels = kernels;
  const auto device = engine_on("llama", target);
  const auto reference = Engine::load(path_of("llama"), options_for("cpu"));
  const Agreement found = prove(*reference, *device, some_ids("llama", uncaptured));
  EXPECT_FALSE(found.first_divergent_node.empty());
  EXPECT_THAT(found.source, HasSubstr(source));
  for (const NodeAgreement& node : found.nodes)
    EXPECT_EQ(node.within_tolerance, node.op != op_name(id(op))) << node.name;
}

TEST(Bisect, FindsAKernelThatIsWrong) {
  expect_found<Op::rows>("llama.cpp:");
  expect_found<Op::linear>("llama.cpp:");
  expect_found<Op::linear_set>("llama.cpp:");
  expect_found<Op::rope_angles>("llama.cpp:");
  expect_found<Op::rope_append>("llama.cpp:");
  expect_found<Op::rope_append, 1>("llama.cpp:");
  expect_found<Op::rope_append, 2>("llama.cpp:");
  expect_found<Op::attend>("llama.cpp:");
}

TEST(Prove, EveryModelAgrees) {
  for (const char* model : {"llama", "llama_rope", "qwen2", "qwen3", "gemma3"})
    for (const char* name : {"emu32", "emu64"}) {
      SCOPED_TRACE(std::string(model) + " on " + name);
      const auto reference = Engine::load(path_of(model), options_for("cpu")),
                 device = Engine::load(path_of(model), options_for(name));
      const Agreement found = prove(*reference, *device, some_ids(model));
      EXPECT_TRUE(found.agree);
      EXPECT_TRUE(found.positive_control);
      EXPECT_GE(found.worst_cosine, 0.999999);
      EXPECT_EQ(found.disagreements, 0);
      EXPECT_EQ(found.decisions, 20);
      EXPECT_TRUE(found.not_compared.empty());
    }
}

TEST(Prove, ACacheInQ8_0Agrees) {
  EngineOptions options = options_for("cpu"), on_device = options_for("emu32");
  options.kv = on_device.kv = "q8_0";
  const auto reference = Engine::load(path_of("gemma3"), options), device = Engine::load(path_of("gemma3"), on_device);
  const Agreement found = prove(*reference, *device, some_ids("gemma3"));
  EXPECT_TRUE(found.agree);
  EXPECT_EQ(found.first_divergent_node, "");
  EXPECT_TRUE(found.not_compared.empty());
}

TEST(Bisect, FindsAWrongAppendToAQ8_0Cache) {
  Target target = open_target("emu32");
  std::vector<GpuKernel> kernels(target.kernels.begin(), target.kernels.end());
  for (GpuKernel& kernel : kernels) {
    if (kernel.op != Op::rope_append) continue;
    right[static_cast<size_t>(Op::rope_append)] = kernel.launch;
    kernel.launch = [](const Args& args, Accelerator& device, std::byte* scratch) {
      right[static_cast<size_t>(Op::rope_append)](args, device, scratch);
      device.wait();
      const View& values = args.out[2];
      auto* numbers = reinterpret_cast<int8_t*>(values.data);
      const int64_t page = kv_page_bytes(DType::q8_0, values.shape[1], values.shape[3]);
      for (int64_t p = 0; p < values.shape[0]; ++p)
        for (int64_t i = 0; i < page / 34 * 32; ++i)
          numbers[p * page + i] = static_cast<int8_t>(numbers[p * page + i] / 2);
    };
  }
  target.kernels = kernels;
  EngineOptions options = options_for("cpu");
  options.kv = "q8_0";
  const auto reference = Engine::load(path_of("gemma3"), options);
  const auto device = std::make_shared<LanguageEngine>(path_of("gemma3"), options, target);
  const Agreement found = prove(*reference, *device, some_ids("gemma3", uncaptured));
  EXPECT_EQ(found.first_divergent_node, "blk.0/rope");
  for (const NodeAgreement& node : found.nodes) EXPECT_EQ(node.within_tolerance, node.op != "rope_append") << node.name;
}

// ---- launches

TEST(Launches, ATokenIsOneWhateverTheContextAndTheLayers) {
  for (const char* model : {"llama", "gemma3"}) {
    const auto engine = Engine::load(path_of(model), options_for("emu32"));
    const Accelerator& device = *language_engine(*engine).target().accelerator;
    const auto session = engine->session();
    GenerateOptions options;
    options.ignore_eos = true;
    std::vector<int32_t> ids = some_ids(model);
    options.max_tokens = 8;
    ids = session->generate(ids, options).tokens;  // what is captured, is by now
    const int64_t launches = device.launches(), waits = device.waits();
    std::vector<int32_t> all = some_ids(model);
    all.insert(all.end(), ids.begin(), ids.end());
    options.max_tokens = 40;
    EXPECT_EQ(session->generate(all, options).tokens.size(), 40u);
    EXPECT_EQ(device.launches() - launches, 40) << model;
    EXPECT_EQ(device.waits() - waits, 40) << model;
  }
}

// ---- termination

TEST(Watchdog, AStalledDeviceIsAnErrorThatNamesTheNode) {
  const auto engine = Engine::load(path_of("llama"), options_for("emu32"));
  Accelerator& device = *language_engine(*engine).target().accelerator;
  const auto session = engine->session();
  GenerateOptions options;
  options.ignore_eos = true, options.max_tokens = 4;
  session->generate(some_ids("llama"), options);
  emulated(device).stall_at(9);
  options.deadline = 0.2;
  for (int again = 0; again < 2; ++again) {  // and every later call says the same at once
    const auto start = Clock::now();
    try {
      session->generate(some_ids("qwen2"), options);
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.exit(), Exit::stalled);
      EXPECT_THAT(error.what(), HasSubstr("blk."));
      EXPECT_THAT(error.what(), HasSubstr("llama.cpp:"));
      EXPECT_THAT(error.what(), HasSubstr("f32[token"));
    }
    EXPECT_LT(seconds_since(start), 5);
  }
}

// What a card can do too: a node that takes longer than the deadline, by the device's own clock.
TEST(Watchdog, ANodeThatTakesLongerThanTheDeadlineIsNamedOneThatTakesLessChangesNothing) {
  GenerateOptions options;
  options.ignore_eos = true, options.max_tokens = 4;
  const std::vector<int32_t> wanted =
      Engine::load(path_of("llama"), options_for("emu32"))->session()->generate(some_ids("llama"), options).tokens;
  EngineOptions spinning = options_for("emu32");
  spinning.spin = "blk.1/linear(attn_q)=0.05";
  EXPECT_EQ(Engine::load(path_of("llama"), spinning)->session()->generate(some_ids("llama"), options).tokens, wanted);
  spinning.spin = "blk.1/linear(attn_q)=20";
  const auto engine = Engine::load(path_of("llama"), spinning);
  options.deadline = 0.2;
  const auto start = Clock::now();
  try {
    engine->session()->generate(some_ids("llama"), options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit(), Exit::stalled);
    EXPECT_THAT(error.what(), HasSubstr("it had reached blk.1/linear(attn_q) ("));
    EXPECT_THAT(error.what(), HasSubstr("f32[token"));
    EXPECT_THAT(error.what(), HasSubstr("in a step of 20 tokens"));
    EXPECT_THAT(error.what(), HasSubstr("launches queued since the last wait: "));
  }
  EXPECT_LT(seconds_since(start), 5);
}

TEST(Watchdog, ASpinThatCanNotBeIsRefused) {
  for (const char* spin : {"blk.1/linear(attn_q)", "blk.1/linear(attn_q)=0", "blk.1/linear(attn_q)=-1", "=2",
                           "blk.1/linear(attn_q)=1x", "blk.77/linear(attn_q)=2"}) {
    EngineOptions options = options_for("emu32");
    options.spin = spin;
    try {
      Engine::load(path_of("llama"), options);
      FAIL() << spin;
    } catch (const Error& error) {
      EXPECT_EQ(error.exit(), Exit::usage) << spin;
    }
  }
}

TEST(Soak, GenerationsOfChangingLengthsEndWithTheMemoryTheyBeganWith) {
  const auto engine = Engine::load(path_of("llama"), options_for("emu32"));
  Accelerator& device = *language_engine(*engine).target().accelerator;
  const auto session = engine->session();
  GenerateOptions options;
  options.ignore_eos = true;
  const auto once = [&](int length) {
    session->reset();
    options.max_tokens = length;
    session->generate(some_ids("llama"), options);
  };
  for (const int length : {1, 90}) once(length);  // the programs of all sizes
  const int64_t bytes = emulated(device).allocated_bytes(), pinned = emulated(device).pinned_bytes();
  for (int i = 0; i < 20; ++i) once(1 + i * 7 % 60);
  EXPECT_EQ(emulated(device).allocated_bytes(), bytes);
  EXPECT_EQ(emulated(device).pinned_bytes(), pinned);
}

}  // namespace
}  // namespace consonant
