// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "audio/audio_source.hpp"

namespace consonant {

class MicrophoneSource : public AudioSource {
 public:
  virtual void stop() noexcept = 0;  // from any thread or a signal handler; reading ends after what was heard
};

// The default one. Exit code 4 if there is none, it can't be opened, or this program was built without PortAudio.
std::unique_ptr<MicrophoneSource> open_default_microphone();

}  // namespace consonant
