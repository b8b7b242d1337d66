// SPDX-License-Identifier: Apache-2.0
// Kernels that are right.
#include "device/emu/test_support.hpp"

namespace consonant::GPU_BUILD {
namespace {

template <class T>
GPU_KERNEL void scale(gpu::Ptr<const T> x, gpu::Ptr<T> y, int64_t n, float factor) {
  const int64_t i = gpu::block() * gpu::threads() + gpu::thread();
  if (i < n) y[i] = x[i] * factor;
}

TEST_F(Emulator, runs_all_threads_of_all_blocks) {
  for (const int64_t n : {1, 64, 1000, 200001}) {
    const auto x = upload(numbers(n)), y = zeros<float>(n);
    gpu::launch<scale<float>, 64>(*device, {ceil_div(n, 64)}, 0, x, y, n, 2.0f);
    const auto got = download(y);
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(got[static_cast<size_t>(i)], 2 * static_cast<float>(i + 1));
  }
}

GPU_KERNEL void places(gpu::Ptr<int> y) {
  if (gpu::thread() != 5) return;
  const int64_t b = gpu::block() + gpu::blocks() * (gpu::block_y() + 3 * gpu::block_z());
  y[b] = static_cast<int>(100 * gpu::block_z() + 10 * gpu::block_y() + gpu::block());
}

TEST_F(Emulator, numbers_blocks_in_three_dimensions) {
  const auto y = zeros<int>(24);
  gpu::launch<places, 64>(*device, {2, 3, 4}, 0, y);
  const auto got = download(y);
  for (int z = 0, i = 0; z < 4; ++z)
    for (int row = 0; row < 3; ++row)
      for (int x = 0; x < 2; ++x, ++i) EXPECT_EQ(got[static_cast<size_t>(i)], 100 * z + 10 * row + x);
}

TEST_F(Emulator, an_empty_grid_is_no_launch) {
  gpu::launch<places, 64>(*device, {0, 3, 4}, 0, zeros<int>(1));
  EXPECT_EQ(device->launches(), 0);
  device->wait();
}

GPU_KERNEL void sums(gpu::Ptr<const float> x, gpu::Ptr<float> y) {
  const float mine = x[gpu::thread()];
  const float sum = gpu::block_sum(mine), most = gpu::block_max(mine), least = -gpu::block_max(-mine);
  if (gpu::thread() == gpu::threads() - 1) y[0] = sum, y[1] = most, y[2] = least;
}

template <int Threads>
void check_sums(Accelerator& device, gpu::Ptr<const float> x, gpu::Ptr<float> y) {
  gpu::launch<sums, Threads>(device, {1}, 0, x, y);
  if constexpr (Threads > 64) check_sums<Threads - 64>(device, x, y + 3);
}

TEST_F(Emulator, sums_over_blocks_of_all_sizes) {
  const auto x = upload(numbers(1024)), y = zeros<float>(3 * 16);
  check_sums<1024>(*device, x, y);
  const auto got = download(y);
  for (int i = 0; i < 16; ++i) {
    const auto n = static_cast<float>(1024 - 64 * i);
    EXPECT_THAT(std::vector<float>(got.begin() + 3 * i, got.begin() + 3 * i + 3),
                testing::ElementsAre(n * (n + 1) / 2, n, 1));
  }
}

GPU_KERNEL void exchange(gpu::Ptr<int> next, gpu::Ptr<int> across, gpu::Ptr<float> doubled) {
  const int t = gpu::thread();
  next[t] = gpu::shfl(t, (gpu::lane() + 1) % gpu::lane_width);
  across[t] = gpu::shfl_xor(t, gpu::lane_width / 2);
  const float x = static_cast<float>(t);
  doubled[t] = x + gpu::shfl(x, gpu::lane());
}

TEST_F(Emulator, shuffles_within_warps) {
  const auto next = zeros<int>(256), across = zeros<int>(256);
  const auto doubled = zeros<float>(256);
  gpu::launch<exchange, 256>(*device, {1}, 0, next, across, doubled);
  const auto got_next = download(next), got_across = download(across);
  const auto got_doubled = download(doubled);
  for (int t = 0; t < 256; ++t) {
    const int first = t / GPU_EMULATED * GPU_EMULATED, i = t % GPU_EMULATED;
    EXPECT_EQ(got_next[static_cast<size_t>(t)], first + (i + 1) % GPU_EMULATED);
    EXPECT_EQ(got_across[static_cast<size_t>(t)], first + (i + GPU_EMULATED / 2) % GPU_EMULATED);
    EXPECT_EQ(got_doubled[static_cast<size_t>(t)], 2 * static_cast<float>(t));
  }
}

// Some warps shuffle more often than others.
GPU_KERNEL void uneven(gpu::Ptr<int> y) {
  int x = gpu::thread();
  for (int i = 0; i <= gpu::warp(); ++i) x = gpu::shfl(x, (gpu::lane() + 1) % gpu::lane_width);
  y[gpu::thread()] = x % gpu::lane_width;
}

TEST_F(Emulator, warps_go_their_own_way) {
  const auto y = zeros<int>(256);
  gpu::launch<uneven, 256>(*device, {1}, 0, y);
  const auto got = download(y);
  for (int t = 0; t < 256; ++t) EXPECT_EQ(got[static_cast<size_t>(t)], (t + t / GPU_EMULATED + 1) % GPU_EMULATED);
}

GPU_FN void rotate(gpu::Shared<float> x, int n) {
  const int t = gpu::thread();
  const float next = x[(t + 1) % n];
  gpu::sync();
  x[t] = next;
  gpu::sync();
}

// A variable of a function is one, however often it's called.
GPU_FN float counted(int thread) {
  GPU_SHARED(float, count, 1);
  if (gpu::thread() == thread) count[0] = thread == 0 ? 1.0f : count[0] + 1.0f;
  gpu::sync();
  const float now = count[0];
  gpu::sync();
  return now;
}

GPU_KERNEL void share(gpu::Ptr<const float> x, gpu::Ptr<float> y) {
  GPU_DYNAMIC_SHARED(float, row);
  GPU_SHARED(int8_t, bytes, 128);
  const int t = gpu::thread();
  row[t] = x[t];
  row[t] += 1;
  row[t] *= 2;
  bytes[t] = static_cast<int8_t>(t);
  gpu::sync();
  rotate(row, gpu::threads());
  rotate(row, gpu::threads());
  float count = 0;
  for (int i = 0; i < 3; ++i) count = counted(i);
  const gpu::Shared<const int> words = gpu::cast<const int>(bytes);
  y[t] = row[t] + 1000 * count + static_cast<float>(bytes[gpu::threads() - 1 - t]) * 1e4f +
         static_cast<float>(words[0] & 0xFF);
}

TEST_F(Emulator, shared_memory_is_the_blocks) {
  const auto x = upload(numbers(128)), y = zeros<float>(128);
  gpu::launch<share, 128>(*device, {1}, 128 * sizeof(float), x, y);
  const auto got = download(y);
  for (int t = 0; t < 128; ++t)
    EXPECT_EQ(got[static_cast<size_t>(t)],
              2 * static_cast<float>((t + 2) % 128 + 2) + 3000 + static_cast<float>(127 - t) * 1e4f);
}

// What lanes of a warp do before and after a shuffle is ordered.
GPU_KERNEL void turns(gpu::Ptr<int> y) {
  GPU_SHARED(int, x, 256);
  x[gpu::thread()] = gpu::thread();
  for (int i = 0; i < 3; ++i) {
    (void)gpu::shfl(0, 0);
    const int next = x[gpu::warp() * gpu::lane_width + (gpu::lane() + 1) % gpu::lane_width];
    (void)gpu::shfl(0, 0);
    x[gpu::thread()] = next;
  }
  y[gpu::thread()] = x[gpu::thread()];
}

TEST_F(Emulator, shuffles_order_a_warps_accesses) {
  const auto y = zeros<int>(256);
  gpu::launch<turns, 256>(*device, {1}, 0, y);
  const auto got = download(y);
  for (int t = 0; t < 256; ++t)
    EXPECT_EQ(got[static_cast<size_t>(t)], t / GPU_EMULATED * GPU_EMULATED + (t + 3) % GPU_EMULATED);
}

struct Pair {
  int a, b;
};

GPU_KERNEL void types(gpu::Ptr<const Pair> pairs, gpu::Ptr<int8_t> bytes, gpu::Ptr<uint16_t> halves,
                      gpu::Ptr<float> floats, gpu::Ptr<Pair> swapped, gpu::Ptr<const float> absent) {
  const int t = gpu::thread();
  bytes[t] = static_cast<int8_t>(pairs[t].a);
  halves[t] = gpu::half_bits(static_cast<float>(bytes[t]) / 2);
  floats[t] = gpu::from_half(halves[t]) + (absent ? absent[t] : 0.0f);
  swapped[t] = Pair{pairs[t].b, (*(pairs + t)).a};
  gpu::sync();
  if (t % 8 != 0) return;
  gpu::U4 v = gpu::load16(halves + t);
  v.x ^= 0x80008000u;
  gpu::store16(halves + t, v);
  gpu::Ptr<const int8_t> last = bytes + gpu::threads() - 1;
  last -= t;
  --last;
  floats[t] -= static_cast<float>(last - bytes);
}

TEST_F(Emulator, elements_are_of_any_type) {
  std::vector<Pair> pairs;
  for (int i = 0; i < 64; ++i) pairs.push_back({i - 32, 7});
  const auto bytes = zeros<int8_t>(64);
  const auto halves = zeros<uint16_t>(64);
  const auto floats = zeros<float>(64);
  const auto swapped = zeros<Pair>(64);
  gpu::launch<types, 64>(*device, {1}, 0, upload(pairs), bytes, halves, floats, swapped, gpu::Ptr<const float>());
  const auto got = download(floats);
  const auto bits = download(halves);
  for (int t = 0; t < 64; ++t) {
    const auto i = static_cast<size_t>(t);
    const float value = static_cast<float>(t - 32) / 2;
    EXPECT_EQ(download(bytes)[i], t - 32);
    EXPECT_EQ(download(swapped)[i].a, 7);
    EXPECT_EQ(gpu::from_half(bits[i]), t % 8 < 2 ? -value : value);
    EXPECT_EQ(got[i], t % 8 != 0 ? value : value - static_cast<float>(62 - t));
  }
}

TEST_F(Emulator, numbers_are_rounded_as_the_devices_round) {
  EXPECT_EQ(gpu::round_even(0.5f), 0);
  EXPECT_EQ(gpu::round_even(1.5f), 2);
  EXPECT_EQ(gpu::bfloat_from(0x3FC0), 1.5f);
  EXPECT_EQ(gpu::half_bits(65520), 0x7C00);
  const float x = 1 + 0x1p-12f;
  EXPECT_EQ(gpu::add(gpu::mul(x, x), -1), 0x1p-11f);
  EXPECT_EQ(gpu::fma(x, x, -1), 0x1p-11f + 0x1p-24f);
}

GPU_KERNEL void increment(gpu::Ptr<int> x) { x[gpu::thread()] += 1; }

TEST_F(Emulator, captured_work_runs_as_often_as_it_is_launched) {
  const auto x = zeros<int>(64), y = zeros<int>(64);
  auto* const to = reinterpret_cast<std::byte*>(y.at());
  const auto* const from = reinterpret_cast<const std::byte*>(x.at());
  device->begin_capture();
  gpu::launch<increment, 64>(*device, {1}, 0, x);
  device->copy(to, from, 32 * sizeof(int));
  gpu::launch_early<increment, 64>(*device, {1}, 0, x);
  std::unique_ptr<Captured> work = device->end_capture();
  EXPECT_EQ(download(x)[0], 0);
  for (int i = 0; i < 3; ++i) device->launch(*work);
  work.reset();  // what was queued stays
  EXPECT_EQ(download(x), std::vector<int>(64, 6));
  EXPECT_EQ(download(y)[31], 5);
  EXPECT_EQ(download(y)[32], 0);
  EXPECT_EQ(device->launches(), 5);
}

TEST_F(Emulator, queued_work_is_done_when_the_host_waits) {
  const auto x = zeros<int>(64);
  gpu::launch<increment, 64>(*device, {1}, 0, x);
  EXPECT_EQ(*reinterpret_cast<int*>(x.at()), 0);
  device->wait();
  EXPECT_EQ(*reinterpret_cast<int*>(x.at()), 1);
  EXPECT_EQ(device->waits(), 1);
}

TEST_F(Emulator, progress_tells_the_node) {
  const auto x = zeros<int>(64);
  device->at_node(7);
  gpu::launch<increment, 64>(*device, {1}, 0, x);
  device->at_node(9);
  EXPECT_EQ(*device->progress().counter, 0u);
  device->wait();
  EXPECT_EQ(*device->progress().counter, 7u);
}

}  // namespace
}  // namespace consonant::GPU_BUILD
