// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/options.hpp"
#include "cli/world.hpp"

namespace consonant {

// The options of `transcribe`.
struct TranscribeFlags {
  ModelOptions model;
  std::vector<std::string> inputs, formats;
  std::optional<std::string> pcm, out, vad_model, encoder;
  std::string language = "auto", task = "transcribe", prompt, fallback = "on";
  std::optional<int> look_ahead;
  std::optional<double> duration, deadline;
  double offset = 0;
  int beam = 5, batch = 1;
  std::optional<int> max_line, max_lines;
  uint64_t seed = 0;
  bool recursive = false, force = false, word_times = false, no_context = false, vad = false, live = false;
  bool diarize = false, split = false, json = false;

  void add(CLI::App& app);
  void check() const;  // wrong usage for what can't be honoured or makes no sense
  TranscribeOptions options() const;
  // Whether subtitles are to be laid out by the times of words, and how.
  bool lays_out() const { return split || max_line || max_lines; }
  SubtitleOptions subtitles() const;
  AudioOptions audio() const { return {offset, duration.value_or(-1)}; }

  // Loads the model, and bends `options` to what it can do, with a warning.
  std::shared_ptr<Transcriber> load(World& world, TranscribeOptions& options) const;
};

// Sound as it comes, until it ends or Ctrl-C says so. Returns the exit code.
int transcribe_live(World& world, const TranscribeFlags& flags, const std::vector<std::string>& formats);

}  // namespace consonant
