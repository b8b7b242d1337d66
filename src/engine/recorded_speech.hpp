// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "consonant/transcribe.hpp"
#include "consonant/verify.hpp"
#include "engine/recording.hpp"
#include "engine/whisper_runner.hpp"

// What recording and proving a speech model share.
namespace consonant {

struct FirstWindow {
  std::vector<float> samples;  // with its margins: before it the sound's reflection, after the end zeros
  std::vector<float> sound;    // what of them the recording holds; at least one sample, if only a zero
};

FirstWindow first_window(AudioInput& audio, const WhisperRunner& runner);

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

// Encodes the window and evaluates the tokens in one step.
RecordedRun hear_once(WhisperRunner& runner, const std::vector<float>& samples, const std::vector<int32_t>& tokens);

// The agreement of two runners over a window and its tokens; `result` says already what is compared. `exact`: both are
// in float32.
void prove_window(Agreement& result, WhisperRunner& reference, WhisperRunner& device, const std::vector<float>& samples,
                  const std::vector<int32_t>& tokens, bool exact);

}  // namespace consonant
