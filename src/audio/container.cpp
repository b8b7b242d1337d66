// SPDX-License-Identifier: Apache-2.0
#include "audio/container.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace consonant {

namespace {

using std::string_view_literals::operator""sv;

struct Signature {
  size_t at;
  std::string_view bytes;
  Container container;
};

// The first that fits. libsndfile gets only what is listed here: its readers of formats nobody uses have had faults.
constexpr std::array signatures = {
    Signature{8, "AVI "sv, {Reader::ffmpeg, "AVI"}},
    Signature{0, "fLaC"sv, {Reader::sndfile, "FLAC"}},
    Signature{0, "OggS"sv, {Reader::sndfile, "Ogg"}},
    Signature{0, "RIFX"sv, {Reader::sndfile, "big-endian WAV"}},
    Signature{0, "riff\x2e\x91\xcf\x11"sv, {Reader::sndfile, "Wave64"}},
    Signature{0, "FORM"sv, {Reader::sndfile, "AIFF"}},
    Signature{0, "caff"sv, {Reader::sndfile, "CAF"}},
    Signature{0, ".snd"sv, {Reader::sndfile, "AU"}},
    Signature{0, "NIST_1A"sv, {Reader::sndfile, "NIST SPHERE"}},
    Signature{0, "ID3"sv, {Reader::sndfile, "MP3"}},
    Signature{4, "ftyp"sv, {Reader::ffmpeg, "MP4 (m4a, mp4, mov, 3gp)"}},
    Signature{0, "\x1a\x45\xdf\xa3"sv, {Reader::ffmpeg, "Matroska (webm, mkv)"}},
    Signature{0, "#!AMR"sv, {Reader::ffmpeg, "AMR"}},
    Signature{0, "\x30\x26\xb2\x75\x8e\x66\xcf\x11"sv, {Reader::ffmpeg, "Windows Media (wma, asf)"}},
    Signature{0, "wvpk"sv, {Reader::ffmpeg, "WavPack"}},
    Signature{0, "MAC "sv, {Reader::ffmpeg, "Monkey's Audio"}},
    Signature{0, "FLV\x01"sv, {Reader::ffmpeg, "Flash video"}},
    Signature{0, ".RMF"sv, {Reader::ffmpeg, "RealMedia"}},
    Signature{0, "\x00\x00\x01\xba"sv, {Reader::ffmpeg, "MPEG video"}},
    Signature{0, "\x0b\x77"sv, {Reader::ffmpeg, "AC-3"}},
    Signature{0, "%PDF"sv, {Reader::nobody, "a PDF document"}},
    Signature{0, "\x89PNG"sv, {Reader::nobody, "a PNG image"}},
    Signature{0, "\xff\xd8\xff"sv, {Reader::nobody, "a JPEG image"}},
    Signature{0, "GIF8"sv, {Reader::nobody, "a GIF image"}},
    Signature{0, "PK\x03\x04"sv, {Reader::nobody, "a zip archive"}},
    Signature{0, "\x1f\x8b"sv, {Reader::nobody, "a gzip archive"}},
    Signature{0, "\x28\xb5\x2f\xfd"sv, {Reader::nobody, "a zstd archive"}},
    Signature{0, "7z\xbc\xaf\x27\x1c"sv, {Reader::nobody, "a 7z archive"}},
    Signature{0,
              "\x7f"
              "ELF"sv,
              {Reader::nobody, "a program"}},
    Signature{0, "MThd"sv, {Reader::nobody, "MIDI, notes rather than sound"}},
    Signature{0, "GGUF"sv, {Reader::nobody, "a model"}},
};

bool is_text(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(),
                     [](char c) {
                       const auto byte = static_cast<uint8_t>(c);
                       return (byte >= 0x20 && byte != 0x7f) || c == '\t' || c == '\n' || c == '\r' || c == '\f';
                     }) &&
         std::count_if(bytes.begin(), bytes.end(), [](char c) { return (c & 0x80) != 0; }) * 2 <= std::ssize(bytes);
}

}  // namespace

Container identify_container(std::span<const std::byte> first) {
  const std::string_view bytes(reinterpret_cast<const char*>(first.data()), std::min(first.size(), container_bytes));
  const auto holds = [&](size_t at, std::string_view part) {
    return bytes.size() >= at && bytes.substr(at, part.size()) == part;
  };
  for (const std::string_view riff : {"RIFF"sv, "RF64"sv, "BW64"sv})
    if (holds(0, riff) && (bytes.size() < 12 || holds(8, "WAVE"))) return {Reader::wav, "WAV"};
  for (const Signature& s : signatures)
    if (holds(s.at, s.bytes)) return s.container;
  if (is_text(bytes)) return {Reader::nobody, "text"};
  // MPEG audio begins with eleven ones, then two bits of version and two of layer: 0 in AAC.
  if (bytes.size() >= 2 && bytes[0] == '\xff' && (bytes[1] & 0xe0) == 0xe0) {
    if ((bytes[1] & 0x06) == 0) return {Reader::ffmpeg, "AAC"};
    return {Reader::sndfile, "MP3"};
  }
  return {};
}

}  // namespace consonant
