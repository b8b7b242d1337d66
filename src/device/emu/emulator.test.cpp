// SPDX-License-Identifier: Apache-2.0
// Kernels that are right, on the emulator of each width.
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "base/checked.hpp"
#include "device/gpu.hpp"

namespace consonant::GPU_BUILD {
namespace {

// A device and vectors on it.
class Emulator : public testing::Test {
 protected:
  template <class T>
  gpu::Ptr<T> upload(const std::vector<T>& values) {
    const auto bytes = static_cast<int64_t>(values.size() * sizeof(T));
    std::byte* const data = device->allocate(bytes);
    device->upload_now(data, reinterpret_cast<const std::byte*>(values.data()), bytes);
    return gpu::pointer<T>(data, bytes);
  }
  template <class T>
  std::vector<T> download(gpu::Ptr<T> p) {
    std::vector<T> values((p.end() - p.begin()) / sizeof(T));
    const auto bytes = static_cast<int64_t>(values.size() * sizeof(T));
    std::byte* const pinned = device->allocate_pinned(bytes);
    device->download(pinned, reinterpret_cast<const std::byte*>(p.begin()), bytes);
    device->wait();
    std::copy_n(pinned, bytes, reinterpret_cast<std::byte*>(values.data()));
    device->release_pinned(pinned);
    return values;
  }
  std::vector<float> numbers(int64_t n) {
    std::vector<float> values(static_cast<size_t>(n));
    std::iota(values.begin(), values.end(), 1.0f);
    return values;
  }

  std::unique_ptr<Accelerator> device = gpu::open_device(0);
};

template <class T>
GPU_KERNEL void scale(gpu::Ptr<const T> x, gpu::Ptr<T> y, int64_t n, float factor) {
  const int64_t i = gpu::block() * gpu::threads() + gpu::thread();
  if (i < n) y[i] = x[i] * factor;
}

TEST_F(Emulator, runs_all_threads_of_all_blocks) {
  const auto x = upload(numbers(1000));
  gpu::launch<scale<float>, 128>(*device, {ceil_div(1000, 128)}, 0, x, x, 1000, 2.0f);
  const auto y = download(x);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(y[static_cast<size_t>(i)], 2.0f * static_cast<float>(i + 1));
}

GPU_KERNEL void sums(gpu::Ptr<const float> x, gpu::Ptr<float> y) {
  const float sum = gpu::block_sum(x[gpu::thread()]);
  const float most = gpu::block_max(x[gpu::thread()]);
  const float again = gpu::block_sum(1);
  if (gpu::thread() == gpu::threads() - 1) y[0] = sum, y[1] = most, y[2] = again;
}

template <int Threads>
void check_sums(Accelerator& device, gpu::Ptr<const float> x, gpu::Ptr<float> y) {
  gpu::launch<sums, Threads>(device, {3}, 0, x, y);
}

TEST_F(Emulator, sums_over_a_block) {
  const auto x = upload(numbers(1024)), y = upload(numbers(3));
  check_sums<1024>(*device, x, y);
  EXPECT_EQ(download(y), (std::vector<float>{1024 * 1025 / 2, 1024, 1024}));
  check_sums<64>(*device, x, y);
  EXPECT_EQ(download(y), (std::vector<float>{64 * 65 / 2, 64, 64}));
}

}  // namespace
}  // namespace consonant::GPU_BUILD
