// SPDX-License-Identifier: Apache-2.0
#include "audio/resample.hpp"

#include <soxr.h>

#include <algorithm>

#include "base/error.hpp"

namespace consonant {

struct Resampler::Soxr {
  soxr_t handle = nullptr;
  ~Soxr() { soxr_delete(handle); }
};

Resampler::Resampler(int64_t rate_in, int64_t rate_out) : rate_in_(rate_in), rate_out_(rate_out) {
  if (rate_in == rate_out) return;
  soxr_ = std::make_unique<Soxr>();
  const soxr_io_spec_t io = soxr_io_spec(SOXR_FLOAT32_I, SOXR_FLOAT32_I);
  const soxr_quality_spec_t quality = soxr_quality_spec(SOXR_HQ, 0);
  const soxr_runtime_spec_t threads = soxr_runtime_spec(1);
  soxr_error_t error = nullptr;
  soxr_->handle =
      soxr_create(static_cast<double>(rate_in), static_cast<double>(rate_out), 1, &error, &io, &quality, &threads);
  if (error != nullptr)
    throw_error(Exit::failed, "sound at {} samples a second can't be converted to {}: {}", rate_in, rate_out, error);
}

Resampler::~Resampler() = default;

int64_t Resampler::samples_out(int64_t samples, int64_t rate_in, int64_t rate_out) {
  // In two parts, so that no length overflows.
  return samples / rate_in * rate_out + (samples % rate_in * rate_out + rate_in / 2) / rate_in;
}

void Resampler::process(std::span<const float> in, std::vector<float>& out) {
  taken_ += static_cast<int64_t>(in.size());
  if (soxr_ == nullptr) {
    out.insert(out.end(), in.begin(), in.end());
    given_ += static_cast<int64_t>(in.size());
    return;
  }
  while (!in.empty()) {
    const size_t room = in.size() * static_cast<size_t>(rate_out_) / static_cast<size_t>(rate_in_) + 64;
    const size_t before = out.size();
    out.resize(before + room);
    size_t used = 0, made = 0;
    const soxr_error_t error =
        soxr_process(soxr_->handle, in.data(), in.size(), &used, out.data() + before, room, &made);
    if (error != nullptr) throw_error(Exit::failed, "resampling: {}", error);
    out.resize(before + made);
    given_ += static_cast<int64_t>(made);
    in = in.subspan(used);
    if (used == 0 && made == 0) throw_error(Exit::failed, "resampling: the converter stands still");
  }
}

void Resampler::finish(std::vector<float>& out) {
  const int64_t wanted = samples_out(taken_, rate_in_, rate_out_);
  while (soxr_ != nullptr && given_ < wanted) {
    const size_t before = out.size();
    const auto room = static_cast<size_t>(std::min<int64_t>(wanted - given_, 4096));
    out.resize(before + room);
    size_t made = 0;
    const soxr_error_t error = soxr_process(soxr_->handle, nullptr, 0, nullptr, out.data() + before, room, &made);
    if (error != nullptr) throw_error(Exit::failed, "resampling: {}", error);
    out.resize(before + made);
    given_ += static_cast<int64_t>(made);
    if (made == 0) break;
  }
  // The converter's own rounding may differ by one.
  if (given_ > wanted) out.resize(out.size() - std::min(out.size(), static_cast<size_t>(given_ - wanted)));
  if (given_ < wanted) out.resize(out.size() + static_cast<size_t>(wanted - given_));
  given_ = wanted;
}

}  // namespace consonant
