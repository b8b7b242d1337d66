// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace consonant {

// Sound as the models take it: mono, 16,000 samples a second unless a reader was told otherwise, in -1 ... 1, read once
// from front to back. Any rate,
// channel count and sample type is converted while it is read, so that an hour costs no more memory than a second.
class AudioSource {
 public:
  static constexpr int64_t rate = 16000;
  virtual ~AudioSource() = default;

  // Fills `to` from the front and returns how many samples came: fewer than asked for only at the end. Samples that
  // aren't finite come as 0.
  virtual int64_t read(std::span<float> to) = 0;
  virtual int64_t length() const = 0;  // samples in all, as far as the header says; -1: unknown
  virtual const std::vector<std::string>& warnings() const = 0;
  virtual std::string name() const = 0;
};

}  // namespace consonant
