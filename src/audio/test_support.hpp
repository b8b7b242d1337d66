// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "audio/audio_source.hpp"
#include "audio/read.hpp"
#include "base/error.hpp"

namespace consonant {

inline std::string clip_path(const std::string& name) { return std::string(CONSONANT_TEST_DATA) + "/audio/" + name; }

inline std::vector<std::byte> bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const auto* start = reinterpret_cast<const std::byte*>(text.data());
  return {start, start + text.size()};
}

// To its end, `chunk` samples at a time.
inline std::vector<float> all_of(AudioSource& audio, size_t chunk = 1000) {
  std::vector<float> samples, block(chunk);
  while (true) {
    const int64_t n = audio.read(block);
    samples.insert(samples.end(), block.begin(), block.begin() + n);
    if (n < static_cast<int64_t>(chunk)) return samples;
  }
}

inline std::vector<float> samples_of_clip(const std::string& name, const ReadSettings& settings = {}) {
  return all_of(*read_audio(clip_path(name), settings));
}

// The message of the error that `act` throws, which must have this exit code.
template <class Act>
std::string message_of(Exit exit, Act act) {
  try {
    act();
  } catch (const Error& error) {
    return error.exit() == exit ? error.what() : "another exit code: " + std::string(error.what());
  }
  return "no error";
}

// A folder that goes with the test.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "consonant-audio.XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace consonant
