// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "audio/byte_source.hpp"
#include "audio/frame_source.hpp"

namespace consonant {

// What libsndfile reads. `bytes` must be seekable and is taken over if a source comes back; else null comes back, and
// in `refusal` why.
std::unique_ptr<FrameSource> open_with_sndfile(std::unique_ptr<ByteSource>& bytes, std::string& refusal);

}  // namespace consonant
