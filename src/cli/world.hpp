// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "cli/output.hpp"
#include "consonant/engine.hpp"
#include "consonant/speak.hpp"
#include "consonant/transcribe.hpp"
#include "consonant/verify.hpp"
#include "engine/placement.hpp"
#include "formats/model_file.hpp"

namespace consonant {

// Sound and its transcription.
struct Speech {
  std::function<std::shared_ptr<Transcriber>(const std::string&, const EngineOptions&)> load = Transcriber::load;
  std::function<std::unique_ptr<AudioInput>(const std::string&, const AudioOptions&)> open = open_audio;
  std::function<std::unique_ptr<AudioInput>(int, const std::string&, const AudioOptions&)> open_stream =
      open_audio_stream;
  std::function<std::unique_ptr<AudioInput>(std::vector<float>, std::string)> of_samples = audio_of;
  std::function<std::unique_ptr<Microphone>()> open_microphone = consonant::open_microphone;
  std::function<std::string(const Transcript&, std::string_view, const SubtitleOptions&)> format = format_transcript;
  std::function<const std::vector<std::string>&()> formats = transcript_formats;
  std::function<bool(const std::string&)> holds_speech = [](const std::string& path) {  // whether `load` takes it
    return open_model(path).meta->string("general.architecture", "") == "whisper";
  };
  std::function<Placement(const std::string&, const EngineOptions&)> plan = plan_speech;
  std::function<void(Transcriber&, AudioInput&, const SpeechRecordOptions&, const std::string&)> record =
      [](auto& transcriber, auto& audio, const auto& options, const auto& path) {
        consonant::record(transcriber, audio, options, path);
      };
  std::function<void(Transcriber&, const std::string&, const std::string&)> replay =
      [](auto& transcriber, const auto& recording, const auto& path) {
        consonant::replay(transcriber, recording, path);
      };
  std::function<Agreement(Transcriber&, Transcriber&, AudioInput&, const SpeechRecordOptions&)> prove =
      [](auto& reference, auto& device, auto& audio, const auto& options) {
        return consonant::prove(reference, device, audio, options);
      };
};

// Text to sound.
struct Synthesis {
  std::function<std::shared_ptr<Synthesizer>(const std::string&, const std::string&, const EngineOptions&)> load =
      Synthesizer::load;
  std::function<std::vector<float>(const std::string&, int64_t, std::vector<std::string>*)> read_voice =
      consonant::read_voice;
};

// What the commands touch: the program gives them the real things, tests give them others.
struct World {
  Output out;
  int in = 0;  // standard input
  Clock::time_point started = Clock::now();
  std::function<std::shared_ptr<Engine>(const std::string&, const EngineOptions&)> load = Engine::load;
  std::function<BenchResult(Engine&, const BenchOptions&)> bench = run_bench;
  std::function<SoakResult(Engine&, const SoakOptions&)> soak = run_soak;
  std::function<double(int)> bandwidth = measure_bandwidth;
  std::function<Placement(const std::string&, const EngineOptions&)> plan = plan_language;
  std::function<std::vector<BackendEntry>()> accelerators = list_accelerators;
  std::function<void(Engine&, const RecordOptions&, const std::string&)> record =
      [](auto& engine, const auto& options, const auto& path) { consonant::record(engine, options, path); };
  std::function<Agreement(Engine&, Engine&, const std::vector<int32_t>&)> prove =
      [](auto& reference, auto& device, const auto& tokens) { return consonant::prove(reference, device, tokens); };
  std::function<void(Engine&, const std::string&, const std::string&)> replay =
      [](auto& engine, const auto& recording, const auto& path) { consonant::replay(engine, recording, path); };
  std::function<Comparison(const std::string&, const std::string&)> compare = consonant::compare;
  std::function<OpsReport(const OpsOptions&)> verify_ops = consonant::verify_ops;
  Speech speech;
  Synthesis synthesis;
};

}  // namespace consonant
