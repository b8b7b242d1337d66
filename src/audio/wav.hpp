// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "audio/byte_source.hpp"
#include "audio/frame_source.hpp"

namespace consonant {

// A WAV file whose samples are plain numbers (unsigned 8 bits, signed 16 to 32, floats of 32 and 64) or A-law and
// mu-law bytes; null for other codecs. RF64 and BW64 too. `bytes` is rewound first and taken over if a source comes
// back. Bad input, with the fault, for a header that can't be used.
std::unique_ptr<FrameSource> open_wav(std::unique_ptr<ByteSource>& bytes);

// Samples without a header: "RATE:CHANNELS:s16" or "RATE:CHANNELS:f32", little-endian. Bad usage for other texts.
std::unique_ptr<FrameSource> open_pcm(std::unique_ptr<ByteSource> bytes, const std::string& layout);

}  // namespace consonant
