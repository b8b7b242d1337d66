// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/threads.hpp"
#include "device/accelerator.hpp"
#include "device/device.hpp"
#include "runtime/batch.hpp"
#include "runtime/plan.hpp"

namespace consonant {

class SpinningDevice;

// A planned graph with its memory, run a step at a time. Not movable: a device may be told where its nodes' names are.
class Program {
 public:
  // Its values lie in `arena`, which programs that run one after another may share, if it is large enough, or else in
  // memory of its own.
  explicit Program(Plan plan, std::shared_ptr<Buffer> arena = nullptr);
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program();

  // Runs one step; on an accelerator it is only queued. The batch must fit the capacities that the graph was built for.
  void run(const Batch& batch, ThreadPool& pool);

  // The same, a node at a time; `seen` gets each node's outputs in the host's memory, states whole. What it returns
  // true for is taken back: later nodes read the outputs as `seen` left them.
  using Observer = std::function<bool(const PlannedNode& planned, std::span<const View> outputs)>;
  void run_observed(const Batch& batch, ThreadPool& pool, const Observer& seen);

  // How long the kernels of a step take: each kind's nodes, of equal kernel and shapes, are captured one after another,
  // as often as makes that measurable, and launched as one. For accelerators; the step itself is run first.
  struct KernelTime {
    std::string name;  // "linear_mma f32[token<=1, 4096] q4_k[4096, 4096] -> ..."
    int64_t nodes = 0;
    double seconds = 0;        // of one
    int64_t weight_bytes = 0;  // that one reads
  };
  std::vector<KernelTime> time_kernels(const Batch& batch);

  // Of the step that ran last, in the host's memory; valid until the next. On an accelerator this is where the caller
  // waits.
  View output(size_t index) const;
  // The outputs that will be asked for, so that one wait brings them all.
  void bring(std::span<const size_t> outputs) const;
  void bring(std::initializer_list<size_t> outputs) const { bring(std::span(outputs.begin(), outputs.size())); }
  View tap(size_t index) const;

  const Plan& plan() const { return plan_; }
  int64_t arena_bytes() const { return plan_.arena_bytes; }

 private:
  struct Step {
    const PlannedNode* planned;
    std::vector<View> in, out;
    Args args;
    Work work;
  };
  // A copy of an accelerator's value.
  struct Fetched {
    PinnedBuffer copy;
    int64_t run = -1;  // that it is of
  };

  void begin(const Batch& batch);
  void feed(const Batch& batch);
  void feed_named(const Batch& batch, const std::string& name, const View& capacity, const View& to) const;
  void set_views();
  void run_wave(std::span<Step> wave, ThreadPool& pool);
  void run_queued();
  void launch_nodes();
  void launch_node(Step& step, uint32_t number);
  std::string describe(uint32_t number) const;
  static std::string signature(const Step& step);
  double time_launches(std::span<Step* const> steps);
  View resolve(const Place& place) const;
  View fetch(const Place& place, Fetched& fetched) const;
  void queue_fetch(const Place& place, Fetched& fetched) const;

  Plan plan_;
  Accelerator* device_;
  SpinningDevice* spinning_ = nullptr;  // null: the device can't
  std::shared_ptr<Buffer> arena_;
  std::vector<std::vector<Step>> waves_;
  int64_t tokens_ = -1, wanted_ = -1;  // of the step that the views are set for
  std::vector<Buffer> scratch_;        // one a thread

  // Of an accelerator.
  PinnedBuffer staging_;  // the inputs on their way
  struct Launches {
    int times = 0;
    std::unique_ptr<Captured> captured;
  };
  std::map<std::pair<int64_t, int64_t>, Launches> launches_;  // by numbers of tokens and of wanted rows
  int64_t runs_ = 0;
  mutable int64_t waited_ = 0;  // runs that are known to be over
  mutable std::vector<Fetched> fetched_outputs_, fetched_taps_;
};

}  // namespace consonant
