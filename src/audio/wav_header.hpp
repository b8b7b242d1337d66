// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "audio/byte_source.hpp"

namespace consonant {

enum class SampleKind { u8, s16, s24, s32, f32, f64, alaw, mulaw, other };

// Bytes of a stored sample; 0 for `other`.
int64_t sample_bytes(SampleKind kind);

struct WavHeader {
  SampleKind kind = SampleKind::other;
  int64_t rate = 0, channels = 0;
  int64_t data = -1;  // bytes of samples; -1: the header doesn't know, they go on to the end of the file
};

// Reads a RIFF, RF64 or BW64 header from the start of `bytes` up to the first sample. Returns at the format chunk, with
// kind `other`, if the samples are of a kind that isn't listed above.
WavHeader read_wav_header(ByteSource& bytes);

}  // namespace consonant
