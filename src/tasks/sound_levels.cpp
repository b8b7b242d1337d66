// SPDX-License-Identifier: Apache-2.0
#include "tasks/sound_levels.hpp"

#include <algorithm>
#include <cmath>

namespace consonant {

namespace {

double mean(std::span<const float> samples) {
  double sum = 0;
  for (const float x : samples) sum += double(x);
  return sum / double(std::max<size_t>(1, samples.size()));
}

// Without the constant that a faulty input adds, which nobody hears.
double level(std::span<const float> samples, double constant) {
  double energy = 0;
  for (const float x : samples) energy += (double(x) - constant) * (double(x) - constant);
  return 10 * std::log10(std::max(1e-12, energy / double(std::max<size_t>(1, samples.size()))));
}

double quantile(std::vector<float> values, double share) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(share * double(values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return double(*at);
}

}  // namespace

SoundLevels::SoundLevels(std::span<const float> samples, double& loudest) {
  const double constant = mean(samples);
  for (size_t at = 0; at < samples.size(); at += frame) {
    const double db = level(samples.subspan(at, std::min<size_t>(frame, samples.size() - at)), constant);
    decibels_.push_back(static_cast<float>(db));
    loudest = std::max(loudest, db);
  }
  audible_ = std::max(-80.0, std::min(-60.0, loudest - 50));
  if (decibels_.empty()) return;
  const double top = quantile(decibels_, 0.99), floor = quantile(decibels_, 0.1);
  if (top - floor > 15 && top > audible_) threshold_ = std::max(top - 35, floor + 0.35 * (top - floor));
}

int64_t SoundLevels::silent_frames() const {
  const auto heard = std::find_if(decibels_.begin(), decibels_.end(), [&](float db) { return double(db) >= audible_; });
  return heard - decibels_.begin();
}

bool SoundLevels::steady() const {
  constexpr size_t part = 10;
  std::vector<float> parts;
  for (size_t at = 0; at + part <= decibels_.size(); at += part) {
    double energy = 0;
    for (size_t i = at; i < at + part; ++i) energy += std::pow(10, double(decibels_[i]) / 10);
    parts.push_back(static_cast<float>(10 * std::log10(energy)));
  }
  if (parts.size() < 5) return false;
  return quantile(parts, 0.95) - quantile(parts, 0.05) < 3 &&
         *std::max_element(parts.begin(), parts.end()) - quantile(parts, 0.5) < 6;
}

int64_t SoundLevels::quietest(int64_t from, int64_t to) const {
  constexpr int64_t half = 10;
  from = std::clamp<int64_t>(from, 0, frames()), to = std::clamp<int64_t>(to, from, frames());
  int64_t best = to;
  double lowest = 1e300;
  for (int64_t i = from; i < to; ++i) {
    double energy = 0;
    for (int64_t k = std::max<int64_t>(0, i - half); k < std::min(frames(), i + half); ++k) {
      energy += std::pow(10, (*this)[k] / 10);
    }
    if (energy <= lowest) lowest = energy, best = i;
  }
  return best;
}

bool SoundLevels::reaches(double db) const {
  return std::any_of(decibels_.begin(), decibels_.end(), [&](float x) { return double(x) >= db; });
}

bool SoundLevels::loud(int64_t i) const { return (*this)[i] >= *threshold_; }

int64_t SoundLevels::loud_frames(int64_t from, int64_t to) const {
  int64_t count = 0;
  if (!threshold_) return count;
  for (int64_t i = std::max<int64_t>(0, from); i < std::min(to, frames()); ++i) count += loud(i);
  return count;
}

int64_t SoundLevels::pause_after(int64_t loud_before) const {
  constexpr int64_t pause = 30;
  int64_t quiet = 0;
  for (int64_t i = 0; threshold_ && i < frames(); ++i) {
    const bool is_loud = loud(i);
    loud_before -= is_loud;
    quiet = is_loud || loud_before > 0 ? 0 : quiet + 1;
    if (quiet == pause) return i - pause / 2;
  }
  return frames();
}

std::optional<int64_t> SoundLevels::first_loud(int64_t from, int64_t to) const {
  if (!threshold_) return std::nullopt;
  to = std::min(to, frames());
  int64_t run = 0;
  for (int64_t i = std::max<int64_t>(0, from); i < to; ++i) {
    run = loud(i) ? run + 1 : 0;
    if (run == 3) return i - 2;
  }
  return std::nullopt;
}

std::optional<int64_t> SoundLevels::last_loud(int64_t from, int64_t to) const {
  if (!threshold_) return std::nullopt;
  from = std::max<int64_t>(0, from);
  int64_t run = 0;
  for (int64_t i = std::min(to, frames()) - 1; i >= from; --i) {
    run = loud(i) ? run + 1 : 0;
    if (run == 3) return i + 3;
  }
  return std::nullopt;
}

}  // namespace consonant
