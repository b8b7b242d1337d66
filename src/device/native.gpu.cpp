// SPDX-License-Identifier: Apache-2.0
// Accelerators of CUDA and HIP, whose calls have the same names but for their beginnings.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <thread>

#include "base/error.hpp"
#include "device/gpu.hpp"
#include "device/spin.hpp"

#ifdef __HIPCC__
#define VENDOR(name) hip##name
#else
#define VENDOR(name) cuda##name
#endif

namespace consonant::GPU_BUILD::gpu {

#ifdef __HIPCC__
const DeviceKind device_kind = DeviceKind::hip;
constexpr const char* vendor = "HIP";
using Properties = hipDeviceProp_t;
#else
const DeviceKind device_kind = DeviceKind::cuda;
constexpr const char* vendor = "CUDA";
using Properties = cudaDeviceProp;
#endif

namespace {

using Result = VENDOR(Error_t);
constexpr Result good = VENDOR(Success);

std::string words(Result result) {
  return fmt::format("{} ({})", VENDOR(GetErrorString)(result), VENDOR(GetErrorName)(result));
}

void check(Result result, const char* what) {
  if (result != good) throw_error(Exit::stalled, "{}: {}: {}", vendor, what, words(result));
}

#ifndef __HIPCC__
Result instantiate(cudaGraphExec_t* exec, cudaGraph_t graph) { return cudaGraphInstantiate(exec, graph, 0); }
Result pin(void** data, size_t bytes) { return cudaMallocHost(data, bytes); }
void unpin(void* data) { cudaFreeHost(data); }
#else
Result instantiate(hipGraphExec_t* exec, hipGraph_t graph) {
  return hipGraphInstantiate(exec, graph, nullptr, nullptr, 0);
}
Result pin(void** data, size_t bytes) { return hipHostMalloc(data, bytes, 0); }
void unpin(void* data) { (void)hipHostFree(data); }
#endif

// Seconds that a wait looks on without rest: a step of a generation is shorter, and a sleep is seen in its time.
constexpr double brief_wait = 0.02;

class Graph final : public Captured {
 public:
  explicit Graph(VENDOR(Graph_t) graph) {
    const Result result = instantiate(&exec_, graph);
    (void)VENDOR(GraphDestroy)(graph);
    check(result, "the captured work can't be launched");
  }
  ~Graph() override { (void)VENDOR(GraphExecDestroy)(exec_); }
  VENDOR(GraphExec_t) exec() const { return exec_; }

 private:
  VENDOR(GraphExec_t) exec_ = nullptr;
};

// Takes so many nanoseconds on CUDA, so many ticks of its clock on HIP. It says nothing to what comes next before it
// ends, unlike other kernels, so that none of those overwrites where the device is.
__global__ void spin_kernel(Progress progress, uint64_t duration) {
  if (threadIdx.x != 0) return;
  *const_cast<volatile uint32_t*>(progress.counter) = progress.node;
  __threadfence_system();
  const auto now = [] {
#ifdef __HIPCC__
    return static_cast<uint64_t>(clock64());
#else
    uint64_t t;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
    return t;
#endif
  };
  const uint64_t start = now();
  while (now() - start < duration) {
  }
}

class Native final : public Accelerator, public SpinningDevice {
 public:
  explicit Native(int index) {
    use(index);
    describe(index);
    check(VENDOR(StreamCreateWithFlags)(&stream_, VENDOR(StreamNonBlocking)), "no stream");
    check(VENDOR(EventCreateWithFlags)(&done_, VENDOR(EventDisableTiming)), "no event");
    progress_.counter = reinterpret_cast<uint32_t*>(allocate_pinned(sizeof(uint32_t)));
    *progress_.counter = 0;
  }

  ~Native() override {
    if (!lost_.empty()) return;  // whatever is freed now would wait for the device
    release_pinned(reinterpret_cast<std::byte*>(progress_.counter));
    (void)VENDOR(EventDestroy)(done_);
    (void)VENDOR(StreamDestroy)(stream_);
  }

  const AcceleratorInfo& info() const override { return info_; }

  int64_t free_bytes() override {
    ready();
    size_t free = 0, total = 0;
    check(VENDOR(MemGetInfo)(&free, &total), "how much memory is free");
    return static_cast<int64_t>(free);
  }

  std::byte* allocate(int64_t bytes) override {
    ready();
    void* data = nullptr;
    const Result result = VENDOR(Malloc)(&data, static_cast<size_t>(std::max<int64_t>(bytes, 1)));
    if (result != good) {
      (void)VENDOR(GetLastError)();
      throw_error(Exit::memory, "{} has no {} MB of memory left ({} MB are free)", info_.name, bytes / 1000000,
                  free_bytes() / 1000000);
    }
    check(VENDOR(MemsetAsync)(data, 0, static_cast<size_t>(bytes), stream_), "clearing memory");
    return static_cast<std::byte*>(data);
  }
  void release(std::byte* data) noexcept override {
    if (lost_.empty()) (void)VENDOR(Free)(data);
  }
  std::byte* allocate_pinned(int64_t bytes) override {
    ready();
    void* data = nullptr;
    if (pin(&data, static_cast<size_t>(std::max<int64_t>(bytes, 1))) != good) {
      (void)VENDOR(GetLastError)();
      throw_error(Exit::memory, "the system has no {} bytes of pinned memory", bytes);
    }
    return static_cast<std::byte*>(data);
  }
  void release_pinned(std::byte* data) noexcept override {
    if (lost_.empty()) unpin(data);
  }

  void upload(std::byte* device, const std::byte* pinned, int64_t bytes) override {
    queue_copy(device, pinned, bytes, VENDOR(MemcpyHostToDevice));
  }
  void download(std::byte* pinned, const std::byte* device, int64_t bytes) override {
    queue_copy(pinned, device, bytes, VENDOR(MemcpyDeviceToHost));
  }
  void copy(std::byte* to, const std::byte* from, int64_t bytes) override {
    queue_copy(to, from, bytes, VENDOR(MemcpyDeviceToDevice));
  }
  void upload_now(std::byte* device, const std::byte* host, int64_t bytes) override {
    queue_copy(device, host, bytes, VENDOR(MemcpyHostToDevice));
    wait();
  }

  void wait() override {
    ready();
    ++waits_;
    check(VENDOR(EventRecord)(done_, stream_), "recording an event");
    const Deadline limit = Deadline::after(deadline_), brief = Deadline::after(brief_wait);
    for (;;) {
      const Result result = VENDOR(EventQuery)(done_);
      if (result == good) {
        launches_waited_for_ = launches_;
        return;
      }
      if (result != VENDOR(ErrorNotReady)) lose(words(result));
      if (limit.passed()) lose(fmt::format("no answer within {:.6g} s", deadline_));
      if (brief.passed()) std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }

  void begin_capture() override {
    ready();
    check(VENDOR(StreamBeginCapture)(stream_, VENDOR(StreamCaptureModeThreadLocal)), "beginning to capture");
  }
  std::unique_ptr<Captured> end_capture() override {
    VENDOR(Graph_t) graph = nullptr;
    check(VENDOR(StreamEndCapture)(stream_, &graph), "ending to capture");
    return std::make_unique<Graph>(graph);
  }
  void drop_capture() noexcept override {
    VENDOR(Graph_t) graph = nullptr;
    (void)VENDOR(StreamEndCapture)(stream_, &graph);
    if (graph) (void)VENDOR(GraphDestroy)(graph);
    (void)VENDOR(GetLastError)();
  }
  void launch(const Captured& work) override {
    ready();
    ++launches_;
    check(VENDOR(GraphLaunch)(static_cast<const Graph&>(work).exec(), stream_), "launching captured work");
  }

  void spin(double seconds) override {
    ready();
    count_launch();
    const auto duration = static_cast<uint64_t>(seconds * ticks_per_second_);
#ifdef __HIPCC__
    hipLaunchKernelGGL(spin_kernel, dim3(1), dim3(64), 0, stream_, progress_, duration);
#else
    spin_kernel<<<1, 64, 0, stream_>>>(progress_, duration);
#endif
    check_launch("a kernel that spins");
  }

  void* stream() override {
    ready();
    return stream_;
  }

 private:
  static void use(int index) {
    const Result result = VENDOR(SetDevice)(index);
    if (result == good) return;
    (void)VENDOR(GetLastError)();
    throw_error(Exit::device, "{} device {} can't be used: {}", vendor, index, words(result));
  }

  void describe(int index) {
    Properties p;
    check(VENDOR(GetDeviceProperties)(&p, index), "asking for a device's properties");
    info_.kind = device_kind, info_.index = index, info_.name = p.name;
    int driver = 0, runtime = 0;
    (void)VENDOR(DriverGetVersion)(&driver);
    (void)VENDOR(RuntimeGetVersion)(&runtime);
    info_.driver = fmt::format("{} driver {}.{}, runtime {}.{}", vendor, driver / 1000, driver % 1000 / 10,
                               runtime / 1000, runtime % 1000 / 10);
    info_.total_bytes = static_cast<int64_t>(p.totalGlobalMem);
    info_.unified = p.integrated != 0;
    Limits& l = info_.limits;
    l.lanes = p.warpSize, l.threads = p.maxThreadsPerBlock, l.processors = p.multiProcessorCount;
    l.grid = p.maxGridSize[0], l.grid_yz = p.maxGridSize[1];
#ifdef __HIPCC__
    l.shared_bytes = static_cast<int64_t>(p.sharedMemPerBlock);
    info_.target = p.gcnArchName;
    ticks_per_second_ = p.clockRate * 1e3;  // of kHz
#else
    l.shared_bytes = static_cast<int64_t>(p.sharedMemPerBlockOptin);
    l.compute = p.major * 10 + p.minor;
    info_.target = fmt::format("sm_{}", l.compute);
#endif
  }

  void queue_copy(std::byte* to, const std::byte* from, int64_t bytes, VENDOR(MemcpyKind) kind) {
    ready();
    if (bytes > 0) check(VENDOR(MemcpyAsync)(to, from, static_cast<size_t>(bytes), kind, stream_), "copying");
  }

  // Before every call: which device is current is each thread's own.
  void ready() const {
    if (!lost_.empty()) throw_error(Exit::stalled, "{}", lost_);
    check(VENDOR(SetDevice)(info_.index), "choosing the device");
  }

  [[noreturn]] void lose(const std::string& why) {
    const uint32_t reached = *const_cast<volatile uint32_t*>(progress_.counter);
    lost_ = stalled_words(info_.name, why, name_of(reached), launches_ - launches_waited_for_);
    throw_error(Exit::stalled, "{}", lost_);
  }

  AcceleratorInfo info_;
  Stream stream_ = nullptr;
  VENDOR(Event_t) done_ = nullptr;
  int64_t launches_waited_for_ = 0;
  std::string lost_;
  double ticks_per_second_ = 1e9;  // of the clock that a spinning kernel looks at
};

}  // namespace

void check_launch(const char* what) {
  const Result result = VENDOR(GetLastError)();
  if (result != good) throw_error(Exit::stalled, "{}: launching {}: {}", vendor, what, words(result));
}

int device_count() {
  int count = 0;
  if (VENDOR(GetDeviceCount)(&count) == good) return count;
  (void)VENDOR(GetLastError)();
  return 0;
}

std::unique_ptr<Accelerator> open_device(int index) { return std::make_unique<Native>(index); }

}  // namespace consonant::GPU_BUILD::gpu
