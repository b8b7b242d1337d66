// SPDX-License-Identifier: Apache-2.0
// The emulated device: its memory is the host's, and what is queued runs when the host waits.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <variant>

#include "base/error.hpp"
#include "base/threads.hpp"
#include "device/gpu.hpp"

namespace consonant::GPU_BUILD::gpu {

const DeviceKind device_kind = GPU_EMULATED == 64 ? DeviceKind::emu64 : DeviceKind::emu32;

void bad_access(uintptr_t at, int64_t bytes, int64_t alignment, uintptr_t begin, uintptr_t end, const char* space) {
  const std::string what = fmt::format("{} bytes at {} of {} memory of {} bytes", bytes,
                                       static_cast<int64_t>(at - begin), space, end - begin);
  if (at % static_cast<uintptr_t>(alignment) != 0)
    throw_error(Exit::failed, "{}: {}, not aligned to {}", current->where(), what, alignment);
  throw_error(Exit::failed, "{}: {}", current->where(), what);
}

namespace {

// Every allocation of this build's devices.
struct Registry {
  struct Entry {
    Buffer buffer;
    std::unique_ptr<GlobalMemory> memory;
  };
  std::mutex mutex;
  std::map<const std::byte*, Entry> entries;  // by where they begin
};

Registry& registry() {
  static Registry all;
  return all;
}

struct Copy {
  std::byte* to;
  const std::byte* from;
  int64_t bytes;
};
using Command = std::variant<Work, Copy>;
using Commands = std::vector<std::shared_ptr<const Command>>;

struct Recorded final : Captured {
  Commands commands;
};

class Emulated final : public Accelerator {
 public:
  Emulated() : pool_(usable_cores()), blocks_(static_cast<size_t>(pool_.threads())) {
    info_.kind = device_kind;
    info_.name = fmt::format("emulated device, {} lanes", GPU_EMULATED);
    info_.target = name(device_kind);
    info_.driver = "emulator";
    info_.total_bytes = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
    Limits& l = info_.limits;
    l.lanes = GPU_EMULATED, l.threads = 1024, l.processors = pool_.threads();
    l.shared_bytes = (GPU_EMULATED == 64 ? 64 : 48) * 1024;
    progress_.counter = &reached_;
  }

  const AcceleratorInfo& info() const override { return info_; }
  int64_t free_bytes() override { return info_.total_bytes - allocated_; }

  std::byte* allocate(int64_t bytes) override {
    refuse_if_lost();
    if (bytes > free_bytes())
      throw_error(Exit::memory, "{} has no {} MB of memory left ({} MB are free)", info_.name, bytes / 1000000,
                  free_bytes() / 1000000);
    Buffer buffer(std::max<int64_t>(bytes, 1));
    std::byte* const data = buffer.data();
    auto memory = std::make_unique<GlobalMemory>();
    memory->begin = data, memory->end = data + bytes;
    const std::lock_guard lock(registry().mutex);
    registry().entries[data] = {std::move(buffer), std::move(memory)};
    allocated_ += bytes;
    return data;
  }
  void release(std::byte* data) noexcept override {
    if (!data) return;
    drain();
    const std::lock_guard lock(registry().mutex);
    const auto found = registry().entries.find(data);
    if (found == registry().entries.end()) return;
    allocated_ -= found->second.memory->end - found->second.memory->begin;
    registry().entries.erase(found);
  }
  std::byte* allocate_pinned(int64_t bytes) override {
    refuse_if_lost();
    Buffer buffer(std::max<int64_t>(bytes, 1));
    std::byte* const data = buffer.data();
    pinned_[data] = std::move(buffer);
    return data;
  }
  void release_pinned(std::byte* data) noexcept override {
    if (!data) return;
    drain();
    pinned_.erase(data);
  }

  void upload(std::byte* device, const std::byte* pinned, int64_t bytes) override { copy(device, pinned, bytes); }
  void download(std::byte* pinned, const std::byte* device, int64_t bytes) override { copy(pinned, device, bytes); }
  void copy(std::byte* to, const std::byte* from, int64_t bytes) override {
    refuse_if_lost();
    if (bytes > 0) queue(Copy{to, from, bytes});
  }
  void upload_now(std::byte* device, const std::byte* host, int64_t bytes) override {
    copy(device, host, bytes);
    wait();
  }

  void wait() override {
    refuse_if_lost();
    ++waits_;
    drain();
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }

  void begin_capture() override {
    refuse_if_lost();
    recording_ = std::make_unique<Recorded>();
  }
  std::unique_ptr<Captured> end_capture() override {
    if (!recording_) throw_error(Exit::failed, "{}: no capture was begun", info_.name);
    return std::move(recording_);
  }
  void drop_capture() noexcept override { recording_.reset(); }
  void launch(const Captured& work) override {
    refuse_if_lost();
    ++launches_;
    const Commands& all = static_cast<const Recorded&>(work).commands;
    queue_.insert(queue_.end(), all.begin(), all.end());
  }

  void* stream() override {
    refuse_if_lost();
    return this;
  }

  void queue(Command command) {
    (recording_ ? recording_->commands : queue_).push_back(std::make_shared<const Command>(std::move(command)));
  }

 private:
  void refuse_if_lost() const {
    if (!lost_.empty()) throw_error(Exit::stalled, "{}", lost_);
  }

  // Runs what is queued, up to the first error.
  void drain() noexcept {
    const Commands commands = std::move(queue_);
    queue_.clear();
    try {
      for (const auto& command : commands) {
        if (error_) return;
        if (const Copy* c = std::get_if<Copy>(&*command))
          std::copy_n(c->from, c->bytes, c->to);
        else
          run(std::get<Work>(*command));
      }
    } catch (...) {
      error_ = std::current_exception();
    }
  }

  void run(const Work& work) {
    if (work.progress.counter) *work.progress.counter = work.progress.node;
    const Grid& g = work.grid;
    const int64_t all = g.x * g.y * g.z;
    const int64_t chunks = std::min<int64_t>(all, 64L * pool_.threads());
    std::atomic<bool> failed = false;
    pool_.run(chunks, [&](int64_t chunk, int thread) {
      auto& block = blocks_[static_cast<size_t>(thread)];
      if (!block) block = std::make_unique<Block>();
      try {
        for (int64_t i = all * chunk / chunks; i < all * (chunk + 1) / chunks && !failed; ++i)
          block->run(work, {i % g.x, i / g.x % g.y, i / g.x / g.y}, info_.limits.shared_bytes);
      } catch (...) {
        failed = true;
        throw;
      }
    });
  }

  AcceleratorInfo info_;
  ThreadPool pool_;
  std::vector<std::unique_ptr<Block>> blocks_;  // one a thread of the host
  uint32_t reached_ = 0;
  int64_t allocated_ = 0;
  std::map<std::byte*, Buffer> pinned_;
  Commands queue_;
  std::unique_ptr<Recorded> recording_;
  std::exception_ptr error_;
  std::string lost_;
};

}  // namespace

const GlobalMemory* find_memory(const std::byte* data, int64_t bytes) {
  const std::lock_guard lock(registry().mutex);
  auto found = registry().entries.upper_bound(data);
  if (found == registry().entries.begin()) throw_error(Exit::failed, "a kernel's argument isn't memory of the device");
  const GlobalMemory* memory = (--found)->second.memory.get();
  if (data + bytes > memory->end)
    throw_error(Exit::failed, "a kernel's argument of {} bytes isn't memory of the device", bytes);
  return memory;
}

// "[with auto F = consonant::emu32::{anonymous}::scale<float>; ...]": scale<float>
std::string kernel_name(const char* pretty_function) {
  std::string_view text = pretty_function;
  text.remove_prefix(std::min(text.size(), text.find("F = ") + 4));
  text = text.substr(0, std::min(text.find(';'), text.rfind(']')));
  for (const std::string_view part :
       {"&", "consonant::", "emu32::", "emu64::", "{anonymous}::", "(anonymous namespace)::"})
    if (text.substr(0, part.size()) == part) text.remove_prefix(part.size());
  return std::string(text);
}

void queue_work(Accelerator& device, Work work) {
  const Limits& l = device.limits();
  const Grid& g = work.grid;
  if (work.threads > l.threads || work.threads % 64 != 0)
    throw_error(Exit::failed, "launching {}: {} threads a block, of at most {} and multiples of 64", work.kernel,
                work.threads, l.threads);
  if (g.x > l.grid || g.y > l.grid_yz || g.z > l.grid_yz || g.x < 0 || g.y < 0 || g.z < 0)
    throw_error(Exit::failed, "launching {}: a grid of {} x {} x {} blocks, of at most {} x {} x {}", work.kernel, g.x,
                g.y, g.z, l.grid, l.grid_yz, l.grid_yz);
  if (work.dynamic_shared > l.shared_bytes || work.dynamic_shared < 0)
    throw_error(Exit::failed, "launching {}: {} bytes of shared memory, a block has {}", work.kernel,
                work.dynamic_shared, l.shared_bytes);
  static_cast<Emulated*>(device.stream())->queue(std::move(work));
}

int device_count() { return 1; }

std::unique_ptr<Accelerator> open_device(int index) {
  if (index != 0) throw_error(Exit::device, "there is one {} device, number 0, not {}", name(device_kind), index);
  return std::make_unique<Emulated>();
}

}  // namespace consonant::GPU_BUILD::gpu
