// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "cli/output.hpp"

namespace consonant {

// Where synthetic speech goes, said in its metadata where the kind of file has any.
class SoundOutput {
 public:
  virtual ~SoundOutput() = default;
  virtual void write(std::span<const float> samples) = 0;
  virtual void finish() = 0;  // until then a file has another name, and without it nothing is left behind
};

struct SoundTarget {
  std::string path;  // "-": `standard`
  std::string kind;  // wav, flac or pcm
  int64_t rate;
  std::string comment;
  bool stream = false;  // samples are wanted as they come
};
std::unique_ptr<SoundOutput> open_sound(const SoundTarget& target, Output& standard);

// A RIFF header for 16-bit samples of one channel, with the comment: of so many samples, or with an open length (-1)
// as players take it from a pipe.
std::string wav_header(int64_t rate, int64_t samples, const std::string& comment);

}  // namespace consonant
