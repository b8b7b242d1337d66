// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace consonant {

// Who reads a file, judged by its first bytes.
enum class Reader { wav, sndfile, ffmpeg, nobody };

struct Container {
  Reader reader = Reader::ffmpeg;
  std::string_view name;  // for messages; empty: not known
};

inline constexpr size_t container_bytes = 512;  // as many as there are, up to these, are looked at
Container identify_container(std::span<const std::byte> first);

}  // namespace consonant
