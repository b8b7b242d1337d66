// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/threads.hpp"
#include "device/device.hpp"
#include "ops/kernel.hpp"
#include "tensor/host_tensor.hpp"

namespace consonant {

// A weight as its owner offers it: read when a device wants it, released once the device has its own copy.
struct WeightSource {
  std::string name;
  DType type;
  Sizes sizes;
  std::function<HostTensor()> load;
  std::function<void(std::span<const std::byte> part)> release;  // of the loaded bytes
};

// The weights of a model in a device's memory, each in the layout that the device's kernels read. Vectors are float32
// everywhere. On the CPU matrices are repacked (Layout::rows8) and the file's pages are given back as they are, so they
// don't stay twice; the reference device reads the file's bytes as they lie.
class WeightStore {
 public:
  // Bad input for weights whose scales are NaN or infinite.
  WeightStore(const std::vector<WeightSource>& sources, DeviceKind device, ThreadPool& pool);

  const View& view(int index) const { return views_[static_cast<size_t>(index)]; }
  int64_t bytes() const { return bytes_; }

  // Bytes that a device will hold, before anything is loaded.
  static int64_t bytes_needed(const std::vector<WeightSource>& sources, DeviceKind device);

 private:
  std::vector<View> views_;
  std::vector<HostTensor> kept_;
  Buffer buffer_;
  int64_t bytes_ = 0;
};

}  // namespace consonant
