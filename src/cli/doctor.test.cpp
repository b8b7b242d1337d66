// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/run.hpp"
#include "cli/world.hpp"

namespace consonant {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

class DoctorCommand : public testing::Test {
 protected:
  DoctorCommand() {
    placement.info.path = "m", placement.info.device = "cuda:0 (a card)", placement.info.kv = "f16";
    placement.info.context = 200;
    placement.ops = {{"linear", 7}, {"add", 2}};
    placement.weight_bytes = 1000, placement.cache_bytes = 2000, placement.arena_bytes = 50;
    placement.needed_bytes = 3050, placement.available_bytes = 5000;
  }

  int run(const std::vector<std::string>& arguments) {
    const std::filesystem::path out =
        std::filesystem::temp_directory_path() / ("consonant-doctor-" + std::to_string(getpid()));
    const int fd = open(out.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
    World world{Output(fd)};
    world.speech.holds_speech = [](const std::string& path) { return path == "speech"; };
    world.plan = [&](const std::string&, const EngineOptions& options) {
      asked = options.device;
      return placement;
    };
    world.speech.plan = [&](const std::string&, const EngineOptions&) {
      asked = "speech";
      return placement;
    };
    world.accelerators = [&] { return backends; };
    const int code = consonant::run(arguments, world);
    close(fd);
    std::ifstream stream(out, std::ios::binary);
    text.assign(std::istreambuf_iterator<char>(stream), {});
    std::filesystem::remove(out);
    return code;
  }

  Placement placement;
  std::vector<BackendEntry> backends;
  std::string text, asked;
};

TEST_F(DoctorCommand, SaysWhatAModelRunsAndNeeds) {
  EXPECT_EQ(run({"doctor"}), 0);
  EXPECT_THAT(text, HasSubstr("cpu"));
  EXPECT_EQ(run({"doctor", "-m", "m", "--device", "cuda"}), 0);
  EXPECT_EQ(asked, "cuda");
  EXPECT_THAT(text, HasSubstr("linear x7"));
  EXPECT_EQ(run({"doctor", "-m", "m", "--json"}), 0);
  const Json model = Json::parse(text).at("model");
  EXPECT_EQ(model.at("needed_bytes"), 1000 + 2000 + 50);
  EXPECT_EQ(model.at("available_bytes"), 5000);
  EXPECT_EQ(model.at("fits"), true);
  EXPECT_EQ(run({"doctor", "-m", "speech"}), 0);
  EXPECT_EQ(asked, "speech");
}

TEST_F(DoctorCommand, WhatDoesNotFitIsEight) {
  placement.available_bytes = 3049;
  EXPECT_EQ(run({"doctor", "-m", "m"}), 8);
  EXPECT_THAT(text, HasSubstr("NOT ENOUGH"));
  EXPECT_EQ(run({"doctor", "-m", "m", "--json"}), 8);
  EXPECT_EQ(Json::parse(text).at("model").at("fits"), false);
  placement.available_bytes = -1;  // nothing says
  EXPECT_EQ(run({"doctor", "-m", "m"}), 0);
}

TEST_F(DoctorCommand, ARefusedModelIsFourWithTheList) {
  placement.refusals = {"blk.0/rope: no kernel", "blk.1/rope: no kernel"};
  EXPECT_EQ(run({"doctor", "-m", "m"}), 4);
  EXPECT_THAT(text, HasSubstr("blk.0/rope"));
  EXPECT_THAT(text, HasSubstr("blk.1/rope"));
  EXPECT_EQ(run({"doctor", "-m", "m", "--json"}), 4);
  EXPECT_EQ(Json::parse(text).at("model").at("not_placed").size(), 2u);
}

TEST_F(DoctorCommand, ListsAcceleratorsAndWhyThereAreNone) {
  DeviceEntry card{"cuda:0", "a card", "sm_90", "driver 13", "", 1000000000, 900000000, false},
      broken{"cuda:1", "", "", "", "it is on fire", 0, 0, false};
  backends = {{"cuda", "/opt/libconsonant_cuda.so", "", {card, broken}}, {"hip", "", "there is no plug-in", {}}};
  EXPECT_EQ(run({"doctor"}), 0);
  for (const char* part : {"cuda:0", "a card, sm_90, driver 13", "900.0 MB of 1000.0 MB free", "it is on fire",
                           "/opt/libconsonant_cuda.so", "there is no plug-in"})
    EXPECT_THAT(text, HasSubstr(part));
  EXPECT_EQ(run({"doctor", "--json"}), 0);
  const Json json = Json::parse(text);
  EXPECT_EQ(json.at("devices").at(0).at("name"), "cpu");
  EXPECT_EQ(json.at("devices").at(2), (Json{{"name", "cuda:0"},
                                            {"model", "a card"},
                                            {"target", "sm_90"},
                                            {"driver", "driver 13"},
                                            {"total_bytes", 1000000000},
                                            {"free_bytes", 900000000},
                                            {"unified", false}}));
  EXPECT_EQ(json.at("devices").at(3).at("reason"), "it is on fire");
  EXPECT_EQ(json.at("backends").at(1), (Json{{"name", "hip"}, {"plugin", nullptr}, {"reason", "there is no plug-in"}}));
}

TEST(Accelerators, AreLookedForHere) {
  const auto backends = list_accelerators();
  ASSERT_EQ(backends.size(), 2u);
  EXPECT_EQ(backends[0].name, "cuda");
  EXPECT_EQ(backends[1].name, "hip");
  for (const BackendEntry& backend : backends) EXPECT_EQ(backend.reason.empty(), !backend.devices.empty());
}

}  // namespace
}  // namespace consonant
