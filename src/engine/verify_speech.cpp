// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "consonant/verify.hpp"
#include "engine/recorded_speech.hpp"
#include "engine/speech_engine.hpp"
#include "formats/safetensors.hpp"

namespace consonant {

FirstWindow first_window(AudioInput& audio, const WhisperRunner& runner) {
  const auto margin = static_cast<size_t>(runner.margin_samples()),
             length = static_cast<size_t>(runner.window_samples());
  FirstWindow window{std::vector<float>(length + 2 * margin), {}};
  const auto from_start = std::span(window.samples).subspan(margin);
  const auto heard = static_cast<size_t>(audio.read(from_start));
  if (heard == length + margin && audio.length() != static_cast<int64_t>(heard))
    log_warning("{}: only the first {} s are recorded", audio.name(), length / static_cast<size_t>(AudioInput::rate));
  window.sound.assign(from_start.begin(), from_start.begin() + static_cast<std::ptrdiff_t>(std::max<size_t>(heard, 1)));
  for (size_t i = 1; i <= margin; ++i) window.samples[margin - i] = window.samples[margin + i];
  return window;
}

RecordedRun hear_once(WhisperRunner& runner, const std::vector<float>& samples, const std::vector<int32_t>& tokens) {
  const OpenWindow window(runner, samples);
  const OpenText text(window);
  const WindowModel::Piece piece{text.id, tokens, static_cast<int64_t>(tokens.size())};
  const auto logits = runner.evaluate({&piece, 1});
  return {tokens, {logits.begin(), logits.end()}, runner.take_taps(), {}};
}

void record(Transcriber& transcriber, AudioInput& audio, const SpeechRecordOptions& options, const std::string& path) {
  SpeechEngine* speech = &speech_engine(transcriber);
  WhisperRunner& runner = speech->runner();
  FirstWindow window = first_window(audio, runner);
  std::vector<int32_t> tokens = options.tokens;
  if (tokens.empty()) tokens = speech->greedy_tokens(OpenWindow(runner, window.samples).id, options.transcribe);
  const Watch watch(runner, options.taps);
  if (!options.taps.empty()) check_taps(options.taps, runner.planned_taps());
  RecordedRun run = controlled(runner, [&] { return hear_once(runner, window.samples, tokens); });
  run.sound = std::move(window.sound);
  write_recording(path, run, runner.model().vocabulary, speech->info(), speech->sha256(), options.options_text);
}

std::unique_ptr<AudioInput> recorded_sound(const std::string& recording) {
  const SafetensorsFile file = SafetensorsFile::open(recording);
  if (!file.find("sound")) return nullptr;
  const HostTensor tensor = file.tensor("sound");
  if (tensor.type != DType::f32 || tensor.sizes.size() != 1)
    bad_input("{}: its sound is {} {}, not float32 [n]", recording, name(tensor.type), to_string(tensor.sizes));
  return audio_of(tensor.to_floats(), recording);
}

void replay(Transcriber& transcriber, const std::string& recording, const std::string& path) {
  const std::unique_ptr<AudioInput> sound = recorded_sound(recording);
  if (!sound) bad_input("{}: no recording of a speech model: it has no sound", recording);
  SpeechRecordOptions options;
  options.tokens = recorded_tokens(recording);
  if (options.tokens.empty()) bad_input("{}: there is no token to evaluate", recording);
  options.taps = recorded_taps(recording, speech_engine(transcriber).runner().all_taps());
  options.options_text = "replay of " + recording;
  record(transcriber, *sound, options, path);
}

}  // namespace consonant
