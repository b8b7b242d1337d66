// SPDX-License-Identifier: Apache-2.0
// The emulated device. What is queued runs when the host waits, so host memory that is read or changed too early shows
// as wrong results, as it may on a real one. It refuses what a real one would: copies from memory that isn't pinned,
// waits within a capture, launches beyond its limits.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <thread>
#include <variant>

#include "base/error.hpp"
#include "base/threads.hpp"
#include "device/emu/block_runner.hpp"
#include "device/emu/faults.hpp"
#include "device/gpu.hpp"
#include "device/spin.hpp"

namespace consonant::GPU_BUILD::gpu {

const DeviceKind device_kind = GPU_EMULATED == 64 ? DeviceKind::emu64 : DeviceKind::emu32;

namespace {

struct Copy {
  std::byte* to;
  const std::byte* from;
  int64_t bytes;
};
struct Spin {
  double seconds;
  uint32_t node;
};
using Command = std::variant<Work, Copy, Spin>;
using Commands = std::vector<std::shared_ptr<const Command>>;

struct Recorded final : Captured {
  Commands commands;
};

// Ends what is queued: a launch that never ends, or not before the wait does.
struct Stalled {};

// Launches of all devices, in 28 bits and never 0.
uint32_t next_launch() {
  static std::atomic<uint32_t> count{0};
  for (;;)
    if (const uint32_t n = ++count & 0xFFFFFFF; n != 0) return n;
}

class Emulated final : public Accelerator, public EmulatedDevice, public SpinningDevice {
 public:
  Emulated() : pool_(usable_cores()), blocks_(static_cast<size_t>(pool_.threads())) {
    info_.kind = device_kind;
    info_.name = fmt::format("emulated device of {} lanes", GPU_EMULATED);
    info_.target = name(device_kind);
    info_.driver = "emulator";
    info_.total_bytes = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
    Limits& l = info_.limits;
    l.lanes = GPU_EMULATED, l.threads = 1024, l.processors = pool_.threads();
    l.shared_bytes = (GPU_EMULATED == 64 ? 64 : 48) * 1024;
    progress_.counter = &reached_;
  }
  ~Emulated() {
    for (auto& block : blocks_)
      if (block) give_block(std::move(block));
    for (const auto& [data, memory] : allocated_) memory->release();
  }

  const AcceleratorInfo& info() const override { return info_; }
  int64_t free_bytes() override { return std::max<int64_t>(0, info_.total_bytes - allocated_bytes_); }

  std::byte* allocate(int64_t bytes) override {
    refuse("allocating memory");
    if (!may_allocate() || bytes > free_bytes())
      throw_error(Exit::memory, "{} has no {} MB of memory left ({} MB are free)", info_.name, bytes / 1000000,
                  free_bytes() / 1000000);
    GlobalMemory& memory = add_memory(bytes);
    allocated_[memory.begin()] = &memory;
    allocated_bytes_ += bytes;
    return memory.begin();
  }
  void release(std::byte* data) noexcept override {
    drain();
    const auto found = allocated_.find(data);
    if (found == allocated_.end()) return;
    allocated_bytes_ -= found->second->size();
    found->second->release();
    allocated_.erase(found);
  }
  std::byte* allocate_pinned(int64_t bytes) override {
    refuse("allocating pinned memory");
    if (!may_allocate()) throw_error(Exit::memory, "the system has no {} bytes of pinned memory", bytes);
    Buffer buffer(std::max<int64_t>(bytes, 1));
    std::byte* const data = buffer.data();
    pinned_bytes_ += buffer.size();
    pinned_[data] = std::move(buffer);
    return data;
  }
  void release_pinned(std::byte* data) noexcept override {
    drain();
    const auto found = pinned_.find(data);
    if (found == pinned_.end()) return;
    pinned_bytes_ -= found->second.size();
    pinned_.erase(found);
  }

  void upload(std::byte* device, const std::byte* pinned, int64_t bytes) override {
    if (bytes > 0) check_pinned(pinned, bytes), check_memory(device, bytes);
    queue_copy(device, pinned, bytes);
  }
  void download(std::byte* pinned, const std::byte* device, int64_t bytes) override {
    if (bytes > 0) check_pinned(pinned, bytes), check_memory(device, bytes);
    queue_copy(pinned, device, bytes);
  }
  void copy(std::byte* to, const std::byte* from, int64_t bytes) override {
    if (bytes > 0) check_memory(to, bytes), check_memory(from, bytes);
    queue_copy(to, from, bytes);
  }
  void upload_now(std::byte* device, const std::byte* host, int64_t bytes) override {
    refuse("a copy that waits");
    if (bytes > 0) check_memory(device, bytes);
    queue_copy(device, host, bytes);
    wait();
  }

  void wait() override {
    refuse("a wait");
    ++waits_;
    const Deadline limit = Deadline::after(std::min(deadline_, 1e6));
    drain(limit);
    if (stalled_) {
      sleep(limit.left());
      lose(Exit::stalled, words(fmt::format("no answer within {:.6g} s", deadline_)));
    }
    refuse("a wait");
    launches_waited_for_ = launches_;
  }

  void begin_capture() override {
    refuse("a capture");
    recording_ = std::make_unique<Recorded>();
  }
  std::unique_ptr<Captured> end_capture() override {
    if (!recording_) throw_error(Exit::failed, "{}: no capture was begun", info_.name);
    return std::move(recording_);
  }
  void drop_capture() noexcept override { recording_.reset(); }
  void launch(const Captured& work) override {
    refuse("launching captured work");
    ++launches_;
    const Commands& all = static_cast<const Recorded&>(work).commands;
    queue_.insert(queue_.end(), all.begin(), all.end());
  }

  void spin(double seconds) override {
    refuse_if_lost();
    count_launch();
    queue(Spin{seconds, progress_.node});
  }

  void* stream() override {
    refuse_if_lost();
    return this;
  }

  void queue(Command command) {
    (recording_ ? recording_->commands : queue_).push_back(std::make_shared<const Command>(std::move(command)));
  }

  void stall_at(uint32_t node) override { stall_at_ = node; }
  void lose_at(uint32_t node) override { lose_at_ = node; }
  void allow_allocations(int64_t count) override { allocations_left_ = count; }
  void set_total_bytes(int64_t bytes) override { info_.total_bytes = bytes; }
  void check_order(bool checks) override { checks_ = checks; }
  int64_t allocated_bytes() const override { return allocated_bytes_; }
  int64_t pinned_bytes() const override { return pinned_bytes_; }
  int64_t allocations() const override { return static_cast<int64_t>(allocated_.size() + pinned_.size()); }

 private:
  void refuse_if_lost() const {
    if (!lost_.empty()) throw Error(lost_exit_, lost_);
  }
  void refuse(const char* what) const {
    refuse_if_lost();
    if (recording_) throw_error(Exit::failed, "{}: {} while work is captured", info_.name, what);
  }

  bool may_allocate() {
    if (allocations_left_ == 0) return false;
    if (allocations_left_ > 0) --allocations_left_;
    return true;
  }

  void check_memory(const std::byte* data, int64_t bytes) const {
    auto found = allocated_.upper_bound(const_cast<std::byte*>(data));
    if (found == allocated_.begin() || !(--found)->second->holds(data, bytes))
      throw_error(Exit::failed, "{}: a copy of {} bytes, not all of them in the device's memory", info_.name, bytes);
  }
  void check_pinned(const std::byte* data, int64_t bytes) const {
    auto found = pinned_.upper_bound(const_cast<std::byte*>(data));
    if (found == pinned_.begin() || data + bytes > (--found)->first + found->second.size())
      throw_error(Exit::failed, "{}: a copy of {} bytes, not all of them in pinned memory", info_.name, bytes);
  }
  void queue_copy(std::byte* to, const std::byte* from, int64_t bytes) {
    refuse_if_lost();
    if (bytes > 0) queue(Copy{to, from, bytes});
  }

  void lose(Exit exit, const std::string& words) { lost_ = words, lost_exit_ = exit; }
  std::string words(const std::string& why) const {
    return stalled_words(info_.name, why, name_of(reached_), launches_ - launches_waited_for_);
  }
  static void sleep(double seconds) {
    if (seconds > 0) std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  }

  // Runs what is queued, up to the first error, with which the device is lost.
  void drain(const Deadline& limit = {}) noexcept {
    if (stalled_ || !lost_.empty()) return;
    const Commands commands = std::move(queue_);
    queue_.clear();
    try {
      for (const auto& command : commands) {
        if (const Copy* c = std::get_if<Copy>(&*command))
          std::copy_n(c->from, c->bytes, c->to);
        else if (const Spin* s = std::get_if<Spin>(&*command))
          run(*s, limit);
        else
          run(std::get<Work>(*command));
      }
    } catch (const Stalled&) {
      stalled_ = true;
    } catch (const Error& e) {
      const std::string where = e.exit() == Exit::failed ? name_of(reached_) : std::string();
      lose(e.exit(), where.empty() ? e.what() : fmt::format("{}: {}", where, e.what()));
    } catch (const std::exception& e) {
      lose(Exit::failed, e.what());
    }
  }

  void run(const Spin& spin, const Deadline& limit) {
    reached_ = spin.node;
    if (limit.is_set() && limit.left() < spin.seconds) throw Stalled();
    sleep(spin.seconds);
  }

  void run(const Work& work) {
    reached_ = work.node;
    if (work.node && work.node == stall_at_) throw Stalled();
    if (work.node && work.node == lose_at_) throw Error(Exit::stalled, words("a fault that a test asked for"));
    const int64_t all = work.grid.x * work.grid.y * work.grid.z, chunks = std::min<int64_t>(all, 64L * pool_.threads());
    const Rules rules{info_.limits.shared_bytes, checks_, next_launch()};
    std::atomic<bool> failed = false;
    pool_.run(chunks, [&](int64_t chunk, int thread) {
      auto& block = blocks_[static_cast<size_t>(thread)];
      if (!block) block = take_block();
      try {
        for (int64_t i = all * chunk / chunks; i < all * (chunk + 1) / chunks && !failed; ++i)
          block->run(work, i, rules);
      } catch (...) {
        failed = true;
        throw;
      }
    });
  }

  AcceleratorInfo info_;
  ThreadPool pool_;
  std::vector<std::unique_ptr<BlockRunner>> blocks_;  // one a thread of the host
  uint32_t reached_ = 0;                              // a node

  std::map<std::byte*, GlobalMemory*> allocated_;
  std::map<std::byte*, Buffer> pinned_;
  int64_t allocated_bytes_ = 0, pinned_bytes_ = 0, allocations_left_ = -1;

  Commands queue_;
  int64_t launches_waited_for_ = 0;
  std::unique_ptr<Recorded> recording_;
  bool checks_ = true, stalled_ = false;
  uint32_t stall_at_ = 0, lose_at_ = 0;
  std::string lost_;
  Exit lost_exit_ = Exit::stalled;
};

}  // namespace

// "[with auto F = consonant::emu32::{anonymous}::scale<float>; std::string = ...]": scale<float>
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
  if (work.threads > l.threads || work.threads % 64 != 0 || work.threads < 64)
    throw_error(Exit::failed, "launching {}: {} threads a block, which may be a multiple of 64 up to {}", work.kernel,
                work.threads, l.threads);
  if (g.x > l.grid || g.y > l.grid_yz || g.z > l.grid_yz || g.x < 0 || g.y < 0 || g.z < 0)
    throw_error(Exit::failed, "launching {}: {} x {} x {} blocks, which may be up to {} x {} x {}", work.kernel, g.x,
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
