// SPDX-License-Identifier: Apache-2.0
// A sound file of any bytes is read to its end or refused as bad input: every sample is finite and in -1 ... 1, and
// there are no more of them than were asked for.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "audio/read.hpp"
#include "base/error.hpp"

using namespace consonant;

// libsndfile forgets a Vorbis header when it refuses the file.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() { return "leak:libvorbis\n"; }

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  ReadSettings settings;
  settings.ffmpeg = "";  // another program's faults aren't ours to look for
  // The last byte says which part is read.
  if (size > 0) settings.offset = (data[size - 1] & 7) * 0.01;
  settings.duration = 20;
  try {
    const auto audio = read_audio_bytes({bytes, bytes + size}, "fuzz", settings);
    if (audio->length() < -1) std::abort();
    std::vector<float> block(4000);
    int64_t samples = 0;
    while (const int64_t n = audio->read(block)) {
      samples += n;
      for (int64_t i = 0; i < n; ++i)
        if (!(std::fabs(block[static_cast<size_t>(i)]) <= 1)) std::abort();
    }
    if (samples > 20 * AudioSource::rate || audio->warnings().size() > 4) std::abort();
  } catch (const Error& error) {
    if (error.exit() != Exit::input) std::abort();
  }
  return 0;
}
