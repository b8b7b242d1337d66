// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <semaphore.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "audio/audio_source.hpp"
#include "audio/resample.hpp"

namespace consonant {

// Sound that comes by itself: one thread pushes, another reads and waits for what isn't there yet, until `stop`.
class LiveAudio : public AudioSource {
 public:
  // Holds `seconds` that weren't read yet; what comes beyond is lost. `alive` is asked while nothing comes.
  LiveAudio(int64_t rate_in, double seconds, std::string name, std::function<bool()> alive);
  ~LiveAudio() override;

  // By one thread; never waits, so that a sound driver may call it.
  void push(std::span<const float> samples) noexcept;
  // From any thread or a signal handler. What was pushed before can still be read.
  void stop() noexcept;

  int64_t read(std::span<float> to) override;
  int64_t length() const override { return -1; }
  const std::vector<std::string>& warnings() const override { return warnings_; }
  std::string name() const override { return name_; }

 private:
  bool refill();  // waits; false at the end
  void wait();
  void end(const std::string& why);

  std::string name_;
  std::function<bool()> alive_;
  double rate_in_;
  Resampler resampler_;
  std::vector<float> ring_;
  std::atomic<int64_t> pushed_{0}, taken_{0};  // samples since the start; modulo the ring's size, where they lie
  std::atomic<bool> stopped_{false}, lost_{false};
  sem_t news_;
  std::vector<float> in_, out_;
  size_t out_at_ = 0;
  bool ended_ = false, said_lost_ = false;
  std::vector<std::string> warnings_;
};

}  // namespace consonant
