// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "audio/audio_source.hpp"

namespace consonant {

struct ReadSettings {
  double offset = 0;                 // seconds to pass over
  double duration = -1;              // seconds to read at most; -1: all
  int64_t rate = AudioSource::rate;  // samples a second that come
  std::string ffmpeg =
      "ffmpeg";  // what reads the formats that libsndfile lacks: a path, or a name on the PATH; empty: nothing
  double ffmpeg_patience = 30;  // seconds without a byte from it after which it is stopped
};

// A sound file of any kind. Bad input, naming the file and the fault, for what isn't one.
std::unique_ptr<AudioSource> read_audio(const std::string& path, const ReadSettings& settings = {});

// The same from a descriptor, which stays the caller's. `pcm` is empty for a whole file, or the layout of raw samples:
// "RATE:CHANNELS:s16" or "RATE:CHANNELS:f32".
std::unique_ptr<AudioSource> read_audio_stream(int descriptor, const std::string& pcm,
                                               const ReadSettings& settings = {},
                                               const std::string& name = "standard input");

std::unique_ptr<AudioSource> read_audio_bytes(std::vector<std::byte> bytes, const std::string& name,
                                              const ReadSettings& settings = {});

// Samples that are mono, at AudioSource::rate, already.
std::unique_ptr<AudioSource> audio_of_samples(std::vector<float> samples, std::string name);

}  // namespace consonant
