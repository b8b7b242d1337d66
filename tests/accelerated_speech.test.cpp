// SPDX-License-Identifier: Apache-2.0
// A speech model on an emulated accelerator is proven against the CPU, and a kernel that is wrong is found by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <filesystem>

#include "engine/model_setup.hpp"
#include "engine/recorded_speech.hpp"
#include "tests/whisper_golden.hpp"

namespace consonant {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

const std::string tiny = asr_data + "tiny-random-whisper";

RunnerOptions on(Target target) {
  RunnerOptions options = exact();
  options.device = std::move(target);
  return options;
}

// A window of something that isn't silence.
std::vector<float> sound(const WhisperRunner& runner) {
  std::vector<float> samples(static_cast<size_t>(runner.window_samples() + 2 * runner.margin_samples()));
  for (size_t i = 0; i < samples.size(); ++i)
    samples[i] = 0.3f * std::sin(0.05f * static_cast<float>(i)) + 0.1f * std::sin(0.31f * static_cast<float>(i));
  return samples;
}

Agreement prove_on(const Target& target) {
  LoadedWhisper reference(tiny, exact()), device(tiny, on(target));
  Agreement result;
  prove_window(result, *reference.runner, *device.runner, sound(*reference.runner), {1, 50, 77, 130, 9, 300}, true);
  return result;
}

TEST(ProveSpeech, ItAgrees) {
  for (const char* name : {"emu32", "emu64"}) {
    const Agreement found = prove_on(open_target(name));
    EXPECT_TRUE(found.agree) << name;
    EXPECT_TRUE(found.positive_control);
    EXPECT_EQ(found.decisions, 6);
    EXPECT_THAT(found.not_compared, IsEmpty());
    EXPECT_EQ(found.first_divergent_node, "");
  }
}

using Launch = void (*)(const Args&, Accelerator&, std::byte*);
std::array<Launch, static_cast<size_t>(Op::count)> right;

template <Op op>
void wrong(const Args& args, Accelerator& device, std::byte* scratch) {
  right[static_cast<size_t>(op)](args, device, scratch);
  const int64_t half = extent(args.out[0]) / 2;
  device.copy(args.out[0].data + half, args.out[0].data, half);  // queued: the encoder's step is captured
}

template <Op op>
void expect_found(const char* first_node) {
  SCOPED_TRACE(op_name(id(op)));
  Target target = open_target("emu32");
  std::vector<GpuKernel> kernels(target.kernels.begin(), target.kernels.end());
  for (GpuKernel& kernel : kernels)
    if (kernel.op == op) right[static_cast<size_t>(op)] = kernel.launch, kernel.launch = wrong<op>;
  target.kernels = kernels;
  const Agreement found = prove_on(target);
  EXPECT_FALSE(found.agree);
  EXPECT_THAT(found.first_divergent_node, HasSubstr(first_node));
  EXPECT_THAT(found.source, HasSubstr("whisper.cpp:"));
  for (const NodeAgreement& node : found.nodes)
    EXPECT_EQ(node.within_tolerance, node.op != op_name(id(op))) << node.name;
}

// What a replay needs is in the recording: another device hears the same window and is asked for the same nodes.
TEST(ReplaySpeech, HearsWhatWasRecorded) {
  const std::filesystem::path folder = testing::TempDir() + "consonant-replay-" + std::to_string(getpid());
  std::filesystem::create_directories(folder);
  const std::string first = folder / "cpu.safetensors", second = folder / "emu32.safetensors";
  const std::vector<int32_t> tokens = {1, 50, 77, 130, 9, 300};
  const std::vector<std::string> taps = {"enc/layer_norm(*", "dec/blk.1/layer_norm(*"};
  LoadedWhisper reference(tiny, exact()), device(tiny, on(open_target("emu32")));
  ModelInfo info;
  info.precision = "f32";
  const auto write = [&](WhisperRunner& runner, AudioInput& audio, const std::vector<std::string>& watched,
                         const std::vector<int32_t>& said, const std::string& path) {
    const FirstWindow window = first_window(audio, runner);
    const Watch watch(runner, watched);
    RecordedRun run = hear_once(runner, window.samples, said);
    run.sound = window.sound;
    write_recording(path, run, runner.model().vocabulary, info, "", "");
    return window.samples;
  };
  for (const size_t length : {size_t{0}, size_t{5000}, size_t{100000}}) {
    std::vector<float> samples = sound(*reference.runner);
    samples.resize(length, 0.25f);
    const auto heard = write(*reference.runner, *audio_of(samples), taps, tokens, first);
    const std::vector<std::string> names = recorded_taps(first, device.runner->all_taps());
    EXPECT_EQ(names.size(), 4u);
    EXPECT_EQ(write(*device.runner, *recorded_sound(first), names, recorded_tokens(first), second), heard) << length;
    const Comparison found = compare(first, second);
    EXPECT_TRUE(found.agree) << length;
    EXPECT_EQ(found.nodes.size(), 1 + names.size());
    EXPECT_THAT(found.not_compared, IsEmpty());
  }
  std::filesystem::remove_all(folder);
}

TEST(BisectSpeech, FindsAKernelThatIsWrong) {
  expect_found<Op::layer_norm>("enc/");
  expect_found<Op::log_mel>("log_mel");
  expect_found<Op::gelu_erf>("gelu_erf");
  expect_found<Op::attend>("attend");
}

}  // namespace
}  // namespace consonant
