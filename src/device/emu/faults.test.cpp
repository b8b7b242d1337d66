// SPDX-License-Identifier: Apache-2.0
// Faults that tests ask for, and what the host does wrong.
#include "device/emu/test_support.hpp"

namespace consonant::GPU_BUILD {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class Faults : public Emulator {
 protected:
  Faults() {
    device->name_nodes(nullptr, [](const void*, uint32_t number) { return "node " + std::to_string(number); });
    device->set_deadline(0.05);
  }
  void run_node(uint32_t number) {
    device->at_node(number);
    gpu::launch<nothing, 64>(*device, {1}, 0);
  }
  static GPU_KERNEL void nothing() {}
  static GPU_KERNEL void wrong() {
    if (gpu::thread() == 0) gpu::sync();
  }
};

TEST_F(Faults, a_stall_is_told_after_the_deadline) {
  emulated(*device).stall_at(3);
  run_node(2);
  device->wait();
  run_node(3);
  run_node(4);
  const auto start = Clock::now();
  const std::string what = error_of(Exit::stalled, [&] { device->wait(); });
  EXPECT_GE(seconds_since(start), 0.05);
  EXPECT_THAT(what, AllOf(HasSubstr("no answer within 0.05 s"), HasSubstr("reached node 3")));
  EXPECT_EQ(error_of(Exit::stalled, [&] { device->wait(); }), what);
  EXPECT_EQ(error_of(Exit::stalled, [&] { run_node(2); }), what);
}

TEST_F(Faults, a_stall_in_captured_work) {
  device->begin_capture();
  run_node(1);
  run_node(2);
  const auto work = device->end_capture();
  device->launch(*work);
  device->wait();
  emulated(*device).stall_at(1);
  device->launch(*work);
  EXPECT_THAT(error_of(Exit::stalled, [&] { device->wait(); }), HasSubstr("reached node 1"));
}

TEST_F(Faults, a_loss_is_told_at_once) {
  device->set_deadline(1000);
  emulated(*device).lose_at(5);
  run_node(5);
  EXPECT_THAT(error_of(Exit::stalled, [&] { device->wait(); }),
              AllOf(HasSubstr("was lost"), HasSubstr("reached node 5")));
}

TEST_F(Faults, a_kernels_error_names_the_node) {
  device->at_node(6);
  gpu::launch<wrong, 64>(*device, {1}, 0);
  EXPECT_THAT(failure(), AllOf(HasSubstr("node 6: kernel "), HasSubstr("wrong")));
}

TEST_F(Faults, memory_ends) {
  auto& faults = emulated(*device);
  faults.set_total_bytes(1000);
  std::byte* const some = device->allocate(600);
  EXPECT_EQ(device->free_bytes(), 400);
  EXPECT_THAT(error_of(Exit::memory, [&] { device->allocate(401); }), HasSubstr("no 0 MB of memory left"));
  device->release(some);
  std::byte* const all = device->allocate(1000);
  EXPECT_EQ(device->free_bytes(), 0);
  device->release(all);
  faults.allow_allocations(1);
  device->release(device->allocate(1));
  EXPECT_THAT(error_of(Exit::memory, [&] { device->allocate(1); }), HasSubstr("memory left"));
  EXPECT_THAT(error_of(Exit::memory, [&] { device->allocate_pinned(1); }), HasSubstr("no 1 bytes of pinned memory"));
  faults.allow_allocations(-1);
  device->release(device->allocate(1));
}

TEST_F(Faults, allocations_are_counted) {
  auto& faults = emulated(*device);
  EXPECT_EQ(faults.allocations(), 0);
  std::byte* const a = device->allocate(100);
  std::byte* const b = device->allocate(0);
  std::byte* const c = device->allocate_pinned(10);
  EXPECT_EQ(faults.allocated_bytes(), 100);
  EXPECT_EQ(faults.pinned_bytes(), 10);
  EXPECT_EQ(faults.allocations(), 3);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(a) % 256, 0u);
  device->release(a), device->release(b), device->release_pinned(c), device->release(nullptr);
  EXPECT_EQ(faults.allocations(), 0);
  EXPECT_EQ(faults.allocated_bytes() + faults.pinned_bytes(), 0);
}

TEST_F(Faults, copies_stay_within_memory) {
  std::byte* const memory = device->allocate(64);
  std::byte* const pinned = device->allocate_pinned(64);
  std::byte host[64] = {};
  const auto says = [&](const char* what, const auto& fn) { EXPECT_THAT(error_of(Exit::failed, fn), HasSubstr(what)); };
  says("in pinned memory", [&] { device->upload(memory, host, 64); });
  says("in pinned memory", [&] { device->download(host, memory, 64); });
  says("in pinned memory", [&] { device->upload(memory, pinned + 1, 64); });
  says("in the device's memory", [&] { device->upload(memory + 1, pinned, 64); });
  says("in the device's memory", [&] { device->copy(memory, host, 1); });
  says("in the device's memory", [&] { device->upload_now(pinned, host, 1); });
  pinned[5] = std::byte{9};
  device->upload(memory, pinned, 64);
  device->copy(memory + 32, memory, 32);
  device->download(pinned, memory, 64);
  device->upload(memory, host, 0);
  EXPECT_EQ(pinned[37], std::byte{0});  // nothing runs before the host waits
  device->wait();
  EXPECT_EQ(pinned[37], std::byte{9});
}

TEST_F(Faults, a_capture_takes_launches_and_copies_alone) {
  device->begin_capture();
  const auto says = [&](const auto& fn) {
    EXPECT_THAT(error_of(Exit::failed, fn), HasSubstr("while work is captured"));
  };
  says([&] { device->wait(); });
  says([&] { device->allocate(1); });
  says([&] { device->allocate_pinned(1); });
  says([&] { device->begin_capture(); });
  const auto work = device->end_capture();
  EXPECT_THAT(error_of(Exit::failed, [&] { device->end_capture(); }), HasSubstr("no capture"));
  device->launch(*work);
  device->wait();
}

TEST_F(Faults, there_is_one_device) {
  EXPECT_EQ(gpu::device_count(), 1);
  EXPECT_THAT(error_of(Exit::device, [] { gpu::open_device(1); }), HasSubstr("not 1"));
  EXPECT_EQ(device->info().kind, gpu::device_kind);
  EXPECT_EQ(device->limits().lanes, GPU_EMULATED);
}

}  // namespace
}  // namespace consonant::GPU_BUILD
