// SPDX-License-Identifier: Apache-2.0
// Each mistake that the emulator finds, made once.
#include "device/emu/test_support.hpp"

namespace consonant::GPU_BUILD {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

class Violations : public Emulator {
 protected:
  // Runs K on one block of 128 threads, and says what is wrong with it.
  template <auto K, class... Args>
  std::string fault(Args... args) {
    gpu::launch<K, 128>(*device, {1}, 0, args...);
    return failure();
  }
};

GPU_KERNEL void read_at(gpu::Ptr<const float> x, gpu::Ptr<float> y, int64_t i) {
  if (gpu::thread() == 3) y[0] = x[i];
}
GPU_KERNEL void write_at(gpu::Ptr<float> x, int64_t i) {
  if (gpu::thread() == 3) x[i] = 1;
}
GPU_KERNEL void load_at(gpu::Ptr<const float> x, gpu::Ptr<float> y, int64_t i) {
  if (gpu::thread() == 3) y[0] = gpu::from_bits(gpu::load16(x + i).x);
}
GPU_KERNEL void cast_at(gpu::Ptr<const uint8_t> x, gpu::Ptr<float> y, int64_t i) {
  if (gpu::thread() == 3) y[0] = gpu::cast<const float>(x + i)[0];
}

TEST_F(Violations, global_memory_past_its_end) {
  EXPECT_THAT(
      fault<read_at>(zeros<float>(5), zeros<float>(1), 5),
      AllOf(HasSubstr("kernel read_at, block (0, 0, 0), thread 3: touches element 5 of the tensor (bytes 20 to 23)"),
            HasSubstr("has 20 bytes")));
}
TEST_F(Violations, global_memory_before_its_beginning) {
  const auto x = zeros<float>(10);
  EXPECT_THAT(fault<write_at>(gpu::pointer<float>(reinterpret_cast<std::byte*>((x + 5).at()), 20), -1),
              HasSubstr("element -1 "));
}
TEST_F(Violations, sixteen_bytes_past_the_end) {
  EXPECT_THAT(fault<load_at>(zeros<float>(7), zeros<float>(1), 4), HasSubstr("bytes 16 to 31"));
}
TEST_F(Violations, sixteen_bytes_not_aligned) {
  EXPECT_THAT(fault<load_at>(zeros<float>(9), zeros<float>(1), 1), HasSubstr("isn't a multiple of 16"));
}
TEST_F(Violations, an_element_not_aligned) {
  EXPECT_THAT(fault<cast_at>(zeros<uint8_t>(9), zeros<float>(1), 1), HasSubstr("isn't a multiple of 4"));
}
TEST_F(Violations, null_and_empty) {
  EXPECT_THAT(fault<write_at>(gpu::Ptr<float>(), 0), HasSubstr("thread 3: a null pointer"));
}
TEST_F(Violations, an_empty_tensor) {
  const auto x = zeros<float>(1);
  EXPECT_THAT(fault<write_at>(gpu::pointer<float>(reinterpret_cast<std::byte*>(x.at()), 0), 0),
              HasSubstr("has 0 bytes"));
}
TEST_F(Violations, memory_that_was_released) {
  const auto x = zeros<float>(5);
  device->release(reinterpret_cast<std::byte*>(x.at()));
  EXPECT_THAT(fault<write_at>(x, 0), HasSubstr("memory of 20 bytes that was released"));
}
TEST_F(Violations, memory_of_the_host_as_an_argument) {
  std::vector<float> x(4);
  const auto make = [&] { (void)gpu::pointer<float>(reinterpret_cast<std::byte*>(x.data()), 16); };
  EXPECT_THAT(error_of(Exit::failed, make), HasSubstr("isn't memory of the device"));
}

GPU_KERNEL void sync_of_some() {
  if (gpu::thread() < 64) gpu::sync();
}
GPU_KERNEL void two_syncs() {
  if (gpu::thread() < 64)
    gpu::sync();
  else
    gpu::sync();
}
GPU_KERNEL void shuffle_of_some(gpu::Ptr<int> y) {
  if (gpu::lane() == 0) return;
  y[gpu::thread()] = gpu::shfl(1, 1);
}
GPU_KERNEL void sync_and_shuffle(gpu::Ptr<int> y) {
  if (gpu::lane() % 2)
    gpu::sync();
  else
    y[gpu::thread()] = gpu::shfl(1, 0);
}
GPU_KERNEL void two_shuffles(gpu::Ptr<int> y) {
  if (gpu::lane() % 2)
    y[gpu::thread()] = gpu::shfl(1, 1);
  else
    y[gpu::thread()] = gpu::shfl(1, 1);
}
GPU_KERNEL void shuffle_beyond(gpu::Ptr<int> y) { y[gpu::thread()] = gpu::shfl(1, gpu::lane() + 1); }

TEST_F(Violations, a_sync_that_some_never_reach) {
  EXPECT_THAT(
      fault<sync_of_some>(),
      AllOf(HasSubstr("kernel sync_of_some, block (0, 0, 0): its threads wait for each other"),
            HasSubstr("threads 0 to 63 in sync() at violations.test.cpp:"), HasSubstr("threads 64 to 127 returned")));
}
TEST_F(Violations, two_syncs_at_once) {
  EXPECT_THAT(fault<two_syncs>(),
              AllOf(HasSubstr("at different places in sync()"), HasSubstr("threads 64 to 127 in sync()")));
}
TEST_F(Violations, a_shuffle_that_some_never_reach) {
  EXPECT_THAT(fault<shuffle_of_some>(zeros<int>(128)), HasSubstr("thread 0 returned; threads 1 to"));
}
TEST_F(Violations, a_sync_beside_a_shuffle) {
  EXPECT_THAT(fault<sync_and_shuffle>(zeros<int>(128)), HasSubstr("thread 0 in a shuffle at"));
}
TEST_F(Violations, two_shuffles_at_once) {
  EXPECT_THAT(fault<two_shuffles>(zeros<int>(128)), HasSubstr("lanes of warp 0 are at different places in a shuffle"));
}
TEST_F(Violations, a_lane_that_is_none) {
  EXPECT_THAT(
      fault<shuffle_beyond>(zeros<int>(128)),
      HasSubstr("takes the value of lane " + std::to_string(GPU_EMULATED) + " of " + std::to_string(GPU_EMULATED)));
}

GPU_KERNEL void read_unwritten(gpu::Ptr<float> y) {
  GPU_SHARED(float, parts, 128);
  if (gpu::thread() < 100) parts[gpu::thread()] = 1;
  gpu::sync();
  y[gpu::thread()] = parts[gpu::thread()];
}
GPU_KERNEL void read_half_written(gpu::Ptr<float> y) {
  GPU_SHARED(uint16_t, parts, 256);
  if (gpu::thread() != 50) parts[2 * gpu::thread()] = 1;
  gpu::sync();
  y[gpu::thread()] = static_cast<float>(parts[gpu::thread() + 1]);
}
GPU_KERNEL void past_shared(int i) {
  GPU_SHARED(float, parts, 4);
  GPU_SHARED(float, others, 4);
  others[gpu::thread() % 4] = 0;
  if (gpu::thread() == 9) parts[i] = 0;
}
GPU_KERNEL void past_dynamic(int i) {
  GPU_DYNAMIC_SHARED(float, row);
  if (gpu::thread() == 9) row[i] = 0;
}

TEST_F(Violations, shared_memory_that_nobody_wrote) {
  EXPECT_THAT(fault<read_unwritten>(zeros<float>(128)),
              HasSubstr("of parts (bytes 508 to 511), which this block hasn't written"));
}
TEST_F(Violations, shared_memory_that_an_earlier_block_wrote) {
  const auto x = zeros<float>(128);
  gpu::launch<read_unwritten, 64>(*device, {1}, 0, x);  // all right: it writes what it reads
  EXPECT_THAT(fault<read_unwritten>(x), HasSubstr("reads element 127 of parts"));
}
TEST_F(Violations, shared_memory_of_which_half_is_written) {
  EXPECT_THAT(fault<read_half_written>(zeros<float>(128)),
              HasSubstr("thread 0: reads element 1 of parts (bytes 2 to 3)"));
}
TEST_F(Violations, shared_memory_past_its_end) {
  gpu::launch<past_shared, 64>(*device, {1}, 0, 4);
  EXPECT_THAT(failure(), AnyOf(HasSubstr("thread 9: touches element 4 of parts (bytes 16 to 19), which has 16 bytes"),
                               HasSubstr("others")));
}
TEST_F(Violations, dynamic_memory_past_its_end) {
  gpu::launch<past_dynamic, 64>(*device, {1}, 400, 100);
  EXPECT_THAT(failure(),
              HasSubstr("touches element 100 of the dynamic memory (bytes 400 to 403), which has 400 bytes"));
}
TEST_F(Violations, dynamic_memory_that_was_not_asked_for) {
  EXPECT_THAT(fault<past_dynamic>(0), HasSubstr("has 0 bytes"));
}

GPU_KERNEL void no_sync(gpu::Ptr<float> y) {
  GPU_SHARED(float, x, 128);
  x[gpu::thread()] = 1;
  y[gpu::thread()] = x[gpu::thread() ^ 64];
}
GPU_KERNEL void no_second_sync(gpu::Ptr<float> y) {
  GPU_SHARED(float, x, 128);
  x[gpu::thread()] = 1;
  gpu::sync();
  y[gpu::thread()] = x[(gpu::thread() + 127) % 128];
  x[gpu::thread()] = 2;
}
GPU_KERNEL void two_writers() {
  GPU_SHARED(float, x, 64);
  x[gpu::thread() / 2] = 1;
}
GPU_KERNEL void lanes_without_shuffle(gpu::Ptr<float> y) {
  GPU_SHARED(float, x, 128);
  x[gpu::thread()] = 1;
  (void)gpu::shfl(0, 0);
  y[gpu::thread()] = x[gpu::thread() ^ 1];
  x[gpu::thread()] = 2;
}
GPU_KERNEL void warps_with_shuffle(gpu::Ptr<float> y) {
  GPU_SHARED(float, x, 128);
  x[gpu::thread()] = 1;
  (void)gpu::shfl(0, 0);
  y[gpu::thread()] = x[gpu::thread() ^ 64];
}
GPU_KERNEL void all_read_one_writes(gpu::Ptr<float> y, int writer) {
  GPU_SHARED(float, x, 1);
  if (gpu::thread() == 0) x[0] = 1;
  gpu::sync();
  y[gpu::thread()] = x[0];
  if (gpu::thread() == writer) x[0] = 2;
}
GPU_KERNEL void lanes_read_one_writes(gpu::Ptr<float> y, bool shuffles) {
  GPU_SHARED(float, x, 128);
  if (gpu::lane() == 0) x[gpu::warp()] = 1;
  (void)gpu::shfl(0, 0);
  y[gpu::thread()] = x[gpu::warp()];
  if (shuffles) (void)gpu::shfl(0, 0);
  if (gpu::lane() == 1) x[gpu::warp()] = 2;
}
GPU_KERNEL void parts_twice(gpu::Ptr<float> y) {
  GPU_SHARED(float, parts, 2);
  for (int i = 0; i < 2; ++i) {
    if (gpu::thread() % 64 == 0) parts[gpu::thread() / 64] = static_cast<float>(i);
    gpu::sync();
    y[gpu::thread()] = parts[0] + parts[1];
  }
}

TEST_F(Violations, a_read_without_a_sync_after_the_write) {
  EXPECT_THAT(fault<no_sync>(zeros<float>(128)),
              HasSubstr("reads element 64 of x (bytes 256 to 259), which this block hasn't"));
}
TEST_F(Violations, a_write_without_a_sync_after_the_read) {
  EXPECT_THAT(
      fault<no_second_sync>(zeros<float>(128)),
      AllOf(HasSubstr("thread 0: reads element 127 of x"), HasSubstr("which thread 127 wrote with no sync() between")));
}
TEST_F(Violations, two_threads_that_write_the_same) {
  EXPECT_THAT(fault<two_writers>(), HasSubstr("thread 1: writes element 0 of x (bytes 0 to 3), which thread 0 wrote"));
}
TEST_F(Violations, lanes_of_a_warp_without_a_shuffle) {
  EXPECT_THAT(fault<lanes_without_shuffle>(zeros<float>(128)),
              AnyOf(HasSubstr("which thread 0 "), HasSubstr("which thread 1 ")));
}
TEST_F(Violations, a_shuffle_does_not_order_warps) {
  EXPECT_THAT(fault<warps_with_shuffle>(zeros<float>(128)),
              AnyOf(HasSubstr("no sync() between"), HasSubstr("hasn't written")));
}
TEST_F(Violations, a_write_of_what_other_warps_read) {
  EXPECT_THAT(fault<all_read_one_writes>(zeros<float>(128), 0),
              HasSubstr("thread 0: writes element 0 of x (bytes 0 to 3), which other threads read"));
}
TEST_F(Violations, a_read_of_what_another_warp_writes_anew) {
  EXPECT_THAT(fault<all_read_one_writes>(zeros<float>(128), 127),
              HasSubstr("thread 0: reads element 0 of x (bytes 0 to 3), which thread 127 wrote"));
}
TEST_F(Violations, a_write_of_what_other_lanes_read) {
  EXPECT_THAT(fault<lanes_read_one_writes>(zeros<float>(128), false), HasSubstr("writes element 0 of x"));
}
TEST_F(Violations, a_shuffle_orders_lanes_that_read) {
  gpu::launch<lanes_read_one_writes, 128>(*device, {1}, 0, zeros<float>(128), true);
  device->wait();
}
TEST_F(Violations, parts_that_are_written_again_before_all_have_read) {
  EXPECT_THAT(fault<parts_twice>(zeros<float>(128)), HasSubstr("element 0 of parts"));
}
TEST_F(Violations, order_is_not_checked_when_a_test_says_so) {
  emulated(*device).check_order(false);
  gpu::launch<parts_twice, 128>(*device, {2}, 0, zeros<float>(128));
  device->wait();
}

GPU_KERNEL void all_blocks_write(gpu::Ptr<float> y) {
  if (gpu::thread() == 1) y[3] = 0;
}
GPU_KERNEL void reads_of_neighbours(gpu::Ptr<float> y) {
  if (gpu::thread() == 1) y[gpu::block()] = y[(gpu::block() + 1) % gpu::blocks()];
}
GPU_KERNEL void bytes_of_neighbours(gpu::Ptr<int8_t> y) {
  if (gpu::thread() == 1) y[gpu::block()] += static_cast<int8_t>(gpu::block());
}

TEST_F(Violations, two_blocks_that_write_the_same) {
  gpu::launch<all_blocks_write, 64>(*device, {2, 2}, 0, zeros<float>(4));
  EXPECT_THAT(failure(), AllOf(HasSubstr("thread 1: writes bytes 12 to 15 of an allocation, which block ("),
                               HasSubstr("writes too")));
}
TEST_F(Violations, a_block_that_reads_what_another_writes) {
  gpu::launch<reads_of_neighbours, 64>(*device, {100}, 0, zeros<float>(100));
  EXPECT_THAT(failure(), AnyOf(HasSubstr("reads too"), HasSubstr("writes too")));
}
TEST_F(Violations, bytes_beside_each_other_are_not_the_same) {
  const auto y = zeros<int8_t>(100);
  gpu::launch<bytes_of_neighbours, 64>(*device, {100}, 0, y);
  gpu::launch<bytes_of_neighbours, 64>(*device, {100}, 0, y);
  EXPECT_EQ(download(y)[7], 14);
}

GPU_KERNEL void nothing() {}
template <int Bytes>
GPU_KERNEL void much_shared() {
  GPU_SHARED(uint8_t, much, Bytes);
  much[gpu::thread()] = 0;
}

TEST_F(Violations, limits_of_the_device) {
  const auto launch_error = [&](gpu::Grid grid, int64_t shared) {
    return error_of(Exit::failed, [&] { gpu::launch<nothing, 64>(*device, grid, shared); });
  };
  const int64_t most = GPU_EMULATED == 32 ? 49152 : 65536;
  EXPECT_EQ(device->limits().shared_bytes, most);
  EXPECT_THAT(launch_error({1LL << 31}, 0), HasSubstr("launching nothing: 2147483648 x 1 x 1 blocks"));
  EXPECT_THAT(launch_error({1, 65536}, 0), HasSubstr("1 x 65536 x 1 blocks"));
  EXPECT_THAT(launch_error({1, 1, 65536}, 0), HasSubstr("1 x 1 x 65536 blocks"));
  EXPECT_THAT(launch_error({-1}, 0), HasSubstr("-1 x 1 x 1 blocks"));
  EXPECT_THAT(launch_error({1}, most + 1), HasSubstr("bytes of shared memory, a block has " + std::to_string(most)));
  const auto too_many = [&] { gpu::launch<nothing, 1088>(*device, {1}, 0); };
  EXPECT_THAT(error_of(Exit::failed, too_many), HasSubstr("1088 threads a block"));
  const auto half_a_warp = [&] { gpu::launch<nothing, 96>(*device, {1}, 0); };
  EXPECT_THAT(error_of(Exit::failed, half_a_warp), HasSubstr("96 threads a block"));
  gpu::launch<nothing, 1024>(*device, {1, 65535}, most);
  gpu::launch<much_shared<40000>, 64>(*device, {1}, most - 40000);
  device->wait();
  gpu::launch<much_shared<40000>, 64>(*device, {1}, most - 40000 + 1);
  EXPECT_THAT(failure(), AllOf(HasSubstr("kernel much_shared<40000>, block (0, 0, 0), thread 0"),
                               HasSubstr("with those of much")));
}

TEST_F(Violations, an_error_stays) {
  const std::string first = fault<sync_of_some>();
  EXPECT_EQ(failure(), first);
  EXPECT_EQ(error_of(Exit::failed, [&] { device->allocate(1); }), first);
  EXPECT_EQ(error_of(Exit::failed, [&] { gpu::launch<nothing, 64>(*device, {1}, 0); }), first);
}

TEST_F(Violations, many_blocks_fail_and_one_is_told) {
  gpu::launch<sync_of_some, 128>(*device, {1000}, 0);
  EXPECT_THAT(failure(), HasSubstr("kernel sync_of_some"));
  const auto other = gpu::open_device(0);
  gpu::launch<nothing, 1024>(*other, {10}, 0);
  other->wait();
}

}  // namespace
}  // namespace consonant::GPU_BUILD
