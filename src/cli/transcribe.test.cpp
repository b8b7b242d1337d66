// SPDX-License-Identifier: Apache-2.0
#include "cli/transcribe.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/fake_speech.hpp"
#include "cli/interrupt.hpp"
#include "cli/run.hpp"

namespace consonant {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing_cli::FakeSpeech;
using Json = nlohmann::json;

class TranscribeCli : public testing::Test {
 protected:
  TranscribeCli() : folder_(fs::temp_directory_path() / ("consonant-transcribe-" + std::to_string(getpid()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_ / "in");
    setenv("XDG_CACHE_HOME", (folder_ / "cache").c_str(), 1);
    Interrupts::forget();
  }
  ~TranscribeCli() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string file(const std::string& name, const std::string& content) const {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << content;
    return path(name);
  }
  static std::string content(const std::string& name) {
    std::ifstream stream(name, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(stream), {});
  }

  // `transcribe -m m ARGUMENTS`
  int run(std::vector<std::string> arguments, const std::string& input = "", int out = -1) {
    const int out_fd = out >= 0 ? out : open(path("stdout").c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
    const int in_fd = open(file("stdin", input).c_str(), O_RDONLY);
    World world{Output(out_fd), in_fd};
    world.speech = testing_cli::fake_speech(state);
    if (microphone) world.speech.open_microphone = microphone;
    arguments.insert(arguments.begin(), {"transcribe", "-m", "m"});
    testing::internal::CaptureStderr();
    const int code = consonant::run(arguments, world);
    err = testing::internal::GetCapturedStderr();
    close(in_fd);
    close(out_fd);
    text = content(path("stdout"));
    return code;
  }

  fs::path folder_;
  std::shared_ptr<FakeSpeech> state = std::make_shared<FakeSpeech>();
  std::function<std::unique_ptr<Microphone>()> microphone;
  std::string text, err;
};

TEST_F(TranscribeCli, ARecordingBecomesTextOnStdout) {
  EXPECT_EQ(run({file("a.wav", "one\ntwo\n")}), 0);
  EXPECT_EQ(text, "one\ntwo\n");
  EXPECT_EQ(err, "");
  EXPECT_EQ(run({"-"}, "three\n"), 0);
  EXPECT_EQ(text, "three\n");
  EXPECT_EQ(run({"-", "--pcm", "8000:2:s16"}, "four\n"), 0);
  EXPECT_EQ(state->pcm, "8000:2:s16");
}

TEST_F(TranscribeCli, OptionsReachTheTranscriber) {
  const std::string weights = file("vad.safetensors", "x");
  EXPECT_EQ(run({file("a.wav", "one\n"),
                 "-l",
                 "fr",
                 "--task",
                 "translate",
                 "--prompt",
                 "Ada",
                 "--beam",
                 "3",
                 "--temp-fallback",
                 "off",
                 "--no-context",
                 "--batch",
                 "4",
                 "--vad",
                 "--vad-model",
                 weights,
                 "--offset",
                 "2.5",
                 "--duration",
                 "7",
                 "--word-times",
                 "--seed",
                 "9",
                 "--threads",
                 "2",
                 "--precision",
                 "f32",
                 "--deadline",
                 "100"}),
            0);
  EXPECT_THAT(err, HasSubstr("txt shows none"));
  const TranscribeOptions& o = state->asked.at(0);
  EXPECT_EQ(o.language, "fr");
  EXPECT_EQ(o.task, SpeechTask::translate);
  EXPECT_EQ(o.prompt, "Ada");
  EXPECT_EQ(o.beam, 3);
  EXPECT_FALSE(o.fallback);
  EXPECT_FALSE(o.context);
  EXPECT_EQ(o.batch, 4);
  EXPECT_TRUE(o.vad);
  EXPECT_EQ(o.vad_model, weights);
  EXPECT_TRUE(o.word_times);
  EXPECT_EQ(o.seed, 9u);
  EXPECT_GT(o.deadline, 90);
  EXPECT_EQ(state->opened.at(0).offset, 2.5);
  EXPECT_EQ(state->opened.at(0).duration, 7);
  EXPECT_EQ(state->loaded.threads, 2);
  EXPECT_EQ(state->loaded.precision, "f32");
  EXPECT_EQ(run({path("a.wav")}), 0);
  const TranscribeOptions& d = state->asked.at(1);
  EXPECT_EQ(d.language, "auto");
  EXPECT_EQ(d.beam, 5);
  EXPECT_TRUE(d.fallback && d.context && !d.vad && !d.word_times);
  EXPECT_EQ(d.deadline, 0);
  EXPECT_EQ(state->opened.at(1).duration, -1);
}

TEST_F(TranscribeCli, SubtitlesAreLaidOutByTheTimesOfWords) {
  const std::string a = file("a.wav", "one\n");
  EXPECT_EQ(run({a, "--split", "--max-line", "30", "--max-lines", "3", "--format", "vtt"}), 0);
  EXPECT_TRUE(state->asked.at(0).word_times);
  EXPECT_TRUE(state->subtitles.sentences);
  EXPECT_EQ(state->subtitles.line, 30);
  EXPECT_EQ(state->subtitles.lines, 3);
  EXPECT_EQ(run({a, "--format", "srt", "-o", path("a.srt")}), 0);
  EXPECT_FALSE(state->asked.at(1).word_times);
  EXPECT_FALSE(state->subtitles.sentences);
  EXPECT_EQ(state->subtitles.line, 42);
  EXPECT_EQ(run({a, "--split", "--format", "srt", "-o", path("a.srt")}), 0);
  EXPECT_TRUE(state->subtitles.sentences);
}

TEST_F(TranscribeCli, WrongUsageIsTwoBeforeAnythingIsLoaded) {
  const std::string a = file("a.wav", "one\n");
  const std::vector<std::vector<std::string>> cases = {
      {},
      {a, "--diarize"},
      {a, "--encoder", "x"},
      {a, "--look-ahead", "3"},
      {a, "--split"},  // of which txt shows nothing
      {a, "--max-line", "30", "--format", "json"},
      {a, "--max-line", "0", "--format", "srt"},
      {a, "--max-lines", "0", "--format", "srt"},
      {a, "--format", "docx"},
      {a, "--format", "rttm"},
      {a, "--format", "txt,"},
      {a, "--format", "txt", "--json"},
      {a, "--format", "txt,srt"},
      {a, "--task", "sing"},
      {a, "--beam", "0"},
      {a, "--batch", "2"},
      {a, "--temp-fallback", "maybe"},
      {a, "--vad-model", a},
      {a, "--offset", "-1"},
      {a, "--duration", "0"},
      {a, "--duration", "nan"},
      {a, "--deadline", "0"},
      {a, "--pcm", "8000:1:s16"},
      {a, "--device", "toaster"},
      {a, "--allow-split"},
      {a, "--live"},
      {"-", "--live"},
      {"--live", "--offset", "3"},
      {"--live", "--format", "txt,json"},
      {"-", "-"},
      {a, "-o", a},
      {path("in") + "/../a.wav", "-o", a},
  };
  for (const auto& arguments : cases) {
    std::string line;
    for (const std::string& word : arguments) line += word + " ";
    EXPECT_EQ(run(arguments), 2) << line;
    EXPECT_EQ(text, "") << line;
    EXPECT_THAT(err, testing::StartsWith("error: ")) << line;
  }
  EXPECT_EQ(state->loads, 0);
  EXPECT_EQ(content(a), "one\n");
  EXPECT_EQ(run({a, a, "-l", "xx"}), 2);  // known once the model is: not a failure of each recording
  EXPECT_THAT(err, HasSubstr("error: language xx"));
  EXPECT_EQ(run({a, "-l", ""}), 2);
  EXPECT_THAT(err, HasSubstr("-l ''"));
  EXPECT_EQ(run({a, "--prompt", "\xff"}), 2);
  EXPECT_THAT(err, HasSubstr("--prompt"));
  EXPECT_EQ(run({a, ""}), 2);
}

TEST_F(TranscribeCli, AWrongVadModelIsNotAFaultOfEachRecording) {
  const std::string a = file("a.wav", "one\n"), b = file("b.wav", "two\n"), weights = file("wrong", "x");
  EXPECT_EQ(run({a, b, "--vad", "--vad-model", weights}), 3);
  EXPECT_EQ(err, "error: " + weights + ": finds no speech\n");
  EXPECT_TRUE(state->heard.empty());
}

TEST_F(TranscribeCli, EnglishOnlyModelsWarnAndGoOn) {
  state->multilingual = false;
  EXPECT_EQ(run({file("a.wav", "one\n"), "-l", "fr", "--task", "translate"}), 0);
  EXPECT_EQ(state->asked.at(0).language, "en");
  EXPECT_EQ(state->asked.at(0).task, SpeechTask::transcribe);
  EXPECT_THAT(err, HasSubstr("-l fr: this model knows English only"));
  EXPECT_THAT(err, HasSubstr("--task translate"));
  EXPECT_EQ(run({path("a.wav"), "-l", "English"}), 0);
  EXPECT_EQ(err, "");
  EXPECT_EQ(run({path("a.wav"), "-l", "xx"}), 2);
}

TEST_F(TranscribeCli, JsonIsALineARecording) {
  const std::string a = file("a.wav", "one\n"), b = file("b.wav", "two\n");
  EXPECT_EQ(run({a, "--json"}), 0);
  EXPECT_EQ(Json::parse(text).at("file"), a);
  EXPECT_EQ(Json::parse(text).at("device"), "cpu");
  EXPECT_EQ(Json::parse(text).at("passed_over"), Json({"cuda: no driver"}));
  EXPECT_EQ(run({a, b, "--format", "json"}), 0);
  const size_t newline = text.find('\n');
  EXPECT_EQ(Json::parse(text.substr(0, newline)).at("text"), " one");
  EXPECT_EQ(Json::parse(text.substr(newline + 1)).at("text"), " two");
  EXPECT_EQ(run({a, b}), 0);
  EXPECT_EQ(text, "==> " + a + " <==\none\n\n==> " + b + " <==\ntwo\n");
}

TEST_F(TranscribeCli, TimesCountFromTheStartOfTheRecording) {
  EXPECT_EQ(run({file("a.wav", "one\ntwo\n"), "--offset", "10", "--json"}), 0);
  const Json json = Json::parse(text);
  EXPECT_EQ(json.at("segments").at(1).at("start"), 11);
  EXPECT_EQ(json.at("segments").at(1).at("word"), 11);
  EXPECT_EQ(json.at("duration"), 12);
}

TEST_F(TranscribeCli, AFileThatWasNamedIsReplaced) {
  const std::string a = file("a.wav", "one\n"), out = path("result");
  EXPECT_EQ(run({a, "-o", out}), 0);
  EXPECT_EQ(text, "");
  EXPECT_EQ(content(out), "one\n");
  EXPECT_EQ(run({a, "-o", out, "--format", "srt"}), 0);
  EXPECT_EQ(content(out), "srt:0: one\n");
  EXPECT_EQ(run({a, "-o", "-"}), 0);
  EXPECT_EQ(text, "one\n");
}

TEST_F(TranscribeCli, AFolderIsMirroredAndResumed) {
  file("in/a.wav", "one\n");
  file("in/deep/er/b.MP3", "two\n");
  file("in/deep/notes.txt", "no recording");
  file("in/.hidden.wav", "no\n");
  file("in/same.wav", "wav\n");
  file("in/same.flac", "flac\n");
  const std::string out = path("out/of/it");
  EXPECT_EQ(run({path("in"), "-o", out}), 0);
  EXPECT_EQ(content(out + "/a.txt"), "one\n");
  EXPECT_FALSE(fs::exists(out + "/deep"));
  EXPECT_EQ(content(out + "/same.wav.txt"), "wav\n");
  EXPECT_EQ(content(out + "/same.flac.txt"), "flac\n");
  EXPECT_THAT(err, HasSubstr("3 recordings: 3 transcribed"));

  file("out/of/it/a.txt", "kept");
  state->heard.clear();
  EXPECT_EQ(run({path("in"), "-o", out, "--recursive", "--format", "txt", "--format", "json"}), 0);
  EXPECT_EQ(content(out + "/a.txt"), "kept");  // there already; only a.json was missing
  EXPECT_EQ(Json::parse(content(out + "/a.json")).at("text"), " one");
  EXPECT_EQ(Json::parse(content(out + "/a.json")).at("passed_over"), Json({"cuda: no driver"}));
  EXPECT_EQ(content(out + "/deep/er/b.txt"), "two\n");
  state->heard.clear();
  EXPECT_EQ(run({path("in"), "-o", out, "--recursive", "--format", "txt,json"}), 0);
  EXPECT_THAT(state->heard, testing::IsEmpty());
  EXPECT_THAT(err, HasSubstr("4 there already (--force"));
  EXPECT_EQ(run({path("in"), "-o", out, "--recursive", "--force"}), 0);
  EXPECT_EQ(content(out + "/a.txt"), "one\n");
}

TEST_F(TranscribeCli, StandardInputIsNeverThereAlready) {
  const std::string out = path("texts/");
  EXPECT_EQ(run({"-", "-o", out}, "one\n"), 0);
  EXPECT_EQ(content(out + "stdin.txt"), "one\n");
  EXPECT_EQ(run({"-", "-o", out}, "two\n"), 0);
  EXPECT_EQ(content(out + "stdin.txt"), "two\n");
  // Beside recordings that are.
  const std::string a = file("a.wav", "a\n");
  EXPECT_EQ(run({a, "-", "-o", out}, "three\n"), 0);
  file("texts/a.txt", "kept");
  EXPECT_EQ(run({a, "-", "-o", out}, "four\n"), 0);
  EXPECT_EQ(content(out + "a.txt"), "kept");
  EXPECT_EQ(content(out + "stdin.txt"), "four\n");
}

TEST_F(TranscribeCli, OneBadFileNeverStopsTheOthers) {
  file("in/a.wav", "one\n");
  file("in/b.wav", "?");
  file("in/c.wav", "half\n!torn apart\n");
  file("in/d.wav", "two\n");
  EXPECT_EQ(run({path("in"), path("in/none.wav"), "-o", path("out")}), 1);
  EXPECT_EQ(content(path("out/a.txt")), "one\n");
  EXPECT_EQ(content(path("out/d.txt")), "two\n");
  EXPECT_FALSE(fs::exists(path("out/c.txt")));
  EXPECT_THAT(err,
              HasSubstr("error: 3 of 5 recordings failed:\n  " + path("in/b.wav") + ": not a recording\n  " +
                        path("in/c.wav") + ": torn apart\n  " + path("in/none.wav") + ": No such file or directory\n"));
  size_t files = 0;
  for (const auto& entry : fs::directory_iterator(path("out"))) files += entry.exists() ? 1 : 0;
  EXPECT_EQ(files, 2u);  // nothing temporary is left
}

TEST_F(TranscribeCli, OneFileAloneGivesItsOwnCode) {
  EXPECT_EQ(run({file("b.wav", "?")}), 3);
  EXPECT_EQ(err, "error: " + path("b.wav") + ": not a recording\n");
  EXPECT_EQ(run({path("none.wav")}), 3);
  EXPECT_EQ(err, "error: " + path("none.wav") + ": No such file or directory\n");
  EXPECT_EQ(run({path("none.wav"), path("b.wav"), "-o", path("out")}), 1);
  EXPECT_EQ(run({path("in")}), 3);
  EXPECT_THAT(err, HasSubstr("no recording"));
  EXPECT_EQ(run({file("w.wav", "warn\n")}), 0);
  EXPECT_EQ(err, "warning: " + path("w.wav") + ": has a flaw\n");
}

TEST_F(TranscribeCli, OutputsThatCannotBeWrittenAreSaidBeforeTheWork) {
  const std::string a = file("a.wav", "one\n");
  EXPECT_EQ(run({a, "-o", path("none/result")}), 1);
  EXPECT_THAT(err, HasSubstr("there is no folder"));
  EXPECT_EQ(run({a, "-o", a + "/below/"}), 1);
  EXPECT_THAT(err, HasSubstr("can't be made a folder"));
  fs::create_directories(path("x"));
  fs::create_directories(path("y"));
  file("x/a.wav", "one\n");
  file("y/a.wav", "two\n");
  EXPECT_EQ(run({path("x"), path("y"), "-o", path("out")}), 2);
  EXPECT_THAT(err, HasSubstr("would both be written to"));
  EXPECT_EQ(state->loads, 0);
}

TEST_F(TranscribeCli, AFullDiskIsAFailure) {
  const std::string a = file("a.wav", "one\n");
  EXPECT_EQ(run({a, "-o", "/dev/full"}), 1);
  EXPECT_THAT(err, HasSubstr("No space left"));
  EXPECT_EQ(run({a, a}, "", open("/dev/full", O_WRONLY)), 1);
  EXPECT_THAT(err, HasSubstr("No space left"));
  EXPECT_EQ(state->heard.size(), 1u);  // nothing was transcribed for an output that is full
}

TEST_F(TranscribeCli, TheDeadlineLeavesNoHalfFiles) {
  const std::string a = file("a.wav", "one\n");
  EXPECT_EQ(run({a, "-o", path("out.txt"), "--deadline", "1e-9"}), 1);
  EXPECT_THAT(err, HasSubstr("the deadline passed after 0 of 1 recordings"));
  EXPECT_FALSE(fs::exists(path("out.txt")));
}

TEST_F(TranscribeCli, CtrlCKeepsWhatIsOnStdoutAndNoHalfFile) {
  Interrupts::install();
  for (const bool to_file : {false, true}) {
    Interrupts::forget();
    state->sleeping = false;
    std::thread finger([this] {
      while (!state->sleeping) std::this_thread::yield();
      kill(getpid(), SIGINT);
    });
    std::vector<std::string> arguments = {file("a.wav", "one\nsleep\n"), file("b.wav", "two\n")};
    if (to_file) arguments.insert(arguments.end(), {"-o", path("out")});
    EXPECT_EQ(run(arguments), 130);
    finger.join();
    EXPECT_THAT(err, HasSubstr("interrupted after 0 of 2 recordings"));
    if (to_file) {
      EXPECT_TRUE(fs::is_empty(path("out")));
      EXPECT_THAT(err, HasSubstr("the same command goes on"));
    } else {
      EXPECT_EQ(text, "==> " + path("a.wav") + " <==\none\n");
    }
  }
  Interrupts::forget();
  std::signal(SIGINT, SIG_DFL);
}

TEST_F(TranscribeCli, ModelsAndVadAreFoundInTheCache) {
  const std::string a = file("a.wav", "one\n");
  EXPECT_EQ(run({a, "--vad"}), 3);
  EXPECT_THAT(err, HasSubstr("consonant pull silero-vad"));
  const std::string weights = file("cache/consonant/models/silero-vad/silero_vad_16k.safetensors", "x");
  EXPECT_EQ(run({a, "--vad", "-m", "whisper-tiny.en"}), 2);  // -m twice
  EXPECT_EQ(run({a, "--vad"}), 0);
  EXPECT_EQ(state->asked.at(0).vad_model, weights);
}

// In what is said live a byte is a sample, 1/16000 s, and empty lines are silence.
TEST_F(TranscribeCli, LiveTakesRawSamplesUntilTheyEnd) {
  const std::string said = "one\n" + std::string(50000, '\n') + "two\n";
  EXPECT_EQ(run({"--live", "--pcm", "16000:1:s16"}, said), 0);
  EXPECT_EQ(text, "one\ntwo\n");
  EXPECT_EQ(run({"--live", "-", "--pcm", "16000:1:s16", "--json"}, said), 0);
  const Json json = Json::parse(text);
  EXPECT_EQ(json.at("text"), " one two");
  EXPECT_EQ(json.at("passed_over"), Json({"cuda: no driver"}));
  EXPECT_NEAR(json.at("segments").at(1).at("start").get<double>(), 50004 / 16000.0, 1e-6);
  EXPECT_EQ(run({"--live", "--pcm", "16000:1:s16", "-o", path("live.srt"), "--format", "srt"}, "one\n"), 0);
  EXPECT_EQ(content(path("live.srt")), "srt:0: one\n");
  EXPECT_EQ(run({"--live", "--pcm", "16000:1:s16"}, ""), 0);
  EXPECT_EQ(text, "");
  EXPECT_EQ(run({"--live", "--pcm", "16000:1:s16"}, "!torn\n"), 3);
}

TEST_F(TranscribeCli, LiveSaysEverythingOnceHoweverItIsCut) {
  std::string said, wanted;
  for (int i = 0; i < 60; ++i) {  // 75 s, and silences longer than a window
    const std::string line(size_t(20000 + 37 * i), char('a' + i % 26));
    wanted += line + "\n";
    said += line + "\n" + std::string(i % 20 == 7 ? 600000 : 0, '\n');
  }
  EXPECT_EQ(run({"--live", "--pcm", "16000:1:s16"}, said), 0);
  EXPECT_EQ(text == wanted, true) << text.size() << " bytes, wanted " << wanted.size();
  for (const TranscribeOptions& o : state->asked) EXPECT_TRUE(o.language == "auto" || o.language == "en");
}

TEST_F(TranscribeCli, CtrlCEndsWhatIsLiveWell) {
  class Fake : public Microphone {
   public:
    int64_t read(std::span<float> to) override {
      const std::string_view said = "one\ntwo\n";
      if (!begun_) {
        begun_ = true;
        std::fill(to.begin(), to.end(), '\n');
        std::copy(said.begin(), said.end(), to.begin());
        return int64_t(to.size());
      }
      kill(getpid(), SIGINT);
      while (!stopped_) std::this_thread::yield();
      return 0;
    }
    void stop() noexcept override { stopped_ = true; }
    int64_t length() const override { return -1; }
    const std::vector<std::string>& warnings() const override { return warnings_; }
    std::string name() const override { return "microphone"; }

   private:
    std::vector<std::string> warnings_ = {"some sound was lost"};
    std::atomic<bool> stopped_{false};
    bool begun_ = false;
  };
  Interrupts::install();
  microphone = [] { return std::make_unique<Fake>(); };
  EXPECT_EQ(run({"--live"}), 0);
  EXPECT_EQ(text, "one\ntwo\n");
  EXPECT_THAT(err, HasSubstr("Ctrl-C ends"));
  EXPECT_THAT(err, HasSubstr("some sound was lost"));
  Interrupts::forget();
  std::signal(SIGINT, SIG_DFL);
}

TEST_F(TranscribeCli, LiveEndsAfterItsDuration) {
  int ends[2];  // nobody closes it
  ASSERT_EQ(pipe(ends), 0);
  std::thread speaker([&] {
    const std::string said = "one\n" + std::string(40000, '\n');
    EXPECT_EQ(write(ends[1], said.data(), said.size()), ssize_t(said.size()));
  });
  World world{Output(open(path("stdout").c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600)), ends[0]};
  world.speech = testing_cli::fake_speech(state);
  EXPECT_EQ(consonant::run({"transcribe", "-m", "m", "--live", "--pcm", "16000:1:s16", "--duration", "2"}, world), 0);
  EXPECT_EQ(content(path("stdout")), "one\n");
  EXPECT_EQ(consonant::run({"transcribe", "-m", "m", "--live", "--pcm", "16000:1:s16", "--deadline", "0.2"}, world), 1);
  speaker.join();
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace consonant
