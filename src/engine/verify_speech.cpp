// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/error.hpp"
#include "base/log.hpp"
#include "consonant/verify.hpp"
#include "engine/recorded_speech.hpp"
#include "engine/speech_engine.hpp"

namespace consonant {

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

RecordedRun hear_once(WhisperRunner& runner, const std::vector<float>& samples, const std::vector<int32_t>& tokens) {
  const OpenWindow window(runner, samples);
  const OpenText text(window);
  const WindowModel::Piece piece{text.id, tokens, static_cast<int64_t>(tokens.size())};
  const auto logits = runner.evaluate({&piece, 1});
  return {tokens, {logits.begin(), logits.end()}, runner.take_taps()};
}

void record(Transcriber& transcriber, AudioInput& audio, const SpeechRecordOptions& options, const std::string& path) {
  SpeechEngine* speech = &speech_engine(transcriber);
  WhisperRunner& runner = speech->runner();
  const std::vector<float> samples = first_window(audio, runner);
  std::vector<int32_t> tokens = options.tokens;
  if (tokens.empty()) tokens = speech->greedy_tokens(OpenWindow(runner, samples).id, options.transcribe);
  const Watch watch(runner, options.taps);
  if (!options.taps.empty()) check_taps(options.taps, runner.planned_taps());
  const RecordedRun run = controlled(runner, [&] { return hear_once(runner, samples, tokens); });
  write_recording(path, run, runner.model().vocabulary, speech->info(), speech->sha256(), options.options_text);
}

}  // namespace consonant
