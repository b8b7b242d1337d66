// SPDX-License-Identifier: Apache-2.0
#include "audio/wav.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <string_view>
#include <vector>

#include "audio/wav_header.hpp"
#include "base/error.hpp"

namespace consonant {

namespace {

// G.711: a sign, three bits of exponent and four of mantissa; A-law's even bits are inverted, mu-law's all bits.
float alaw_value(int code) {
  const int bits = code ^ 0x55;
  const int exponent = bits >> 4 & 7;
  const int mantissa = (bits & 15) * 2 + 1;
  const int magnitude = exponent == 0 ? mantissa * 8 : (mantissa + 32) * (8 << (exponent - 1));
  return static_cast<float>(bits & 0x80 ? magnitude : -magnitude) / 32768.0f;
}

float mulaw_value(int code) {
  const int bits = ~code & 0xff;
  const int magnitude = (((bits & 15) * 8 + 132) << (bits >> 4 & 7)) - 132;
  return static_cast<float>(bits & 0x80 ? -magnitude : magnitude) / 32768.0f;
}

std::array<float, 256> table_of(float (*value)(int)) {
  std::array<float, 256> table;
  for (int i = 0; i < 256; ++i) table[static_cast<size_t>(i)] = value(i);
  return table;
}

template <class Stored, class Convert>
void convert(const std::byte* from, std::span<float> to, Convert value) {
  for (size_t i = 0; i < to.size(); ++i) {
    Stored stored;
    std::memcpy(&stored, from + i * sizeof stored, sizeof stored);
    to[i] = value(stored);
  }
}

void decode(SampleKind kind, const std::byte* from, std::span<float> to) {
  static const std::array<float, 256> alaw = table_of(alaw_value), mulaw = table_of(mulaw_value);
  switch (kind) {
    case SampleKind::u8:
      return convert<uint8_t>(from, to, [](uint8_t x) { return static_cast<float>(x - 128) / 128.0f; });
    case SampleKind::s16:
      return convert<int16_t>(from, to, [](int16_t x) { return static_cast<float>(x) / 32768.0f; });
    case SampleKind::s24:
      return convert<std::array<uint8_t, 3>>(from, to, [](const std::array<uint8_t, 3>& b) {
        const auto x = static_cast<int32_t>(uint32_t{b[0]} << 8 | uint32_t{b[1]} << 16 | uint32_t{b[2]} << 24);
        return static_cast<float>(x) / 2147483648.0f;
      });
    case SampleKind::s32:
      return convert<int32_t>(from, to, [](int32_t x) { return static_cast<float>(x) / 2147483648.0f; });
    case SampleKind::f32:
      return convert<float>(from, to, [](float x) { return x; });
    case SampleKind::f64:
      // Beyond float's range is no sound; infinity says so without being undefined.
      return convert<double>(from, to, [](double x) {
        return x > 3e38 || x < -3e38 ? std::numeric_limits<float>::infinity() : static_cast<float>(x);
      });
    case SampleKind::alaw:
      return convert<uint8_t>(from, to, [](uint8_t x) { return alaw[x]; });
    case SampleKind::mulaw:
      return convert<uint8_t>(from, to, [](uint8_t x) { return mulaw[x]; });
    case SampleKind::other:
      break;
  }
}

// Samples one after the other from where `bytes` stands.
class PlainFrames : public FrameSource {
 public:
  PlainFrames(std::unique_ptr<ByteSource> bytes, const WavHeader& header)
      : bytes_(std::move(bytes)), kind_(header.kind) {
    set_layout(bytes_->name(), header.rate, header.channels);
    frame_bytes_ = sample_bytes(kind_) * channels();
    if (header.data >= 0) promised_ = left_ = header.data / frame_bytes_;
    if (bytes_->size() >= 0) {
      const int64_t there = std::max<int64_t>(bytes_->size() - bytes_->position(), 0) / frame_bytes_;
      frames_ = promised_ < 0 ? there : std::min(promised_, there);
    }
    if (frames_ < 0 && promised_ >= 0) frames_ = promised_;
    buffer_.resize(static_cast<size_t>(1024 * frame_bytes_));
    bytes_->forget();
  }

  int64_t read(std::span<float> to) override {
    const int64_t wanted = static_cast<int64_t>(to.size()) / channels();
    int64_t done = 0;
    while (done < wanted) {
      int64_t n = std::min<int64_t>(wanted - done, 1024);
      if (left_ >= 0) n = std::min(n, left_);
      if (n == 0) break;
      const int64_t came = bytes_->read(std::span(buffer_).first(static_cast<size_t>(n * frame_bytes_))) / frame_bytes_;
      decode(kind_, buffer_.data(),
             to.subspan(static_cast<size_t>(done * channels()), static_cast<size_t>(came * channels())));
      done += came;
      if (left_ >= 0) left_ -= came;
      if (came < n) break;
    }
    return done;
  }

  int64_t skip(int64_t frames) override {
    if (!bytes_->seekable()) return FrameSource::skip(frames);
    const int64_t there = std::max<int64_t>(bytes_->size() - bytes_->position(), 0) / frame_bytes_;
    const int64_t n = std::min({frames, there, left_ < 0 ? there : left_});
    bytes_->skip(n * frame_bytes_);
    if (left_ >= 0) left_ -= n;
    return n;
  }

 private:
  std::unique_ptr<ByteSource> bytes_;
  SampleKind kind_;
  int64_t frame_bytes_ = 0;
  int64_t left_ = -1;  // frames still promised; -1: unknown
  std::vector<std::byte> buffer_;
};

bool to_number(std::string_view text, int64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

}  // namespace

std::unique_ptr<FrameSource> open_wav(std::unique_ptr<ByteSource>& bytes) {
  const WavHeader header = read_wav_header(*bytes);
  if (header.kind == SampleKind::other) return nullptr;
  return std::make_unique<PlainFrames>(std::move(bytes), header);
}

std::unique_ptr<FrameSource> open_pcm(std::unique_ptr<ByteSource> bytes, const std::string& layout) {
  WavHeader header;
  const std::string_view text = layout;
  const size_t first = text.find(':');
  const size_t second = first == text.npos ? first : text.find(':', first + 1);
  const bool parts = second != text.npos && to_number(text.substr(0, first), header.rate) &&
                     to_number(text.substr(first + 1, second - first - 1), header.channels);
  const std::string_view kind = parts ? text.substr(second + 1) : "";
  if (kind == "s16") header.kind = SampleKind::s16;
  if (kind == "f32") header.kind = SampleKind::f32;
  if (header.kind == SampleKind::other)
    bad_usage("'{}': raw samples are told as RATE:CHANNELS:s16 or RATE:CHANNELS:f32, for example 16000:1:s16", layout);
  if (header.rate < FrameSource::least_rate || header.rate > FrameSource::most_rate)
    bad_usage("'{}': a rate of {} to {} can be read", layout, FrameSource::least_rate, FrameSource::most_rate);
  if (header.channels < 1 || header.channels > FrameSource::most_channels)
    bad_usage("'{}': 1 to {} channels can be read", layout, FrameSource::most_channels);
  return std::make_unique<PlainFrames>(std::move(bytes), header);
}

}  // namespace consonant
