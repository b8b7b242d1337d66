// SPDX-License-Identifier: Apache-2.0
#include "audio/live.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <ctime>

#include "base/error.hpp"

namespace consonant {

namespace {

constexpr int64_t chunk = 4096;

}  // namespace

LiveAudio::LiveAudio(int64_t rate_in, double seconds, std::string name, std::function<bool()> alive)
    : name_(std::move(name)),
      alive_(std::move(alive)),
      rate_in_(static_cast<double>(rate_in)),
      resampler_(rate_in, rate),
      ring_(static_cast<size_t>(std::max(1.0, seconds * static_cast<double>(rate_in)))) {
  if (::sem_init(&news_, 0, 0) != 0) throw_error(Exit::failed, "{}: no semaphore can be had", name_);
}

LiveAudio::~LiveAudio() { ::sem_destroy(&news_); }

void LiveAudio::push(std::span<const float> samples) noexcept {
  const int64_t pushed = pushed_.load(std::memory_order_relaxed);
  const auto size = static_cast<int64_t>(ring_.size());
  const int64_t room = size - (pushed - taken_.load(std::memory_order_acquire));
  const int64_t n = std::min(room, static_cast<int64_t>(samples.size()));
  if (n < static_cast<int64_t>(samples.size())) lost_.store(true, std::memory_order_relaxed);
  for (int64_t i = 0; i < n; ++i) ring_[static_cast<size_t>((pushed + i) % size)] = samples[static_cast<size_t>(i)];
  pushed_.store(pushed + n, std::memory_order_release);
  ::sem_post(&news_);
}

void LiveAudio::stop() noexcept {
  stopped_.store(true);
  ::sem_post(&news_);
}

int64_t LiveAudio::read(std::span<float> to) {
  size_t done = 0;
  while (done < to.size()) {
    if (out_at_ == out_.size() && !refill()) break;
    const size_t n = std::min(to.size() - done, out_.size() - out_at_);
    std::copy_n(out_.begin() + static_cast<std::ptrdiff_t>(out_at_), n, to.begin() + static_cast<std::ptrdiff_t>(done));
    out_at_ += n;
    done += n;
  }
  return static_cast<int64_t>(done);
}

bool LiveAudio::refill() {
  out_.clear();
  out_at_ = 0;
  while (out_.empty() && !ended_) {
    // In this order: what was pushed before the stop is seen.
    const bool stopped = stopped_.load();
    const int64_t taken = taken_.load(std::memory_order_relaxed);
    const int64_t n = std::min(pushed_.load(std::memory_order_acquire) - taken, chunk);
    if (n == 0) {
      if (!stopped) {
        wait();
        continue;
      }
      end("");
      break;
    }
    in_.resize(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) {
      const float x = ring_[static_cast<size_t>((taken + i) % static_cast<int64_t>(ring_.size()))];
      in_[static_cast<size_t>(i)] = std::isfinite(x) ? std::clamp(x, -1.0f, 1.0f) : 0.0f;
    }
    taken_.store(taken + n, std::memory_order_release);
    if (lost_.load(std::memory_order_relaxed) && !std::exchange(said_lost_, true))
      warnings_.push_back(fmt::format("{}: sound came faster than it was read; some was lost after {:.1f} s", name_,
                                      static_cast<double>(taken + n) / rate_in_));
    resampler_.process(in_, out_);
  }
  for (float& x : out_) x = std::clamp(x, -1.0f, 1.0f);
  return !out_.empty();
}

void LiveAudio::wait() {
  timespec until{};
  ::clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += 1;
  while (::sem_timedwait(&news_, &until) != 0) {
    if (errno == EINTR) continue;
    // A driver that lost its device calls no more.
    if (errno == ETIMEDOUT && alive_ && !alive_()) end("it gives no more sound");
    return;
  }
}

void LiveAudio::end(const std::string& why) {
  ended_ = true;
  if (!why.empty()) warnings_.push_back(fmt::format("{}: {}", name_, why));
  resampler_.finish(out_);
}

}  // namespace consonant
