// SPDX-License-Identifier: Apache-2.0
// Files through a pipe, parts of a file, and what is no file.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "audio/test_support.hpp"

namespace consonant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A pipe into which a thread writes these bytes, a little at a time.
class Piped {
 public:
  explicit Piped(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {
    if (::pipe(ends_) != 0) std::abort();
    writer_ = std::thread([this] {
      for (size_t at = 0; at < bytes_.size();) {
        const ssize_t n = ::write(ends_[1], bytes_.data() + at, std::min<size_t>(bytes_.size() - at, 3001));
        if (n <= 0) break;
        at += static_cast<size_t>(n);
      }
      ::close(ends_[1]);
    });
  }
  Piped(const Piped&) = delete;
  Piped& operator=(const Piped&) = delete;
  ~Piped() {
    // So that a writer whose reader stopped early ends as well.
    std::vector<std::byte> rest(65536);
    while (::read(ends_[0], rest.data(), rest.size()) > 0) {
    }
    writer_.join();
    ::close(ends_[0]);
  }
  int descriptor() const { return ends_[0]; }

 private:
  std::vector<std::byte> bytes_;
  int ends_[2];
  std::thread writer_;
};

class ThroughAPipe : public ::testing::TestWithParam<const char*> {};

TEST_P(ThroughAPipe, IsTheSame) {
  const Piped pipe(bytes_of(clip_path(GetParam())));
  const auto audio = read_audio_stream(pipe.descriptor(), "");
  EXPECT_EQ(audio->name(), "standard input");
  EXPECT_EQ(all_of(*audio), samples_of_clip(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Formats, ThroughAPipe,
                         ::testing::Values("jfk.wav", "fmt_16k.flac", "fmt_16k_vorbis.ogg", "fmt_48k_opus.ogg",
                                           "jfk.mp3", "fmt_odd_chunks.wav", "fmt_streamed_sizes.wav", "fmt_8k_alaw.wav",
                                           "fmt_48k_stereo_s24_extensible.wav", "bad_truncated.wav",
                                           "bad_header_only.wav"));

TEST(Pipe, FaultsNameStandardInput) {
  const auto refusal = [](const char* name) {
    const Piped pipe(bytes_of(clip_path(name)));
    return message_of(Exit::input, [&] { read_audio_stream(pipe.descriptor(), ""); });
  };
  EXPECT_EQ(refusal("bad_empty.wav"), "standard input: is empty (0 bytes)");
  EXPECT_EQ(refusal("bad_text.wav"), "standard input: is text, not sound");
  EXPECT_EQ(refusal("bad_no_data_chunk.wav"), "standard input: has no 'data' chunk, so no samples");
}

TEST(Pipe, TruncationIsSaidAtTheEnd) {
  const Piped pipe(bytes_of(clip_path("bad_truncated.wav")));
  const auto audio = read_audio_stream(pipe.descriptor(), "");
  EXPECT_THAT(audio->warnings(), IsEmpty());
  all_of(*audio);
  EXPECT_THAT(audio->warnings(), ElementsAre(HasSubstr("after 1.875 s of the 2.990 s")));
}

TEST(Pipe, StoppedEarlyReadsNoFurther) {
  const Piped pipe(bytes_of(clip_path("jfk.wav")));
  ReadSettings settings;
  settings.duration = 0.5;
  EXPECT_EQ(all_of(*read_audio_stream(pipe.descriptor(), "", settings)).size(), 8000U);
  std::byte next;
  EXPECT_EQ(::read(pipe.descriptor(), &next, 1), 1);
}

TEST(Pipe, AFileAsStandardInputStaysWhereItIs) {
  const int file = ::open(clip_path("fmt_16k.flac").c_str(), O_RDONLY);
  EXPECT_EQ(all_of(*read_audio_stream(file, "")), samples_of_clip("fmt_16k.flac"));
  EXPECT_EQ(::lseek(file, 0, SEEK_CUR), 0);
  ::close(file);
}

// Parts of files that can seek, must skip, are resampled.
class Part : public ::testing::TestWithParam<const char*> {};

TEST_P(Part, IsAPartOfTheWhole) {
  const std::vector<float> whole = samples_of_clip(GetParam());
  ReadSettings settings;
  settings.offset = 1.25;
  settings.duration = 0.75;
  const auto audio = read_audio(clip_path(GetParam()), settings);
  EXPECT_EQ(audio->length(), 12000);
  const std::vector<float> part = all_of(*audio);
  ASSERT_EQ(part.size(), 12000U);
  EXPECT_THAT(audio->warnings(), IsEmpty());
  // The resampler's filter starts anew at the offset: its first samples lack what came before. So does Opus' decoder.
  double worst = 0;
  for (size_t i = 200; i < 12000; ++i)
    worst = std::max(worst, std::fabs(static_cast<double>(part[i]) - whole[20000 + i]));
  EXPECT_LT(worst, std::string(GetParam()) == "fmt_48k_opus.ogg" ? 2e-3 : 1e-4);

  const Piped pipe(bytes_of(clip_path(GetParam())));
  EXPECT_EQ(all_of(*read_audio_stream(pipe.descriptor(), "", settings)), part);
}

INSTANTIATE_TEST_SUITE_P(Formats, Part,
                         ::testing::Values("jfk.wav", "fmt_16k.flac", "jfk.mp3", "fmt_44k1_stereo_s16.wav",
                                           "fmt_8k_mulaw.wav", "fmt_16k_vorbis.ogg", "fmt_48k_opus.ogg",
                                           "fmt_streamed_sizes.wav"));

TEST(Times, OutsideTheSound) {
  ReadSettings settings;
  settings.offset = 3;
  auto audio = read_audio(clip_path("austen_0880.wav"), settings);
  EXPECT_EQ(audio->length(), 0);
  EXPECT_THAT(all_of(*audio), IsEmpty());
  EXPECT_THAT(audio->warnings(), ElementsAre(HasSubstr("nothing is left after 3.000 s: the sound ends at 2.990 s")));
  settings.offset = 1e300;
  EXPECT_THAT(samples_of_clip("fmt_16k.flac", settings), IsEmpty());
  settings.offset = 2.98;
  settings.duration = 1e300;
  EXPECT_EQ(samples_of_clip("austen_0880.wav", settings).size(), 160U);
  settings.duration = 0;
  EXPECT_THAT(samples_of_clip("austen_0880.wav", settings), IsEmpty());
}

TEST(Times, ThatAreNoneAreWrongUsage) {
  for (const double offset : {-1.0, std::nan("")}) {
    ReadSettings settings;
    settings.offset = offset;
    EXPECT_THAT(message_of(Exit::usage, [&] { read_audio(clip_path("jfk.wav"), settings); }),
                HasSubstr("an offset of"));
  }
  ReadSettings settings;
  settings.duration = std::nan("");
  EXPECT_THAT(message_of(Exit::usage, [&] { read_audio(clip_path("jfk.wav"), settings); }), HasSubstr("a duration"));
}

TEST(Open, WhatIsNoFile) {
  const TemporaryFolder folder;
  EXPECT_EQ(message_of(Exit::input, [&] { read_audio(folder / "none.wav"); }),
            (folder / "none.wav") + ": can't be opened: No such file or directory");
  EXPECT_EQ(message_of(Exit::input, [&] { read_audio(folder / ""); }),
            (folder / "") + ": is a folder, not a sound file");
}

TEST(Open, ANamedPipeIsAStream) {
  const TemporaryFolder folder;
  const std::string path = folder / "pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  std::thread writer([&] {
    const std::vector<std::byte> bytes = bytes_of(clip_path("fmt_16k.flac"));
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
  });
  EXPECT_EQ(all_of(*read_audio(path)), samples_of_clip("fmt_16k.flac"));
  writer.join();
}

TEST(Open, SaysWhatAFileIsThatIsNoSound) {
  ReadSettings settings;
  settings.ffmpeg = "";
  const auto refusal = [&](std::string_view start) {
    std::vector<std::byte> bytes(600);
    std::memcpy(bytes.data(), start.data(), start.size());
    return message_of(Exit::input, [&] { read_audio_bytes(bytes, "x", settings); });
  };
  EXPECT_EQ(refusal("%PDF-1.4"), "x: is a PDF document, not sound");
  EXPECT_EQ(refusal("PK\x03\x04"), "x: is a zip archive, not sound");
  EXPECT_EQ(refusal("\x1a\x45\xdf\xa3"),
            "x: Matroska (webm, mkv) is read through an ffmpeg executable, and none is on the PATH: install ffmpeg");
  EXPECT_EQ(refusal("\xff\xf1\x50"),
            "x: AAC is read through an ffmpeg executable, and none is on the PATH: install ffmpeg");
  EXPECT_EQ(
      refusal("\x01\x02\x03\x04\x05\x06\x07\x08"),
      "x: not a sound format that is known here (it begins with 01 02 03 04 05 06 07 08); an ffmpeg executable on the "
      "PATH might read it, and there is none: install ffmpeg");
  EXPECT_THAT(refusal("fLaC"), HasSubstr("x: FLAC that can't be read: "));
  EXPECT_THAT(refusal("OggS"), HasSubstr("x: Ogg that can't be read: "));
}

// A damaged FLAC file gives what comes before the damage.
TEST(Damaged, FlacCutInTheMiddle) {
  std::vector<std::byte> bytes = bytes_of(clip_path("fmt_16k.flac"));
  bytes.resize(bytes.size() / 2);
  const auto audio = read_audio_bytes(bytes, "x.flac");
  const std::vector<float> samples = all_of(*audio), whole = samples_of_clip("fmt_16k.flac");
  ASSERT_GT(samples.size(), 16000U);
  ASSERT_LT(samples.size(), whole.size());
  EXPECT_TRUE(std::equal(samples.begin(), samples.begin() + 16000, whole.begin()));
  EXPECT_THAT(audio->warnings(), ElementsAre(HasSubstr("x.flac: is cut off: it ends after")));
}

// An hour through a pipe, in no more memory than a second.
TEST(Memory, DoesNotGrowWithTheSound) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  constexpr int64_t seconds = 3600;
  std::thread writer([&] {
    const std::vector<int16_t> second(44100, 1000);
    for (int64_t i = 0; i < seconds; ++i)
      for (size_t at = 0; at < second.size() * 2;)
        at += static_cast<size_t>(
            ::write(ends[1], reinterpret_cast<const char*>(second.data()) + at, second.size() * 2 - at));
    ::close(ends[1]);
  });
  const auto audio = read_audio_stream(ends[0], "44100:1:s16");
  std::vector<float> block(16000);
  audio->read(block);
  rusage before{}, after{};
  ::getrusage(RUSAGE_SELF, &before);
  int64_t samples = 16000;
  while (const int64_t n = audio->read(block)) samples += n;
  ::getrusage(RUSAGE_SELF, &after);
  writer.join();
  ::close(ends[0]);
  EXPECT_EQ(samples, seconds * 16000);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 4096);  // KiB
}

}  // namespace
}  // namespace consonant
