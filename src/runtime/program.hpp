// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/threads.hpp"
#include "device/device.hpp"
#include "runtime/batch.hpp"
#include "runtime/plan.hpp"

namespace consonant {

// A planned graph with its memory, run a step at a time.
class Program {
 public:
  explicit Program(Plan plan);

  // Runs one step. The batch must fit the capacities that the graph was built for.
  void run(const Batch& batch, ThreadPool& pool);

  // Of the step that ran last; valid until the next.
  View output(size_t index) const { return resolve(plan_.outputs[index]); }
  View tap(size_t index) const { return resolve(plan_.taps[index].place); }

  const Plan& plan() const { return plan_; }
  int64_t arena_bytes() const { return arena_.size(); }

 private:
  struct Step {
    const PlannedNode* planned;
    std::vector<View> in, out;
    Args args;
    Work work;
  };

  void feed(const Batch& batch);
  void feed_named(const Batch& batch, const std::string& name, const View& capacity, const View& to) const;
  void run_wave(std::vector<Step>& wave, ThreadPool& pool);
  View resolve(const Place& place) const;

  Plan plan_;
  Buffer arena_;
  std::vector<std::vector<Step>> waves_;
  int64_t tokens_ = -1, wanted_ = -1;  // of the step that the views are set for
  std::vector<Buffer> scratch_;        // one a thread
};

}  // namespace consonant
