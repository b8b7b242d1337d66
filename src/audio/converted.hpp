// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "audio/audio_source.hpp"
#include "audio/frame_source.hpp"
#include "audio/read.hpp"

namespace consonant {

// Frames as the models take them: channels averaged, resampled, cut to the settings' offset and duration.
std::unique_ptr<AudioSource> convert_frames(std::unique_ptr<FrameSource> frames, std::string name,
                                            const ReadSettings& settings);

// Bad usage for an offset or a duration that is no time.
void check_times(const ReadSettings& settings);

}  // namespace consonant
