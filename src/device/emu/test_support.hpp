// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include "base/checked.hpp"
#include "device/emu/faults.hpp"
#include "device/gpu.hpp"

namespace consonant::GPU_BUILD {

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
  gpu::Ptr<T> zeros(int64_t n) {
    return gpu::pointer<T>(device->allocate(n * static_cast<int64_t>(sizeof(T))), n * static_cast<int64_t>(sizeof(T)));
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
  // 1, 2, ...
  static std::vector<float> numbers(int64_t n) {
    std::vector<float> values(static_cast<size_t>(n));
    std::iota(values.begin(), values.end(), 1.0f);
    return values;
  }

  // What the error says that fn() throws, whose exit must be this.
  template <class F>
  static std::string error_of(Exit exit, const F& fn) {
    try {
      fn();
    } catch (const Error& e) {
      EXPECT_EQ(e.exit(), exit) << e.what();
      return e.what();
    }
    ADD_FAILURE() << "no error";
    return {};
  }
  std::string failure() {
    return error_of(Exit::failed, [&] { device->wait(); });
  }

  std::unique_ptr<Accelerator> device = gpu::open_device(0);
};

}  // namespace consonant::GPU_BUILD
