// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "cli/options.hpp"
#include "consonant/speak.hpp"

namespace consonant {

// The options of `speak`.
struct SpeakFlags {
  ModelOptions model;
  std::string codec, out;
  std::optional<std::string> text, file, format, speaker, voice, voice_text, instruction, codes;
  std::string language = "auto";
  bool has_rights = false, stream = false, json = false;
  std::optional<float> temperature, top_p, repeat_penalty;
  std::optional<int> top_k, retries;
  std::optional<int64_t> max_frames;
  std::optional<uint64_t> seed;
  int batch = 8;
  std::optional<double> deadline;

  void add(CLI::App& app);
  // Wrong usage for what contradicts itself, before anything is loaded.
  void check() const;
  // All but the voice, which has to be read at the model's rate.
  SpeakOptions options() const;
  std::string kind() const;  // of the sound: wav, flac or pcm
};

}  // namespace consonant
