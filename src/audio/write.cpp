// SPDX-License-Identifier: Apache-2.0
#include "audio/write.hpp"

#include <sndfile.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <system_error>
#include <utility>
#include <vector>

#include "audio/frame_source.hpp"
#include "base/atomic_file.hpp"
#include "base/error.hpp"

namespace consonant {

namespace {

// A WAV header counts bytes in 32 bits.
constexpr int64_t most_wav_bytes = 0xFFFFFF00;

int format_of(SoundKind kind) {
  switch (kind) {
    case SoundKind::wav_s16:
      return SF_FORMAT_WAV | SF_FORMAT_PCM_16;
    case SoundKind::wav_f32:
      return SF_FORMAT_WAV | SF_FORMAT_FLOAT;
    case SoundKind::flac:
      break;
  }
  return SF_FORMAT_FLAC | SF_FORMAT_PCM_16;
}

}  // namespace

struct SoundWriter::File {
  File(const std::filesystem::path& path, SoundKind what) : name(path.string()), kind(what), file(path) {}
  ~File() {
    if (sound != nullptr) sf_close(sound);
  }

  [[noreturn]] void fail() const {
    const int error = errno;
    throw_error(Exit::failed, "{}: can't be written: {}", name,
                error != 0 ? std::generic_category().message(error) : sf_strerror(sound));
  }

  std::string name;
  SoundKind kind;
  AtomicFile file;
  SNDFILE* sound = nullptr;
  int64_t channels = 1, bytes = 0;
  std::vector<short> numbers;
};

SoundWriter::SoundWriter(const std::filesystem::path& path, SoundKind kind, int64_t rate, int64_t channels,
                         const std::string& comment)
    : file_(std::make_unique<File>(path, kind)) {
  check_layout(file_->name, rate, channels);
  SF_INFO info{};
  info.samplerate = static_cast<int>(rate);
  info.channels = static_cast<int>(channels);
  info.format = format_of(kind);
  file_->channels = channels;
  file_->sound = sf_open_fd(file_->file.descriptor(), SFM_WRITE, &info, SF_FALSE);
  if (file_->sound == nullptr) throw_error(Exit::failed, "{}: can't be written: {}", file_->name, sf_strerror(nullptr));
  // It would hold the time of day, so that no two files were the same.
  sf_command(file_->sound, SFC_SET_ADD_PEAK_CHUNK, nullptr, SF_FALSE);
  if (!comment.empty()) sf_set_string(file_->sound, SF_STR_COMMENT, comment.c_str());
}

SoundWriter::~SoundWriter() = default;

void SoundWriter::write(std::span<const float> samples) {
  File& f = *file_;
  const auto count = std::ssize(samples);
  if (count % f.channels != 0)
    throw_error(Exit::failed, "{}: {} samples are no whole frames of {} channels", f.name, count, f.channels);
  if (!std::all_of(samples.begin(), samples.end(), [](float x) { return std::isfinite(x); }))
    throw_error(Exit::failed, "{}: a sample that is no number would be written", f.name);
  f.bytes += count * (f.kind == SoundKind::wav_f32 ? 4 : 2);
  if (f.kind != SoundKind::flac && f.bytes > most_wav_bytes)
    throw_error(Exit::failed, "{}: a WAV file holds 4 GiB at most", f.name);
  errno = 0;
  if (f.kind == SoundKind::wav_f32) {
    if (sf_write_float(f.sound, samples.data(), count) != count) f.fail();
    return;
  }
  f.numbers.resize(samples.size());
  std::transform(samples.begin(), samples.end(), f.numbers.begin(),
                 [](float x) { return static_cast<short>(std::lrint(std::clamp(x * 32768.0f, -32768.0f, 32767.0f))); });
  if (sf_write_short(f.sound, f.numbers.data(), count) != count) f.fail();
}

void SoundWriter::commit() {
  File& f = *file_;
  errno = 0;
  if (sf_error(f.sound) != SF_ERR_NO_ERROR) f.fail();
  const int error = sf_close(std::exchange(f.sound, nullptr));
  if (error != 0) throw_error(Exit::failed, "{}: can't be written: {}", f.name, sf_error_number(error));
  f.file.commit();
}

}  // namespace consonant
