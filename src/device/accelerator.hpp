// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "device/device.hpp"

namespace consonant {

// What a kernel may ask of a device.
struct Limits {
  int lanes = 32;                  // of a warp (CUDA) or wavefront (HIP): 32 or 64
  int threads = 1024;              // of a block
  int64_t shared_bytes = 0;        // of a block, static and dynamic together
  int64_t grid = (1LL << 31) - 1;  // blocks along x
  int64_t grid_yz = 65535;         // along y and z
  int processors = 1;              // that blocks are spread over
  int compute = 0;                 // CUDA's compute capability, 90 for 9.0; 0 elsewhere
};

struct AcceleratorInfo {
  DeviceKind kind = DeviceKind::cuda;
  int index = 0;
  std::string name;    // "NVIDIA H200"
  std::string target;  // "sm_90", "gfx90a"; what the kernels were compiled for
  std::string driver;  // "CUDA driver 13.0, runtime 13.0"
  Limits limits;
  int64_t total_bytes = 0;
  bool unified = false;  // its memory is the host's: weights needn't be copied
};

// Where a device is: written by the first block of each launch, so that a stall can be told to the node.
struct Progress {
  uint32_t* counter = nullptr;
  uint32_t node = 0;
};

// Work that was captured once and can be launched as one.
class Captured {
 public:
  virtual ~Captured() = default;
};

// An accelerator and its one queue, in which everything runs in order. Calls return before the work is done, except
// where said. Once a wait has failed the device is lost: every later call fails at once with the same words.
class Accelerator {
 public:
  virtual ~Accelerator() = default;
  virtual const AcceleratorInfo& info() const = 0;
  const Limits& limits() const { return info().limits; }
  virtual int64_t free_bytes() = 0;

  // Zeroed device memory, aligned to 256; Exit::memory with the sizes if there isn't enough.
  virtual std::byte* allocate(int64_t bytes) = 0;
  // After what was queued has ended.
  virtual void release(std::byte* data) noexcept = 0;
  // Host memory that the device copies from and to without the host's help.
  virtual std::byte* allocate_pinned(int64_t bytes) = 0;
  virtual void release_pinned(std::byte* data) noexcept = 0;

  // Queued copies. Host memory must be pinned and stay as it is until the next wait.
  virtual void upload(std::byte* device, const std::byte* pinned, int64_t bytes) = 0;
  virtual void download(std::byte* pinned, const std::byte* device, int64_t bytes) = 0;
  virtual void copy(std::byte* to, const std::byte* from, int64_t bytes) = 0;
  // Copies from memory of any kind and waits; for loading.
  virtual void upload_now(std::byte* device, const std::byte* host, int64_t bytes) = 0;

  // Waits for all that was queued. Exit::stalled, with the node that the device has reached (see `at_node`), if it
  // takes longer than the deadline or fails.
  virtual void wait() = 0;

  // Between begin and end, launches and copies are kept instead of run.
  virtual void begin_capture() = 0;
  virtual std::unique_ptr<Captured> end_capture() = 0;
  virtual void drop_capture() noexcept = 0;  // after a failure
  virtual void launch(const Captured& work) = 0;

  // CUDA's or HIP's stream, for gpu::launch alone.
  virtual void* stream() = 0;

  // Seconds that a wait may take.
  void set_deadline(double seconds) { deadline_ = seconds; }
  double deadline() const { return deadline_; }

  // The number of the node whose launches follow; 0: none. `name_of` tells a node by its number when a wait fails.
  void at_node(uint32_t number) { progress_.node = number; }
  const Progress& progress() const { return progress_; }
  using NameOf = std::string (*)(const void* program, uint32_t number);
  void name_nodes(const void* program, NameOf name_of) { program_ = program, name_of_ = name_of; }

  // Kernels and captured works launched, and waits, since the device was opened.
  int64_t launches() const { return launches_; }
  int64_t waits() const { return waits_; }
  void count_launch() { ++launches_; }

 protected:
  std::string name_of(uint32_t number) const { return name_of_ && number ? name_of_(program_, number) : std::string(); }

  double deadline_ = 60;
  Progress progress_;
  const void* program_ = nullptr;
  NameOf name_of_ = nullptr;
  int64_t launches_ = 0, waits_ = 0;
};

}  // namespace consonant
