// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "base/error.hpp"
#include "base/log.hpp"
#include "consonant/verify.hpp"
#include "engine/recording.hpp"
#include "engine/speech_engine.hpp"

namespace consonant {

namespace {

// The first window with its margins: before it the sound's reflection, after the end zeros.
std::vector<float> first_window(AudioInput& audio, const WhisperRunner& runner) {
  const auto margin = static_cast<size_t>(runner.margin_samples()),
             length = static_cast<size_t>(runner.window_samples());
  std::vector<float> samples(length + 2 * margin);
  const auto wanted = static_cast<int64_t>(length + margin);
  if (audio.read(std::span(samples).subspan(margin)) == wanted)
    log_warning("{}: only the first {} s are recorded", audio.name(), length / static_cast<size_t>(AudioInput::rate));
  for (size_t i = 1; i <= margin; ++i) samples[margin - i] = samples[margin + i];
  return samples;
}

// Encoded, and forgotten at the end.
struct OpenWindow {
  WhisperRunner& runner;
  const int id;

  OpenWindow(WhisperRunner& runner, const std::vector<float>& samples) : runner(runner), id(encode(samples)) {}
  ~OpenWindow() { runner.forget(id); }
  OpenWindow(const OpenWindow&) = delete;
  OpenWindow& operator=(const OpenWindow&) = delete;

 private:
  int encode(const std::vector<float>& samples) {
    float peak = -std::numeric_limits<float>::infinity();
    return runner.encode(samples, peak);
  }
};

struct OpenText {
  WhisperRunner& runner;
  const int id;

  explicit OpenText(const OpenWindow& window) : runner(window.runner), id(runner.open(window.id)) {}
  ~OpenText() { runner.close(id); }
  OpenText(const OpenText&) = delete;
  OpenText& operator=(const OpenText&) = delete;
};

RecordedRun run_once(WhisperRunner& runner, const std::vector<float>& samples, const std::vector<int32_t>& tokens) {
  const OpenWindow window(runner, samples);
  const OpenText text(window);
  const WindowModel::Piece piece{text.id, tokens, static_cast<int64_t>(tokens.size())};
  const auto logits = runner.evaluate({&piece, 1});
  return {tokens, {logits.begin(), logits.end()}, runner.take_taps()};
}

}  // namespace

void record(Transcriber& transcriber, AudioInput& audio, const SpeechRecordOptions& options, const std::string& path) {
  auto* speech = dynamic_cast<SpeechEngine*>(&transcriber);
  if (!speech) bad_usage("{} isn't a speech model", transcriber.info().path);
  WhisperRunner& runner = speech->runner();
  const std::vector<float> samples = first_window(audio, runner);
  std::vector<int32_t> tokens = options.tokens;
  if (tokens.empty()) tokens = speech->greedy_tokens(OpenWindow(runner, samples).id, options.transcribe);
  const Watch watch(runner, options.taps);
  if (!options.taps.empty()) check_taps(options.taps, runner.planned_taps());
  const RecordedRun run = controlled(runner, [&] { return run_once(runner, samples, tokens); });
  write_recording(path, run, runner.model().vocabulary, speech->info(), speech->sha256(), options.options_text);
}

}  // namespace consonant
