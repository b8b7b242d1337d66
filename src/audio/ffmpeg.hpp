// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "audio/byte_source.hpp"
#include "audio/frame_source.hpp"
#include "audio/read.hpp"

namespace consonant {

// The first sound track of `bytes` (a file on disk: a descriptor is needed) as an `ffmpeg` executable decodes it: a
// process of its own, whose WAV output is read through a pipe while it runs; it ends when the source does. Null if
// there is no such executable. Bad input, with what it said, if it can't read the file or falls silent for too long.
std::unique_ptr<FrameSource> open_with_ffmpeg(ByteSource& bytes, const ReadSettings& settings);

}  // namespace consonant
