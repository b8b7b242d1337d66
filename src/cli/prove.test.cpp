// SPDX-License-Identifier: Apache-2.0
#include "cli/prove.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/error.hpp"
#include "cli/fake_speech.hpp"
#include "cli/run.hpp"
#include "formats/safetensors.hpp"

namespace consonant {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A speech model's recordings, with what is done with them faked.
class RecordedSpeech : public testing::Test {
 protected:
  RecordedSpeech() : folder_(std::filesystem::temp_directory_path() / ("consonant-prove-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
    HostTensor tokens = HostTensor::allocate(DType::i32, {3}), logits = HostTensor::allocate(DType::f32, {3, 1});
    const int32_t ids[] = {5, 6, 7};
    std::memcpy(tokens.mutable_bytes().data(), ids, sizeof ids);
    write_safetensors(recording(), {{"tokens", tokens}, {"logits", logits}}, {});
    HostTensor sound = HostTensor::allocate(DType::f32, {2});
    const float samples[] = {0.5f, -0.25f};
    std::memcpy(sound.mutable_bytes().data(), samples, sizeof samples);
    write_safetensors(with_sound(), {{"tokens", tokens}, {"logits", logits}, {"sound", sound}}, {});
  }
  ~RecordedSpeech() override { std::filesystem::remove_all(folder_); }

  std::string recording() const { return (folder_ / "a.safetensors").string(); }
  std::string with_sound() const { return (folder_ / "b.safetensors").string(); }

  int run(const std::vector<std::string>& arguments) {
    const std::string out = (folder_ / "stdout").string();
    const int fd = open(out.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
    World world{Output(fd)};
    world.speech = testing_cli::fake_speech(std::make_shared<testing_cli::FakeSpeech>());
    world.speech.holds_speech = [](const std::string&) { return true; };
    world.speech.prove = [&](Transcriber&, Transcriber&, AudioInput& audio, const SpeechRecordOptions& options) {
      asked = options.tokens;
      heard = audio.name();
      return agreement;
    };
    world.speech.replay = [&](Transcriber&, const std::string& recording, const std::string& path) {
      replayed = {recording, path};
    };
    testing::internal::CaptureStderr();
    const int code = consonant::run(arguments, world);
    err = testing::internal::GetCapturedStderr();
    close(fd);
    std::ifstream stream(out, std::ios::binary);
    text.assign(std::istreambuf_iterator<char>(stream), {});
    return code;
  }

  Agreement agreement;
  std::vector<int32_t> asked;
  std::string heard;
  std::vector<std::string> replayed;
  std::string text, err;

 private:
  std::filesystem::path folder_;
};

TEST_F(RecordedSpeech, BisectNamesTheFirstNode) {
  agreement.nodes = {{"enc/layer_norm(a)", "layer_norm", "layer_norm", "whisper.cpp:9", 0.5, 1e-3, 0, false}};
  agreement.first_divergent_node = "enc/layer_norm(a)";
  EXPECT_EQ(run({"verify", "bisect", recording(), "-m", "m", "--audio", "a.wav"}), int(Exit::disagree));
  EXPECT_THAT(asked, ElementsAre(5, 6, 7));
  EXPECT_THAT(text, HasSubstr("enc/layer_norm(a) (whisper.cpp:9), op layer_norm"));
  agreement = {};
  agreement.agree = true;
  EXPECT_EQ(run({"verify", "bisect", recording(), "-m", "m", "--audio", "a.wav"}), 0);
}

TEST_F(RecordedSpeech, BisectHearsTheRecordingsSoundOrTheGivenOne) {
  agreement.agree = true;
  EXPECT_EQ(run({"verify", "bisect", with_sound(), "-m", "m"}), 0);
  EXPECT_EQ(heard, with_sound());
  EXPECT_THAT(asked, ElementsAre(5, 6, 7));
  EXPECT_EQ(run({"verify", "bisect", with_sound(), "-m", "m", "--audio", "a.wav"}), 0);
  EXPECT_EQ(heard, "a.wav");
}

TEST_F(RecordedSpeech, ReplayIsTheSpeechModels) {
  EXPECT_EQ(run({"verify", "replay", with_sound(), "-m", "m", "-o", "out"}), 0);
  EXPECT_THAT(replayed, ElementsAre(with_sound(), "out"));
}

TEST_F(RecordedSpeech, BisectWantsTheSound) {
  EXPECT_EQ(run({"verify", "bisect", recording(), "-m", "m"}), int(Exit::usage));
  EXPECT_THAT(err, HasSubstr("--audio"));
  EXPECT_EQ(run({"verify", "-m", "m"}), int(Exit::usage));
  EXPECT_THAT(err, HasSubstr("--audio"));
}

}  // namespace
}  // namespace consonant
