// SPDX-License-Identifier: Apache-2.0
#include "runtime/weights.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "device/emu/faults.hpp"
#include "runtime/backends.hpp"
#include "runtime/test_graph.hpp"
#include "tensor/half.hpp"

namespace consonant {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr DeviceKind both_devices[] = {DeviceKind::cpu, DeviceKind::reference};

struct Store {
  WeightSource source(const std::string& name, const HostTensor& tensor) {
    return {name, tensor.type, tensor.sizes, [tensor] { return tensor; },
            [this](std::span<const std::byte> part) { released += static_cast<int64_t>(part.size()); }};
  }
  std::atomic<int64_t> released{0};
  ThreadPool pool{2};
};

HostTensor encoded(DType type, const Sizes& sizes, std::vector<float> numbers) {
  HostTensor tensor = HostTensor::allocate(type, sizes);
  const int64_t columns = tensor.columns();
  numbers.resize(static_cast<size_t>(tensor.count()), 1);
  for (int64_t r = 0; r < tensor.rows(); ++r)
    encode_row(type, numbers.data() + r * columns, tensor.mutable_bytes().data() + r * row_bytes(type, columns),
               columns);
  return tensor;
}

TEST(Weights, VectorsAreFloat32Everywhere) {
  for (const DeviceKind device : both_devices)
    for (const DType type : {DType::f32, DType::f16, DType::bf16}) {
      Store s;
      const WeightStore store({s.source("v", encoded(type, {3}, {1, -2, 0.5f}))}, device, s.pool);
      const View& view = store.view(0);
      EXPECT_EQ(view.type, DType::f32);
      EXPECT_EQ(view.layout, Layout::plain);
      EXPECT_EQ(view.shape, Shape{3});
      EXPECT_THAT(std::vector<float>(view.as<float>(), view.as<float>() + 3), ElementsAre(1, -2, 0.5f));
    }
}

TEST(Weights, MatricesAreRepackedForTheCpuAndTheFilesPartsGivenBack) {
  const HostTensor tensor = encoded(DType::q8_0, {21, 64}, testing_runtime::random_floats(21 * 64, 3));
  Store s;
  const WeightStore store({s.source("v", encoded(DType::f32, {5}, {})), s.source("m", tensor)}, DeviceKind::cpu,
                          s.pool);
  const View& view = store.view(1);
  EXPECT_EQ(view.layout, Layout::rows8);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(view.data) % 64, 0u);
  EXPECT_EQ(s.released, static_cast<int64_t>(tensor.bytes.size()));
  std::vector<float> row(64), want(64);
  for (int64_t r = 0; r < 21; ++r) {
    decode_packed_row(packed_shape(DType::q8_0, 21, 64), view.data, r, row.data());
    decode_row(DType::q8_0, tensor.bytes.data() + r * row_bytes(DType::q8_0, 64), want.data(), 64);
    ASSERT_EQ(row, want) << "row " << r;
  }
}

TEST(Weights, MatricesOfAStackDoNotShareGroups) {
  const HostTensor tensor = encoded(DType::q8_0, {3, 13, 64}, testing_runtime::random_floats(3 * 13 * 64, 3));
  Store s;
  const WeightStore store({s.source("m", tensor)}, DeviceKind::cpu, s.pool);
  EXPECT_EQ(s.released, static_cast<int64_t>(tensor.bytes.size()));
  const PackedShape alone = packed_shape(DType::q8_0, 13, 64);
  std::vector<float> row(64), want(64);
  for (int64_t r = 0; r < 3 * 13; ++r) {
    decode_packed_row(alone, store.view(0).data + r / 13 * alone.bytes(), r % 13, row.data());
    decode_row(DType::q8_0, tensor.bytes.data() + r * row_bytes(DType::q8_0, 64), want.data(), 64);
    ASSERT_EQ(row, want) << "row " << r;
  }
}

TEST(Weights, TheReferenceReadsTheFilesBytes) {
  const HostTensor tensor = encoded(DType::q8_0, {3, 64}, {});
  Store s;
  const WeightStore store({s.source("m", tensor)}, DeviceKind::reference, s.pool);
  EXPECT_EQ(store.view(0).data, tensor.bytes.data());
  EXPECT_EQ(store.view(0).layout, Layout::plain);
  EXPECT_EQ(store.bytes(), 0);
}

TEST(Weights, RefusesScalesThatAreNoNumber) {
  for (const DeviceKind device : both_devices)
    for (const Sizes& sizes : {Sizes{20, 64}, Sizes{1280}})
      for (const uint16_t bits : {uint16_t{0x7E00}, uint16_t{0xFC00}}) {  // NaN, -infinity
        HostTensor tensor = encoded(DType::q8_0, sizes, {});
        std::memcpy(tensor.mutable_bytes().data() + 37 * 34, &bits, sizeof bits);
        Store s;
        try {
          const WeightStore store({s.source("blk.7.ffn_up.weight", tensor)}, device, s.pool);
          ADD_FAILURE() << name(device) << " " << to_string(sizes);
        } catch (const Error& error) {
          EXPECT_EQ(error.exit(), Exit::input);
          EXPECT_THAT(error.what(), HasSubstr("blk.7.ffn_up.weight"));
        }
      }
}

// In windows that hold parts of several weights, or a part of one that is larger than a window.
TEST(Weights, OnAnAcceleratorAreWhatTheyAreInOnePiece) {
  Store s;
  const auto numbers = [](int64_t n) {
    return testing_runtime::random_floats(static_cast<size_t>(n), static_cast<uint32_t>(n % 1000));
  };
  std::vector<WeightSource> sources;
  std::vector<HostTensor> tensors;
  const auto add = [&](DType type, const Sizes& sizes) {
    int64_t count = 1;
    for (const int64_t n : sizes) count *= n;
    tensors.push_back(encoded(type, sizes, numbers(count)));
    sources.push_back(s.source(fmt::format("w{}", tensors.size()), tensors.back()));
  };
  add(DType::f32, {5}), add(DType::q8_0, {21, 64}), add(DType::f16, {3, 13, 7}), add(DType::f16, {1001});
  add(DType::q4_0, {2, 9, 32}), add(DType::q8_0, {3001, 12800}), add(DType::bf16, {77}), add(DType::f32, {9, 3});
  add(DType::f16, {2999, 6001}), add(DType::f32, {33}), add(DType::f32, {11000000});
  const Backend& backend = find_backend(DeviceKind::emu32);
  const Target target(backend.open(0), backend.kernels());
  Accelerator& device = *target.accelerator;
  int64_t told = 0, all = 0;
  const WeightStore store(sources, target, s.pool, [&](int64_t done, int64_t of) {
    EXPECT_GE(done, told);
    told = done, all = of;
  });
  EXPECT_EQ(told, store.bytes());
  EXPECT_EQ(all, store.bytes());
  EXPECT_EQ(emulated(device).pinned_bytes(), 0);
  for (size_t i = 0; i < tensors.size(); ++i) {
    const View& view = store.view(static_cast<int>(i));
    const HostTensor& tensor = tensors[i];
    std::vector<std::byte> want;
    if (tensor.sizes.size() < 2) {
      want.resize(static_cast<size_t>(tensor.count()) * 4);
      decode_row(tensor.type, tensor.bytes.data(), reinterpret_cast<float*>(want.data()), tensor.count());
    } else if (is_quantized(tensor.type)) {
      const PackedShape packed = packed_shape(tensor.type, tensor.sizes);
      want.resize(static_cast<size_t>(packed.bytes()));
      pack_groups(packed, tensor.bytes.data(), want.data(), 0, packed.groups());
    } else {
      want.assign(tensor.bytes.begin(), tensor.bytes.end());
    }
    want.resize(want.size() + 64);  // zeros behind it, where vector loads may look
    PinnedBuffer got(static_cast<int64_t>(want.size()), device);
    device.download(got.data(), view.data, got.size());
    device.wait();
    EXPECT_EQ(std::memcmp(got.data(), want.data(), want.size()), 0) << "weight " << i;
  }
}

TEST(Weights, NeedWhatTheySay) {
  Store s;
  std::vector<WeightSource> sources = {s.source("v", encoded(DType::f16, {100}, {})),
                                       s.source("m", encoded(DType::q4_0, {9, 32}, {}))};
  for (const DeviceKind device : both_devices)
    EXPECT_EQ(WeightStore(sources, device, s.pool).bytes(), WeightStore::bytes_needed(sources, device));
}

}  // namespace
}  // namespace consonant
