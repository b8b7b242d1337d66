// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ops/gpu_kernel.hpp"
#include "ops/kernel.hpp"
#include "runtime/target.hpp"
#include "runtime/weights.hpp"

namespace consonant {

struct PlanOptions {
  Target device;
  // Products with quantised weights may round their activations: to 8 bits on the processor, to float16 on an
  // accelerator.
  bool small_activations = false;
  std::vector<std::string> taps;  // globs of the names of nodes whose values are kept for an observer
  const WeightStore* weights = nullptr;
  std::function<View(const StateAttr&)> states;  // where the states live
};

// A value's place: in the program's arena at `offset`, or outside of it (weights, states) at `view.data`.
struct Place {
  View view;  // at capacity; `data` is set for what lies outside the arena
  bool in_arena = true;
  int64_t offset = 0;  // bytes
};

struct PlannedNode {
  std::shared_ptr<Node> node;
  const Kernel* kernel = nullptr;         // the processor's
  const GpuKernel* gpu_kernel = nullptr;  // or an accelerator's
  std::vector<Place> in, out;
  Place scratch;  // of the accelerator's kernel

  std::string_view op() const;           // its op's name
  std::string_view kernel_name() const;  // the processor's kernels are named as their ops
};

// Nodes of one wave don't depend on each other: their chunks run together.
struct Plan {
  std::vector<std::vector<PlannedNode>> waves;
  std::vector<Place> outputs;  // of the graph
  std::vector<std::pair<std::string, Place>> inputs;
  struct Tap {
    std::string name, source;  // source: "llama.cpp:36"
    Place place;
  };
  std::vector<Tap> taps;
  int64_t input_bytes = 0;  // the first of the arena's: all inputs, one after another
  int64_t arena_bytes = 0;
  Target device;
};

// Binds one kernel to every node and assigns memory, or throws Error(Exit::device) with the full list of nodes that no
// kernel takes.
Plan make_plan(std::vector<Tensor> outputs, const PlanOptions& options);

}  // namespace consonant
