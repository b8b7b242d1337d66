// SPDX-License-Identifier: Apache-2.0
// What `--device auto` takes, with an emulated device in the place of a card.
#include "engine/auto_device.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/emu/faults.hpp"
#include "tests/golden.hpp"

namespace consonant {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

// The emulator as a family of `count` devices, of which those below `broken` can't be opened.
template <int devices, int broken>
const Backend& family() {
  static const Backend backend = {find_backend(DeviceKind::emu32).version, DeviceKind::emu32, [] { return devices; },
                                  [](int index) {
                                    if (index < broken) throw_error(Exit::device, "device {} is on fire", index);
                                    return find_backend(DeviceKind::emu32).open(0);
                                  },
                                  find_backend(DeviceKind::emu32).kernels};
  return backend;
}

const Backend& absent(DeviceKind kind) { throw_error(Exit::usage, "no plug-in of {}", name(kind)); }

TEST(AutoDevice, IsTheFirstThatCanBeOpened) {
  const AutoDevice cuda = choose_device([](DeviceKind) -> const Backend& { return family<2, 0>(); });
  EXPECT_TRUE(cuda.target.accelerator);
  EXPECT_TRUE(cuda.passed_over.empty());

  const AutoDevice second = choose_device([](DeviceKind) -> const Backend& { return family<2, 1>(); });
  EXPECT_TRUE(second.target.accelerator);
  EXPECT_THAT(second.passed_over, ElementsAre("cuda:0: device 0 is on fire"));

  const AutoDevice hip = choose_device(
      [](DeviceKind kind) -> const Backend& { return kind == DeviceKind::cuda ? absent(kind) : family<1, 0>(); });
  EXPECT_TRUE(hip.target.accelerator);
  EXPECT_THAT(hip.passed_over, ElementsAre("cuda: no plug-in of cuda"));
}

TEST(AutoDevice, IsTheProcessorWhereThereIsNoOther) {
  const AutoDevice none = choose_device(absent);
  EXPECT_EQ(none.target.kind, DeviceKind::cpu);
  EXPECT_THAT(none.passed_over, ElementsAre("cuda: no plug-in of cuda", "hip: no plug-in of hip"));
  const AutoDevice empty = choose_device([](DeviceKind) -> const Backend& { return family<0, 0>(); });
  EXPECT_EQ(empty.target.kind, DeviceKind::cpu);
  EXPECT_THAT(empty.passed_over, ElementsAre(HasSubstr("cuda: there is no device"), HasSubstr("hip: there is no")));
  const AutoDevice broken = choose_device([](DeviceKind) -> const Backend& { return family<1, 1>(); });
  EXPECT_EQ(broken.target.kind, DeviceKind::cpu);
  EXPECT_THAT(broken.passed_over, ElementsAre(StartsWith("cuda:0: "), StartsWith("hip:0: ")));
}

TEST(AutoDevice, IsNeverAnEmulatedOne) {
  const DeviceKind kind = choose_device().target.kind;
  EXPECT_TRUE(kind == DeviceKind::cpu || kind == DeviceKind::cuda || kind == DeviceKind::hip) << name(kind);
}

std::shared_ptr<LanguageEngine> load_on_emulator(const Target& target) {
  const std::string path = llm_data + "models/llama/model-f32.gguf";
  return load_chosen({target, {"cuda: no plug-in"}},
                     [&](const Target& chosen, const std::vector<std::string>& passed_over) {
                       EngineOptions options;
                       options.context = 64;
                       return std::make_shared<LanguageEngine>(path, options, chosen, passed_over);
                     });
}

TEST(AutoDevice, FallsBackToTheProcessorAndSaysWhy) {
  const auto on_device = load_on_emulator(open_target("emu32"));
  EXPECT_THAT(on_device->info().device, StartsWith("emu32"));
  EXPECT_THAT(on_device->info().passed_over, ElementsAre("cuda: no plug-in"));

  Target incomplete = open_target("emu32");
  std::vector<GpuKernel> kernels(incomplete.kernels.begin(), incomplete.kernels.end());
  std::erase_if(kernels, [](const GpuKernel& kernel) { return kernel.op == Op::attend; });
  incomplete.kernels = kernels;
  testing::internal::CaptureStderr();
  const auto refused = load_on_emulator(incomplete);
  std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(refused->info().device, "cpu");
  ASSERT_EQ(refused->info().passed_over.size(), 2u);
  EXPECT_THAT(refused->info().passed_over[1], HasSubstr("no kernel for:"));
  EXPECT_THAT(said, HasSubstr("warning: the model runs on the CPU, not on emu32"));
  EXPECT_THAT(said, HasSubstr("attend"));

  Target small = open_target("emu32");
  emulated(*small.accelerator).set_total_bytes(100000);
  testing::internal::CaptureStderr();
  EXPECT_EQ(load_on_emulator(small)->info().device, "cpu");
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("are available"));
}

TEST(AutoDevice, HidesNoOtherFailure) {
  for (const Exit exit : {Exit::input, Exit::stalled, Exit::usage, Exit::failed}) {
    int loads = 0;
    const auto load = [&](const Target&, const std::vector<std::string>&) -> int {
      ++loads;
      throw_error(exit, "no");
    };
    EXPECT_THROW(load_chosen({open_target("emu32"), {}}, load), Error);
    EXPECT_EQ(loads, 1);
  }
}

TEST(AutoDevice, ALongListIsCut) {
  EXPECT_EQ(shortened("one\ntwo"), "one\ntwo");
  EXPECT_EQ(shortened("1\n2\n3\n4\n5\n6"), "1\n2\n3\n4\n  ...");
}

}  // namespace
}  // namespace consonant
