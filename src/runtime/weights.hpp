// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/threads.hpp"
#include "device/device.hpp"
#include "ops/kernel.hpp"
#include "runtime/target.hpp"
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
// don't stay twice; the reference device reads the file's bytes as they lie. Accelerators have quantised matrices
// repacked too and others as in the file; where their memory is the host's, the weights are packed right into it.
class WeightStore {
 public:
  using OnProgress = std::function<void(int64_t done, int64_t all)>;  // bytes on the device
  // Bad input for weights whose scales are NaN or infinite.
  WeightStore(const std::vector<WeightSource>& sources, const Target& device, ThreadPool& pool,
              const OnProgress& on_progress = {});

  // What it would hold, for a plan before anything is loaded: views with a type, a shape and a layout, but no data.
  static WeightStore planned(const std::vector<WeightSource>& sources, DeviceKind device);

  const View& view(int index) const { return views_[static_cast<size_t>(index)]; }
  int64_t bytes() const { return bytes_; }
  double seconds() const { return seconds_; }  // that it took to load

  // Bytes that a device will hold, before anything is loaded.
  static int64_t bytes_needed(const std::vector<WeightSource>& sources, DeviceKind device);

 private:
  WeightStore() = default;
  static View view_of(const WeightSource& source, DeviceKind device, std::byte* data);

  std::vector<View> views_;
  std::vector<HostTensor> kept_;
  Buffer buffer_;
  PinnedBuffer unified_;  // instead of buffer_ where the device's memory is the host's
  int64_t bytes_ = 0;
  double seconds_ = 0;
};

}  // namespace consonant
