// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.hpp"

namespace consonant {
namespace {

TEST(DeviceName, IsAKindAndForCardsANumber) {
  const auto is = [](const char* text, DeviceKind kind, int index) {
    const DeviceName found = parse_device_name(text);
    return found.kind == kind && found.index == index;
  };
  EXPECT_TRUE(is("cpu", DeviceKind::cpu, 0));
  EXPECT_TRUE(is("reference", DeviceKind::reference, 0));
  EXPECT_TRUE(is("cuda", DeviceKind::cuda, 0));
  EXPECT_TRUE(is("cuda:7", DeviceKind::cuda, 7));
  EXPECT_TRUE(is("hip:0", DeviceKind::hip, 0));
  EXPECT_TRUE(is("emu64", DeviceKind::emu64, 0));
  for (const char* wrong : {"", "auto", "gpu", "CUDA", "cuda:", "cuda:x", "cuda:-1", "cuda:1 ", "cuda:99999999999",
                            "emu32:0", "cpu:0", "cuda1", ":1"})
    EXPECT_THROW(parse_device_name(wrong), Error) << wrong;
}

TEST(Backends, EmulatorsArePartOfTheProgram) {
  for (const DeviceKind kind : {DeviceKind::emu32, DeviceKind::emu64}) {
    const Backend& backend = find_backend(kind);
    EXPECT_EQ(backend.kind, kind);
    EXPECT_EQ(backend.count(), 1);
    EXPECT_FALSE(backend.kernels().empty());
    const std::unique_ptr<Accelerator> device = backend.open(0);
    EXPECT_EQ(device->info().kind, kind);
    EXPECT_EQ(device->limits().lanes, kind == DeviceKind::emu32 ? 32 : 64);
    EXPECT_THROW(backend.open(1), Error);
  }
}

TEST(Backends, OfTheProcessorThereAreNone) {
  EXPECT_THROW(find_backend(DeviceKind::cpu), Error);
  EXPECT_THROW(find_backend(DeviceKind::reference), Error);
}

TEST(Backends, SayWhereAPlugInWasLookedFor) {
  const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  for (const DeviceKind kind : {DeviceKind::cuda, DeviceKind::hip}) {
    const std::string file = "libconsonant_" + std::string(name(kind)) + ".so";
    if (exists(folder / file)) continue;  // this build has it
    try {
      find_backend(kind);
      ADD_FAILURE() << "found " << file;
    } catch (const Error& error) {
      EXPECT_EQ(error.exit(), Exit::usage);
      EXPECT_THAT(error.what(), testing::HasSubstr((folder / file).string()));
      EXPECT_THAT(error.what(), testing::HasSubstr("lib/consonant/" + file));
    }
  }
}

}  // namespace
}  // namespace consonant
