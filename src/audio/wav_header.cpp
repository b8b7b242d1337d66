// SPDX-License-Identifier: Apache-2.0
#include "audio/wav_header.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <string>
#include <string_view>

#include "audio/frame_source.hpp"
#include "base/error.hpp"

namespace consonant {

namespace {

constexpr uint32_t unknown_size = 0xFFFFFFFF;
// Writers that can't go back put the largest size they dare: sox 0x7FFFF000, arecord 0x7FFFFFFF less a header, and so
// on.
constexpr uint32_t made_up_size = 0x7FFF0000;

constexpr int format_pcm = 1, format_float = 3, format_alaw = 6, format_mulaw = 7, format_extensible = 0xFFFE;

// The tail of the extensible format's identifier: its first two bytes are one of the numbers above.
constexpr std::array<uint8_t, 14> extensible_tail = {0x00, 0x00, 0x00, 0x00, 0x10, 0x00, 0x80,
                                                     0x00, 0x00, 0xaa, 0x00, 0x38, 0x9b, 0x71};

template <class T>
T number_at(std::span<const std::byte> bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

class HeaderReader {
 public:
  explicit HeaderReader(ByteSource& bytes) : bytes_(bytes) {}

  WavHeader read() {
    const std::array<std::byte, 12> riff = take<12>("the RIFF header");
    riff_size_ = number_at<uint32_t>(riff, 4);
    while (true) {
      Chunk chunk;
      if (!next(chunk)) bad_input("{}: has no 'data' chunk, so no samples", bytes_.name());
      if (chunk.id == "ds64") {
        read_ds64(chunk);
      } else if (chunk.id == "fmt ") {
        if (seen_format_) bad_input("{}: a second 'fmt ' chunk at byte {}", bytes_.name(), chunk.start);
        read_format(chunk);
        seen_format_ = true;
        if (header_.kind == SampleKind::other) return header_;
        bytes_.forget();
      } else if (chunk.id == "data") {
        if (!seen_format_)
          bad_input("{}: samples (chunk 'data' at byte {}) before their format (chunk 'fmt ')", bytes_.name(),
                    chunk.start);
        header_.data = data_size(chunk.size);
        return header_;
      }
      bytes_.skip(chunk.start + 8 + static_cast<int64_t>(chunk.size) - bytes_.position());
      odd_ = chunk.size % 2 == 1;
    }
  }

 private:
  struct Chunk {
    int64_t start = 0;
    std::string id;
    uint32_t size = 0;
  };

  template <size_t n>
  std::array<std::byte, n> take(std::string_view what) {
    std::array<std::byte, n> to;
    if (bytes_.read(to) < static_cast<int64_t>(n)) cut_off(what);
    return to;
  }

  [[noreturn]] void cut_off(std::string_view what) {
    bad_input("{}: ends within {}, after {} bytes", bytes_.name(), what, bytes_.position());
  }

  // False at the end of the file, also where a few stray bytes are left that can't be a chunk.
  bool next(Chunk& chunk) {
    std::array<std::byte, 8> head;
    int64_t have = 0;
    if (odd_) {
      // Chunks begin at even places, but some writers leave the filling byte out: then this is the first letter of the
      // next name.
      if (bytes_.read(std::span(head).first(1)) == 1 && std::isalpha(std::to_integer<int>(head[0]))) have = 1;
    }
    have += bytes_.read(std::span(head).subspan(static_cast<size_t>(have)));
    if (have < 8) return false;
    chunk.start = bytes_.position() - 8;
    chunk.id.assign(reinterpret_cast<const char*>(head.data()), 4);
    chunk.size = number_at<uint32_t>(head, 4);
    return true;
  }

  void read_ds64(const Chunk& chunk) {
    if (chunk.size < 16) bad_input("{}: a 'ds64' chunk of {} bytes, 24 or more expected", bytes_.name(), chunk.size);
    const std::array<std::byte, 16> body = take<16>("the 'ds64' chunk");
    large_size_ = number_at<uint64_t>(body, 8);
  }

  void read_format(const Chunk& chunk) {
    if (chunk.size < 14) bad_input("{}: a 'fmt ' chunk of {} bytes, 16 or more expected", bytes_.name(), chunk.size);
    std::array<std::byte, 40> body{};
    const int64_t wanted = std::min<int64_t>(chunk.size, body.size());
    if (bytes_.read(std::span(body).first(static_cast<size_t>(wanted))) < wanted) cut_off("the 'fmt ' chunk");
    int format = number_at<uint16_t>(body, 0);
    header_.channels = number_at<uint16_t>(body, 2);
    header_.rate = number_at<uint32_t>(body, 4);
    const int64_t block = number_at<uint16_t>(body, 12);
    const int bits = chunk.size >= 16 ? number_at<uint16_t>(body, 14) : 8;
    if (format == format_extensible && chunk.size >= 40 &&
        std::memcmp(body.data() + 26, extensible_tail.data(), extensible_tail.size()) == 0)
      format = number_at<uint16_t>(body, 24);
    check_layout(bytes_.name(), header_.rate, header_.channels);
    header_.kind = kind_of(format, bits, block);
  }

  SampleKind kind_of(int format, int bits, int64_t block) {
    if (format != format_pcm && format != format_float && format != format_alaw && format != format_mulaw)
      return SampleKind::other;
    SampleKind kind = SampleKind::other;
    const int64_t each = block % header_.channels == 0 ? block / header_.channels : 0;
    // A sample of an odd number of bits lies at the upper end of the bytes that it gets.
    if (format == format_pcm && bits >= 1 && bits <= 8 && each == 1) kind = SampleKind::u8;
    if (format == format_pcm && bits > 8 && bits <= 16 && each == 2) kind = SampleKind::s16;
    if (format == format_pcm && bits > 8 && bits <= 24 && each == 3) kind = SampleKind::s24;
    if (format == format_pcm && bits > 8 && bits <= 32 && each == 4) kind = SampleKind::s32;
    if (format == format_float && bits == 32 && each == 4) kind = SampleKind::f32;
    if (format == format_float && bits == 64 && each == 8) kind = SampleKind::f64;
    if (format == format_alaw && bits == 8 && each == 1) kind = SampleKind::alaw;
    if (format == format_mulaw && bits == 8 && each == 1) kind = SampleKind::mulaw;
    if (kind == SampleKind::other)
      bad_input("{}: the header contradicts itself: {} channels of {} bits in blocks of {} bytes (format {})",
                bytes_.name(), header_.channels, bits, block, format);
    return kind;
  }

  int64_t data_size(uint32_t size) const {
    if (size == unknown_size && large_size_ > 0 && large_size_ <= static_cast<uint64_t>(INT64_MAX))
      return static_cast<int64_t>(large_size_);
    const int64_t left = bytes_.size() < 0 ? -1 : bytes_.size() - bytes_.position();
    if (size >= made_up_size && (left < 0 || static_cast<int64_t>(size) > left)) return -1;
    // A size of 0 is true if the file's own size leaves room for other chunks; else the writer never came back to it.
    const bool more_chunks = riff_size_ > bytes_.position() - 8 && riff_size_ < made_up_size;
    if (size == 0 && !more_chunks) return -1;
    return size;
  }

  ByteSource& bytes_;
  WavHeader header_;
  bool seen_format_ = false, odd_ = false;
  uint32_t riff_size_ = 0;
  uint64_t large_size_ = 0;
};

}  // namespace

int64_t sample_bytes(SampleKind kind) {
  switch (kind) {
    case SampleKind::u8:
    case SampleKind::alaw:
    case SampleKind::mulaw:
      return 1;
    case SampleKind::s16:
      return 2;
    case SampleKind::s24:
      return 3;
    case SampleKind::s32:
    case SampleKind::f32:
      return 4;
    case SampleKind::f64:
      return 8;
    case SampleKind::other:
      break;
  }
  return 0;
}

WavHeader read_wav_header(ByteSource& bytes) {
  bytes.rewind();
  return HeaderReader(bytes).read();
}

}  // namespace consonant
