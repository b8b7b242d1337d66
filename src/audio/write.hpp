// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace consonant {

enum class SoundKind { wav_s16, wav_f32, flac };  // FLAC: 16 bits

// A sound file being written under a temporary name: `commit` gives it its own, without it nothing is left behind.
class SoundWriter {
 public:
  // `comment`, unless it is empty, becomes the file's own.
  SoundWriter(const std::filesystem::path& path, SoundKind kind, int64_t rate, int64_t channels = 1,
              const std::string& comment = {});
  SoundWriter(const SoundWriter&) = delete;
  SoundWriter& operator=(const SoundWriter&) = delete;
  ~SoundWriter();

  // Interleaved, a whole number of frames. Beyond -1 ... 1 they are cut off there, except in wav_f32. An error if one
  // isn't finite or the disk is full.
  void write(std::span<const float> samples);
  void commit();

 private:
  struct File;
  std::unique_ptr<File> file_;
};

}  // namespace consonant
