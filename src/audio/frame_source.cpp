// SPDX-License-Identifier: Apache-2.0
#include "audio/frame_source.hpp"

#include <algorithm>
#include <vector>

#include "base/error.hpp"

namespace consonant {

int64_t FrameSource::skip(int64_t frames) {
  std::vector<float> sink(static_cast<size_t>(1024 * channels_));
  int64_t done = 0;
  while (done < frames) {
    const int64_t wanted = std::min<int64_t>(frames - done, 1024);
    const int64_t n = read(std::span(sink).first(static_cast<size_t>(wanted * channels_)));
    done += n;
    if (n < wanted) break;
  }
  return done;
}

void FrameSource::set_layout(const std::string& name, int64_t rate, int64_t channels) {
  check_layout(name, rate, channels);
  rate_ = rate;
  channels_ = channels;
}

void check_layout(const std::string& name, int64_t rate, int64_t channels) {
  constexpr int64_t least = FrameSource::least_rate, most = FrameSource::most_rate;
  if (channels < 1 || channels > FrameSource::most_channels)
    bad_input("{}: the header says {} channels; 1 to {} can be read", name, channels, FrameSource::most_channels);
  if (rate < least || rate > most)
    bad_input("{}: the header says {} samples a second; {} to {} can be read", name, rate, least, most);
}

}  // namespace consonant
