// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "cli/world.hpp"

// Speech for tests of the command: a recording is a text whose lines are said one a second, `sleep` takes as long as it
// takes to be cancelled, "!..." is a fault. A sample is a byte: sound of the text `ab` is samples a, b at a rate of one
// a second for the offset and the duration.
namespace consonant::testing_cli {

struct FakeSpeech {
  bool multilingual = true;
  EngineOptions loaded;
  std::string loaded_path;
  int loads = 0;
  std::vector<TranscribeOptions> asked;
  SubtitleOptions subtitles;  // of the last text
  std::vector<AudioOptions> opened;
  std::vector<std::string> heard;  // names of the recordings
  std::string pcm;
  std::atomic<bool> sleeping{false};
};

class FakeAudio : public AudioInput {
 public:
  FakeAudio(std::string name, std::string text) : name_(std::move(name)), text_(std::move(text)) {
    if (text_.starts_with("warn")) warnings_.push_back("has a flaw");
  }
  int64_t read(std::span<float> to) override {
    size_t n = 0;
    for (; n < to.size() && at_ < text_.size(); ++n) to[n] = float(static_cast<unsigned char>(text_[at_++]));
    return int64_t(n);
  }
  int64_t length() const override { return int64_t(text_.size()); }
  const std::vector<std::string>& warnings() const override { return warnings_; }
  std::string name() const override { return name_; }

 private:
  std::string name_, text_;
  size_t at_ = 0;
  std::vector<std::string> warnings_;
};

// Reads when it is asked to, as what is live has to be.
class FakeStream : public FakeAudio {
 public:
  explicit FakeStream(int descriptor) : FakeAudio("standard input", ""), descriptor_(descriptor) {}
  int64_t read(std::span<float> to) override {
    int64_t n = 0;
    for (unsigned char c; n < int64_t(to.size()) && ::read(descriptor_, &c, 1) == 1; ++n) to[size_t(n)] = float(c);
    return n;
  }
  int64_t length() const override { return -1; }

 private:
  int descriptor_;
};

class FakeTranscriber : public Transcriber {
 public:
  explicit FakeTranscriber(std::shared_ptr<FakeSpeech> state) : state_(std::move(state)) {
    info_.architecture = "fake";
    info_.device = "cpu";
    info_.passed_over = {"cuda: no driver"};
  }
  const ModelInfo& info() const override { return info_; }
  bool multilingual() const override { return state_->multilingual; }
  std::vector<std::string> languages() const override { return {"en", "fr"}; }
  std::vector<std::pair<std::string, double>> detect_language(AudioInput&) override { return {{"en", 1}}; }
  void cancel() noexcept override { cancelled_ = true; }

  Transcript transcribe(AudioInput& audio, const TranscribeOptions& options,
                        const TranscribeCallbacks& callbacks) override {
    if (options.language == "xx") bad_usage("language xx: there is no such language");
    if (options.vad && options.vad_model.ends_with("wrong")) bad_input("{}: finds no speech", options.vad_model);
    if (audio.length() == 0 && audio.name().empty()) return {};  // asked for the sake of its options only
    state_->asked.push_back(options);
    state_->heard.push_back(audio.name());
    cancelled_ = false;
    Transcript t;
    t.language = options.language == "auto" ? "en" : options.language;
    t.language_probability = 0.75;
    std::string text;
    std::vector<float> block(7);
    while (const int64_t n = audio.read(block))
      for (int64_t i = 0; i < n; ++i) text += char(block[size_t(i)]);
    const bool live = audio.name() == "what was said";
    for (size_t at = 0; at < text.size() && t.stop_reason == StopReason::end_token;) {
      const size_t end = std::min(text.find('\n', at), text.size());
      const std::string line = text.substr(at, end - at);
      const double start = live ? double(at) / 16000 : double(t.segments.size());
      if (!line.empty()) say(line, start, live ? double(end) / 16000 : start + 1, t, options, callbacks);
      at = end + 1;
    }
    t.duration = double(t.segments.size());
    return t;
  }

 private:
  void say(const std::string& line, double start, double end, Transcript& t, const TranscribeOptions& options,
           const TranscribeCallbacks& callbacks) {
    if (line.starts_with("!")) bad_input("{}", line.substr(1));
    if (options.deadline > 0 && options.deadline < 1e-6) {
      t.stop_reason = StopReason::deadline;
      return;
    }
    while (line == "sleep" && !cancelled_) {
      state_->sleeping = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (cancelled_) {
      t.stop_reason = StopReason::cancelled;
      return;
    }
    Segment s;
    s.id = int64_t(t.segments.size());
    s.start = start;
    s.end = end;
    s.text = " " + line;
    s.words = {{s.text, start, end, 0.5}};
    t.text += s.text;
    t.segments.push_back(s);
    if (callbacks.on_segment && !callbacks.on_segment(s)) t.stop_reason = StopReason::cancelled;
    if (callbacks.on_progress) callbacks.on_progress(end, 10);
  }

  std::shared_ptr<FakeSpeech> state_;
  ModelInfo info_;
  std::atomic<bool> cancelled_{false};
};

inline std::string format_fake(const Transcript& t, std::string_view format) {
  std::string text;
  if (format == "json") {
    nlohmann::ordered_json json{{"file", t.file}, {"duration", t.duration}, {"text", t.text}};
    json["segments"] = nlohmann::ordered_json::array();
    for (const Segment& s : t.segments)
      json["segments"].push_back({{"start", s.start}, {"text", s.text}, {"word", s.words.at(0).start}});
    return json.dump(2);
  }
  for (const Segment& s : t.segments)
    text += format == "txt" ? s.text.substr(1) + "\n" : fmt::format("{}:{}:{}\n", format, s.start, s.text);
  return text;
}

inline Speech fake_speech(const std::shared_ptr<FakeSpeech>& state) {
  Speech speech;
  speech.load = [state](const std::string& path, const EngineOptions& options) {
    if (path == "broken") bad_input("broken: not a model");
    state->loaded_path = path;
    state->loaded = options;
    ++state->loads;
    return std::make_shared<FakeTranscriber>(state);
  };
  speech.open = [state](const std::string& path, const AudioOptions& options) {
    state->opened.push_back(options);
    std::ifstream file(path, std::ios::binary);
    std::string text(std::istreambuf_iterator<char>(file), {});
    if (text.starts_with("?")) bad_input("{}: not a recording", path);
    return std::make_unique<FakeAudio>(path, text);
  };
  speech.open_stream = [state](int descriptor, const std::string& pcm, const AudioOptions& options) {
    state->opened.push_back(options);
    state->pcm = pcm;
    return std::make_unique<FakeStream>(descriptor);
  };
  speech.of_samples = [](std::vector<float> samples, std::string name) {
    std::string text;
    for (const float s : samples) text += char(s);
    return std::make_unique<FakeAudio>(std::move(name), text);
  };
  speech.format = [state](const Transcript& t, std::string_view format, const SubtitleOptions& subtitles) {
    state->subtitles = subtitles;
    return format_fake(t, format);
  };
  speech.formats = []() -> const std::vector<std::string>& {
    static const std::vector<std::string> names = {"txt", "srt", "vtt", "json", "csv", "tsv"};
    return names;
  };
  return speech;
}

}  // namespace consonant::testing_cli
