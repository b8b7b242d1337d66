// SPDX-License-Identifier: Apache-2.0
#include "cli/sound_output.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "cli/files.hpp"
#include "consonant/speak.hpp"

namespace consonant {
namespace {

void put(std::string& to, uint64_t number, int bytes) {
  for (int i = 0; i < bytes; ++i) to += static_cast<char>(number >> (8 * i) & 0xFF);
}

std::string halves(std::span<const float> samples) {
  std::string bytes;
  bytes.reserve(2 * samples.size());
  for (const float x : samples)
    put(bytes, static_cast<uint16_t>(std::lrint(std::clamp(x * 32768.0f, -32768.0f, 32767.0f))), 2);
  return bytes;
}

// Bytes to standard output, as they come or, for a header that says how many, all at the end.
class Piped final : public SoundOutput {
 public:
  Piped(const SoundTarget& target, Output& to) : target_(target), to_(to) {}

  void write(std::span<const float> samples) override {
    samples_ += std::ssize(samples);
    std::string bytes = halves(samples);
    if (target_.kind == "wav" && !target_.stream) {
      held_ += bytes;
      return;
    }
    if (target_.kind == "wav" && !std::exchange(begun_, true)) to_.write(wav_header(target_.rate, -1, target_.comment));
    to_.write(bytes);
  }
  void finish() override {
    if (target_.kind == "wav" && !target_.stream)
      to_.write(wav_header(target_.rate, samples_, target_.comment) + held_);
  }

 private:
  SoundTarget target_;
  Output& to_;
  std::string held_;
  int64_t samples_ = 0;
  bool begun_ = false;
};

class RawFile final : public SoundOutput {
 public:
  explicit RawFile(const std::string& path) : file_(path) {}
  void write(std::span<const float> samples) override { file_.write(halves(samples)); }
  void finish() override { file_.commit(); }

 private:
  AtomicFile file_;
};

class SoundFile final : public SoundOutput {
 public:
  SoundFile(const SoundTarget& target, Output* pipe)
      : pipe_(pipe),
        path_(pipe ? std::filesystem::temp_directory_path() / fmt::format("consonant-{}.{}", getpid(), target.kind)
                   : std::filesystem::path(target.path)),
        file_(create_speech_file(path_.string(), target.kind == "flac" ? SpeechFileKind::flac : SpeechFileKind::wav,
                                 target.rate, target.comment)) {}
  void write(std::span<const float> samples) override { file_->write(samples); }
  void finish() override {
    file_->commit();
    if (!pipe_) return;
    pipe_->write(read_file(path_.string()));
    std::filesystem::remove(path_);
  }

 private:
  Output* pipe_;  // where a file goes that can only be written as one
  std::filesystem::path path_;
  std::unique_ptr<SpeechFile> file_;
};

}  // namespace

std::string wav_header(int64_t rate, int64_t samples, const std::string& comment) {
  constexpr uint32_t open = 0xFFFFFFFF;
  std::string text = comment;
  text.push_back('\0');
  if (text.size() % 2 != 0) text.push_back('\0');
  const uint64_t list = 4 + 8 + text.size(), before_data = 4 + 24 + 8 + list + 8;
  const uint64_t bytes = samples < 0 ? open : 2 * static_cast<uint64_t>(samples);
  if (samples >= 0 && before_data + bytes >= open) throw_error(Exit::failed, "a WAV file holds 4 GiB at most");
  std::string header = "RIFF";
  put(header, samples < 0 ? open : before_data + bytes, 4);
  header += "WAVEfmt ";
  put(header, 16, 4);
  put(header, 1, 2), put(header, 1, 2);
  put(header, static_cast<uint64_t>(rate), 4), put(header, static_cast<uint64_t>(2 * rate), 4);
  put(header, 2, 2), put(header, 16, 2);
  header += "LIST";
  put(header, list, 4);
  header += "INFOICMT";
  put(header, text.size(), 4);
  header += text;
  header += "data";
  put(header, bytes, 4);
  return header;
}

std::unique_ptr<SoundOutput> open_sound(const SoundTarget& target, Output& standard) {
  if (target.path == "-" && target.kind != "flac") return std::make_unique<Piped>(target, standard);
  if (target.kind == "pcm") return std::make_unique<RawFile>(target.path);
  return std::make_unique<SoundFile>(target, target.path == "-" ? &standard : nullptr);
}

}  // namespace consonant
