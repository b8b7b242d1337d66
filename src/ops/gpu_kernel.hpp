// SPDX-License-Identifier: Apache-2.0
#pragma once

// What x.gpu.cpp gives, and how it takes its node's values. Host side only; kernels use device/gpu.hpp's names.
#include <memory>
#include <span>
#include <string_view>

#include "device/accelerator.hpp"
#include "ops/kernel.hpp"

namespace consonant {

// A kernel of an accelerator. As on the CPU, one object holds what it supports and how it runs. A function makes it,
// since HIP would copy a constant to the device.
struct GpuKernel {
  std::string_view name;  // the op's, or what makes it special: "linear_mma"
  Op op;
  // At the node's capacity: every step of a program is at most that large.
  Refusal (*can_run)(const Node& node, const Limits& limits);
  // Bytes of device memory that a launch may use, at the node's capacity; null: none.
  int64_t (*scratch)(const Node& node, const Limits& limits);
  // Queues the node's work. The sizes in `args` are this step's; addresses are the device's, and nothing in them may be
  // read here. Captured once, the same launches serve later steps of the same sizes: what else changes from step to
  // step (positions, pages) must be read by the kernel.
  void (*launch)(const Args& args, Accelerator& device, std::byte* scratch);
  // What its inputs are rounded by before they are multiplied: 2^-11 for float16, 0 if they aren't.
  double rounding = 0;
  // In steps of up to so many tokens, a token's result has the same bits whatever else is in the step; with more it is
  // within the tolerance of that.
  int64_t same_bits_to = INT64_MAX;
};

// A family of accelerators, built in or from a plug-in.
struct Backend {
  std::string_view version;  // of the program it was built with
  DeviceKind kind;
  int (*count)();                                   // of devices
  std::unique_ptr<Accelerator> (*open)(int index);  // Exit::device if it can't be used
  std::span<const GpuKernel> (*kernels)();          // the faster ones of an op first
};

struct GpuChoice {
  const GpuKernel* kernel = nullptr;
  Refusal refusal;
};
// `exact`: none that rounds its inputs.
GpuChoice choose_kernel(const Node& node, std::span<const GpuKernel> kernels, const Limits& limits, bool exact);

// Refuses nodes whose inputs and outputs aren't all float32, whose rows aren't contiguous, that have more than three
// dimensions, or more rows than a grid has blocks.
Refusal wants_gpu_rows(const Node& node, const Limits& limits);

// The part of it that looks at dimensions alone.
Refusal wants_gpu_shapes(const Node& node, const Limits& limits);

// Bytes from the first element of a view to behind its last.
int64_t extent(const View& view);

}  // namespace consonant
