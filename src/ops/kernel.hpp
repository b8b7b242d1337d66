// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "graph/node.hpp"
#include "ops/op.hpp"
#include "tensor/packed.hpp"

namespace consonant {

// A tensor as a kernel sees it: this step's sizes (the leading one is the batch's, not the capacity) and strides in
// elements. A weight in Layout::rows8 has its plain shape here, and `data` is the packed matrix.
struct View {
  std::byte* data = nullptr;
  DType type = DType::f32;
  Shape shape;
  std::array<int64_t, Shape::max_rank> strides{};
  Layout layout = Layout::plain;

  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data);
  }
  int64_t last() const { return shape.last(); }
  int64_t rows() const { return shape.rows(); }
  bool contiguous() const;
  // Elements from `data` to the start of row `r`, rows counted over all dimensions but the last.
  int64_t row_offset(int64_t r) const;
  template <class T>
  T* row(int64_t r) const {
    return as<T>() + row_offset(r);
  }
};

// Why a kernel can't run a node; empty if it can.
struct Refusal {
  std::string reason;
  explicit operator bool() const { return !reason.empty(); }
};

struct Args {
  const Node* node = nullptr;
  std::span<const View> in;
  std::span<const View> out;

  template <class T>
  const T& attr() const {
    return node->attr<T>();
  }
};

// How a node's work is cut for this step. Chunks run in any order, on any thread, several at once: no result may depend
// on that, nor on the number of chunks.
struct Work {
  int64_t chunks = 1;
  int64_t scratch = 0;  // bytes a running chunk may use, aligned to 64
};

// One object holds what a kernel supports and how it runs, so that the two can't drift apart.
struct Kernel {
  DeviceKind device;
  Op op;
  Refusal (*can_run)(const Node& node);
  Work (*work)(const Args& args);
  void (*run)(const Args& args, int64_t chunk, std::byte* scratch);
};

// All registered kernels, from all.def.
std::span<const Kernel* const> all_kernels();

// The kernel that runs `node` on `device`, or the reasons why none does.
struct Choice {
  const Kernel* kernel = nullptr;
  Refusal refusal;
};
Choice choose_kernel(const Node& node, DeviceKind device);

}  // namespace consonant
