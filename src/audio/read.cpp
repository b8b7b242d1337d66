// SPDX-License-Identifier: Apache-2.0
#include "audio/read.hpp"

#include "audio/byte_source.hpp"
#include "audio/container.hpp"
#include "audio/converted.hpp"
#include "audio/ffmpeg.hpp"
#include "audio/sndfile_frames.hpp"
#include "audio/wav.hpp"
#include "base/error.hpp"

namespace consonant {

namespace {

std::string in_hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte b : bytes) text += fmt::format("{}{:02x}", text.empty() ? "" : " ", std::to_integer<int>(b));
  return text;
}

// Tried after libsndfile, whose refusal is empty if the format isn't one of its own.
std::unique_ptr<FrameSource> by_ffmpeg(ByteSource& bytes, const Container& container, const std::string& refusal,
                                       const std::string& start, const ReadSettings& settings) {
  const std::string name = container.name.empty() ? "" : std::string(container.name);
  try {
    if (auto frames = open_with_ffmpeg(bytes, settings)) return frames;
  } catch (const Error& error) {
    if (error.exit() != Exit::input || refusal.empty()) throw;
    bad_input("{}: {} that can't be read: {}; tried with ffmpeg as well: {}", bytes.name(), name, refusal,
              std::string_view(error.what()).substr(bytes.name().size() + 2));
  }
  if (!refusal.empty())
    bad_input(
        "{}: {} that can't be read: {}. If the file isn't damaged, an ffmpeg executable on the PATH might read it",
        bytes.name(), name, refusal);
  if (!name.empty())
    bad_input("{}: {} is read through an ffmpeg executable, and none is on the PATH: install ffmpeg", bytes.name(),
              name);
  bad_input(
      "{}: not a sound format that is known here (it begins with {}); an ffmpeg executable on the PATH might read "
      "it, and there is none: install ffmpeg",
      bytes.name(), start);
}

std::unique_ptr<FrameSource> open_frames(std::unique_ptr<ByteSource> bytes, const ReadSettings& settings) {
  std::array<std::byte, container_bytes> block;
  bytes->rewind();
  const auto first = std::span(block).first(static_cast<size_t>(bytes->read(block)));
  bytes->rewind();
  if (first.empty()) bad_input("{}: is empty (0 bytes)", bytes->name());
  const Container container = identify_container(first);
  if (container.reader == Reader::nobody) bad_input("{}: is {}, not sound", bytes->name(), container.name);
  if (container.reader == Reader::wav) {
    if (auto frames = open_wav(bytes)) return frames;
    bytes->rewind();
  }
  if (!bytes->seekable()) bytes = spool(*bytes);
  std::string refusal;
  if (container.reader != Reader::ffmpeg)
    if (auto frames = open_with_sndfile(bytes, refusal)) return frames;
  if (bytes->descriptor() < 0 && !settings.ffmpeg.empty()) {
    bytes->rewind();
    bytes = spool(*bytes);
  }
  return by_ffmpeg(*bytes, container, refusal, in_hex(first.first(std::min<size_t>(first.size(), 8))), settings);
}

std::unique_ptr<AudioSource> open_source(std::unique_ptr<ByteSource> bytes, const ReadSettings& settings) {
  std::string name = bytes->name();
  return convert_frames(open_frames(std::move(bytes), settings), std::move(name), settings);
}

}  // namespace

std::unique_ptr<AudioSource> read_audio(const std::string& path, const ReadSettings& settings) {
  check_times(settings);
  return open_source(open_bytes(path), settings);
}

std::unique_ptr<AudioSource> read_audio_stream(int descriptor, const std::string& pcm, const ReadSettings& settings,
                                               const std::string& name) {
  check_times(settings);
  auto bytes = bytes_of_descriptor(descriptor, name);
  if (pcm.empty()) return open_source(std::move(bytes), settings);
  return convert_frames(open_pcm(std::move(bytes), pcm), name, settings);
}

std::unique_ptr<AudioSource> read_audio_bytes(std::vector<std::byte> bytes, const std::string& name,
                                              const ReadSettings& settings) {
  check_times(settings);
  return open_source(bytes_of_memory(std::move(bytes), name), settings);
}

}  // namespace consonant
