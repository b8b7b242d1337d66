// SPDX-License-Identifier: Apache-2.0
// Headers as writers make them, well and badly; raw samples.
#include "audio/wav.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <limits>

#include "audio/test_support.hpp"

namespace consonant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Bytes {
 public:
  Bytes& text(std::string_view t) {
    for (const char c : t) bytes_.push_back(static_cast<std::byte>(c));
    return *this;
  }
  template <class T>
  Bytes& number(T value) {
    for (size_t i = 0; i < sizeof(T); ++i)
      bytes_.push_back(static_cast<std::byte>(static_cast<uint64_t>(value) >> (8 * i)));
    return *this;
  }
  Bytes& add(const Bytes& other) {
    bytes_.insert(bytes_.end(), other.bytes_.begin(), other.bytes_.end());
    return *this;
  }
  size_t size() const { return bytes_.size(); }
  std::vector<std::byte> take() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

struct Layout {
  int format = 1, channels = 1;
  uint32_t rate = 16000;
  int block = 2, bits = 16;
};

Bytes format_chunk(const Layout& l) {
  Bytes b;
  b.text("fmt ").number<uint32_t>(16).number<uint16_t>(static_cast<uint16_t>(l.format));
  b.number<uint16_t>(static_cast<uint16_t>(l.channels)).number<uint32_t>(l.rate);
  b.number<uint32_t>(l.rate * static_cast<uint32_t>(l.block)).number<uint16_t>(static_cast<uint16_t>(l.block));
  return b.number<uint16_t>(static_cast<uint16_t>(l.bits));
}

Bytes chunk(std::string_view id, const Bytes& body) {
  Bytes b;
  return b.text(id).number<uint32_t>(static_cast<uint32_t>(body.size())).add(body);
}

std::vector<std::byte> riff(const Bytes& body, uint32_t size = 0, std::string_view id = "RIFF") {
  Bytes b;
  b.text(id).number<uint32_t>(size ? size : static_cast<uint32_t>(body.size() + 4)).text("WAVE").add(body);
  return b.take();
}

std::unique_ptr<AudioSource> opened(const std::vector<std::byte>& bytes) {
  ReadSettings settings;
  settings.ffmpeg = "";
  return read_audio_bytes(bytes, "x.wav", settings);
}

std::vector<float> read(const std::vector<std::byte>& bytes) { return all_of(*opened(bytes)); }
std::string refusal(const std::vector<std::byte>& bytes) {
  return message_of(Exit::input, [&] { opened(bytes); });
}

std::vector<float> read(const Layout& layout, const Bytes& samples) {
  return read(riff(Bytes().add(format_chunk(layout)).add(chunk("data", samples))));
}

TEST(Wav, EachKindOfSample) {
  EXPECT_THAT(read({1, 1, 16000, 1, 8}, Bytes().number<uint8_t>(128).number<uint8_t>(0).number<uint8_t>(192)),
              ElementsAre(0, -1, 0.5f));
  EXPECT_THAT(read({1, 1, 16000, 2, 16}, Bytes().number<int16_t>(-32768).number<int16_t>(1)),
              ElementsAre(-1, 1.0f / 32768));
  EXPECT_THAT(read({1, 1, 16000, 3, 24}, Bytes().text("\x01").number<uint16_t>(0).number<uint16_t>(0).text("\x80")),
              ElementsAre(1.0f / 8388608, -1));
  EXPECT_THAT(read({1, 1, 16000, 4, 32}, Bytes().number<int32_t>(1 << 30).number<int32_t>(-(1 << 29))),
              ElementsAre(0.5f, -0.25f));
  // 24 bits in four bytes lie at the upper end.
  EXPECT_THAT(read({1, 1, 16000, 4, 24}, Bytes().number<int32_t>(1 << 30)), ElementsAre(0.5f));
  EXPECT_THAT(read({3, 1, 16000, 4, 32}, Bytes().number(std::bit_cast<uint32_t>(-0.75f))), ElementsAre(-0.75f));
  EXPECT_THAT(
      read({3, 1, 16000, 8, 64}, Bytes().number(std::bit_cast<uint64_t>(0.125)).number(std::bit_cast<uint64_t>(1e300))),
      ElementsAre(0.125f, 0));
  // G.711's loudest, softest and middle codes.
  EXPECT_THAT(read({6, 1, 16000, 1, 8}, Bytes().text("\xaa\x2a\xd5\x55")),
              ElementsAre(32256.0f / 32768, -32256.0f / 32768, 8.0f / 32768, -8.0f / 32768));
  EXPECT_THAT(read({7, 1, 16000, 1, 8}, Bytes().number<uint8_t>(0x80).number<uint8_t>(0).number<uint8_t>(0xff)),
              ElementsAre(32124.0f / 32768, -32124.0f / 32768, 0));
}

TEST(Wav, ChannelsAreAveraged) {
  EXPECT_THAT(read({1, 2, 16000, 4, 16}, Bytes().number<int16_t>(16384).number<int16_t>(-8192)), ElementsAre(0.125f));
  EXPECT_THAT(read({1, 3, 16000, 3, 8}, Bytes().number<uint8_t>(128).number<uint8_t>(128).number<uint8_t>(224)),
              ElementsAre(0.25f));
}

TEST(Wav, HeadersThatNobodyCameBackToFillIn) {
  const Bytes samples = Bytes().number<int16_t>(16384).number<int16_t>(8192);
  for (const uint32_t size : {0u, 0xFFFFFFFFu, 0x7FFFF000u, 0x7FFFFFFFu, 0x80000000u}) {
    const auto bytes =
        riff(Bytes().add(format_chunk({})).text("data").number<uint32_t>(size).add(samples), size == 0 ? 36 : size);
    const auto audio = opened(bytes);
    EXPECT_EQ(audio->length(), 2) << size;
    EXPECT_THAT(all_of(*audio), ElementsAre(0.5f, 0.25f)) << size;
    EXPECT_TRUE(audio->warnings().empty()) << size;
  }
  // An empty chunk with others behind it is what it says.
  EXPECT_TRUE(read(riff(Bytes().add(format_chunk({})).add(chunk("data", {})).add(chunk("LIST", samples)))).empty());
}

TEST(Wav, LargeSizesOfRf64) {
  const Bytes samples = Bytes().number<int16_t>(16384);
  const Bytes sizes = Bytes().number<uint64_t>(100).number<uint64_t>(2).number<uint64_t>(1).number<uint32_t>(0);
  Bytes body = chunk("ds64", sizes);
  body.add(format_chunk({})).text("data").number<uint32_t>(0xFFFFFFFF).add(samples).add(chunk("LIST", samples));
  EXPECT_THAT(read(riff(body, 0xFFFFFFFF, "RF64")), ElementsAre(0.5f));
  EXPECT_THAT(read(riff(body, 0xFFFFFFFF, "BW64")), ElementsAre(0.5f));
}

TEST(Wav, AnOddChunkWithoutItsFillingByte) {
  const Bytes samples = Bytes().number<int16_t>(16384);
  const auto bytes =
      riff(Bytes().add(chunk("junk", Bytes().text("abc"))).add(format_chunk({})).add(chunk("data", samples)));
  EXPECT_THAT(read(bytes), ElementsAre(0.5f));
}

TEST(Wav, ContradictionsAreRefused) {
  const Bytes samples = Bytes().number<int16_t>(1);
  const auto file = [&](const Layout& layout) {
    return riff(Bytes().add(format_chunk(layout)).add(chunk("data", samples)));
  };
  EXPECT_EQ(refusal(file({1, 0})), "x.wav: the header says 0 channels; 1 to 256 can be read");
  EXPECT_EQ(refusal(file({1, 1, 4000000000u})),
            "x.wav: the header says 4000000000 samples a second; 1000 to 768000 can be read");
  EXPECT_EQ(refusal(file({1, 2, 16000, 3, 16})),
            "x.wav: the header contradicts itself: 2 channels of 16 bits in blocks of 3 bytes (format 1)");
  EXPECT_EQ(refusal(file({1, 1, 16000, 0, 16})),
            "x.wav: the header contradicts itself: 1 channels of 16 bits in blocks of 0 bytes (format 1)");
  EXPECT_EQ(refusal(file({3, 1, 16000, 2, 16})),
            "x.wav: the header contradicts itself: 1 channels of 16 bits in blocks of 2 bytes (format 3)");
  EXPECT_EQ(refusal(riff(chunk("data", samples))),
            "x.wav: samples (chunk 'data' at byte 12) before their format (chunk 'fmt ')");
  EXPECT_EQ(refusal(riff(chunk("fmt ", samples))), "x.wav: a 'fmt ' chunk of 2 bytes, 16 or more expected");
  EXPECT_EQ(refusal(riff(Bytes().add(format_chunk({})).add(format_chunk({})))),
            "x.wav: a second 'fmt ' chunk at byte 36");
  EXPECT_EQ(refusal(Bytes().text("RIFF\x01").number<uint8_t>(0).take()),
            "x.wav: ends within the RIFF header, after 6 bytes");
  EXPECT_THAT(refusal(file({0x4242, 1})), HasSubstr("x.wav: WAV that can't be read: "));
}

TEST(Wav, EveryCutOfAFileIsReadOrRefused) {
  Bytes samples;
  for (int i = 0; i < 8; ++i) samples.number<int16_t>(static_cast<int16_t>(i * 1000));
  const auto whole =
      riff(Bytes().add(chunk("LIST", Bytes().text("abcdef"))).add(format_chunk({})).add(chunk("data", samples)));
  for (size_t n = 1; n < whole.size(); ++n) {
    const std::vector<std::byte> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n));
    if (n < 58) {  // the first byte of a sample
      EXPECT_NE(refusal(cut), "no error") << n;
      continue;
    }
    const auto audio = opened(cut);
    EXPECT_EQ(all_of(*audio).size(), (n - 58) / 2) << n;
    EXPECT_EQ(audio->warnings().size(), 1U) << n;
  }
}

TEST(Wav, FarTooLoudIsCutOffWithOneWarning) {
  const auto samples = Bytes()
                           .number(std::bit_cast<uint32_t>(1.5f))
                           .number(std::bit_cast<uint32_t>(-30000.0f))
                           .number(std::bit_cast<uint32_t>(std::numeric_limits<float>::max()));
  const auto audio = opened(riff(Bytes().add(format_chunk({3, 1, 16000, 4, 32})).add(chunk("data", samples))));
  EXPECT_THAT(all_of(*audio), ElementsAre(1, -1, 1));
  EXPECT_THAT(audio->warnings(), ElementsAre(HasSubstr("samples far beyond -1 ... 1, the first at 0.000 s (-30000)")));
}

class Given {
 public:
  explicit Given(const std::vector<std::byte>& bytes) {
    if (::pipe(ends_) != 0 || ::write(ends_[1], bytes.data(), bytes.size()) != std::ssize(bytes)) std::abort();
    ::close(ends_[1]);
  }
  Given(const Given&) = delete;
  Given& operator=(const Given&) = delete;
  ~Given() { ::close(ends_[0]); }
  int descriptor() const { return ends_[0]; }

 private:
  int ends_[2];
};

TEST(Pcm, SamplesWithoutAHeader) {
  const Given s16(Bytes().number<int16_t>(16384).number<int16_t>(8192).number<int16_t>(-32768).take());
  EXPECT_THAT(all_of(*read_audio_stream(s16.descriptor(), "16000:1:s16")), ElementsAre(0.5f, 0.25f, -1));
  const Given f32(Bytes().number(std::bit_cast<uint32_t>(0.5f)).number(std::bit_cast<uint32_t>(0.25f)).take());
  EXPECT_THAT(all_of(*read_audio_stream(f32.descriptor(), "16000:2:f32")), ElementsAre(0.375f));
  const Given none({});
  EXPECT_TRUE(all_of(*read_audio_stream(none.descriptor(), "16000:1:s16")).empty());
}

TEST(Pcm, OtherLayoutsAreWrongUsage) {
  const Given none({});
  for (const char* layout : {"16000", "16000:1", "16000:1:s24", "16000::s16", ":1:s16", "16000:1:s16:", "1e4:1:s16",
                             "999:1:s16", "16000:0:s16", "16000:257:s16", "-16000:1:s16", "99999999999999999999:1:s16"})
    EXPECT_THAT(message_of(Exit::usage, [&] { read_audio_stream(none.descriptor(), layout); }),
                HasSubstr("'" + std::string(layout) + "': "));
}

}  // namespace
}  // namespace consonant
