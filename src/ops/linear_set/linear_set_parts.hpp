// SPDX-License-Identifier: Apache-2.0
#pragma once

// A linear_set on an accelerator as the launches of its parts one after another: rms_norm, the linear layers, gated.
// What they pass on is in scratch memory.
#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "ops/gated/gated.hpp"
#include "ops/gpu_kernel.hpp"
#include "ops/linear/linear.hpp"
#include "ops/linear_set/linear_set.hpp"
#include "ops/rms_norm/rms_norm.hpp"
#include "ops/work.hpp"

namespace consonant::GPU_BUILD {

GpuKernel rms_norm_gpu();
GpuKernel gated_gpu();
GpuKernel linear_gpu();

class LinearSetParts {
 public:
  // How `linear` is launched, where not as itself: all products of a set after one another have the same input and
  // scratch memory.
  using LaunchLinear = std::function<void(const Args& args, Accelerator& device, std::byte* scratch)>;

  explicit LinearSetParts(GpuKernel linear, LaunchLinear launch = {})
      : linear_(linear), launch_linear_(launch ? std::move(launch) : linear.launch) {}

  Refusal can_run(const Node& node, const Limits& limits) const {
    const Plain plain(node);
    if (plain.norm)
      if (Refusal refusal = rms_norm_gpu().can_run(*plain.norm.node, limits)) return refusal;
    for (const Tensor& product : plain.products)
      if (Refusal refusal = linear_.can_run(*product.node, limits)) return refusal;
    if (plain.gated)
      if (Refusal refusal = gated_gpu().can_run(*plain.gated.node, limits)) return refusal;
    return {};
  }

  int64_t scratch(const Node& node, const Limits& limits) const {
    const Plain plain(node);
    const LinearSetAttr& attr = node.attr<LinearSetAttr>();
    const Room room(attr, node.inputs[0].shape(), node.outputs[0].shape);
    int64_t most = 0;
    for (const Tensor& product : plain.products)
      if (linear_.scratch) most = std::max(most, linear_.scratch(*product.node, limits));
    return room.end + most;
  }

  void launch(const Args& args, Accelerator& device, std::byte* scratch) const {
    const LinearSetAttr& attr = args.attr<LinearSetAttr>();
    const Room room(attr, args.in[0].shape, args.out[0].shape);
    View x = args.in[0];
    if (attr.norm) {
      const View normed = dense_view(scratch, x.shape);
      run(Op::rms_norm, rms_norm_gpu().launch, RmsNormAttr{attr.epsilon}, {x, args.in[1]}, normed, device, nullptr);
      x = normed;
    }
    View products[LinearSetAttr::most];
    for (int i = 0; i < attr.count; ++i) {
      const auto at = static_cast<size_t>(i);
      products[at] = attr.gated ? dense_view(scratch + room.products[at], args.out[0].shape) : args.out[at];
      std::vector<View> in = {x, args.in[static_cast<size_t>(weight_input(attr, i))]};
      const int bias = bias_input(attr, i);
      if (bias >= 0) in.push_back(args.in[static_cast<size_t>(bias)]);
      run(linear_.op, launch_linear_, LinearAttr{bias >= 0, false}, in, products[at], device, scratch + room.end);
    }
    if (attr.gated)
      run(Op::gated, gated_gpu().launch, GatedAttr{attr.activation}, {products[0], products[1]}, args.out[0], device,
          nullptr);
  }

 private:
  // The nodes that the set stands for.
  struct Plain {
    Tensor norm, gated;
    std::vector<Tensor> products;

    explicit Plain(const Node& node) {
      const LinearSetAttr& attr = node.attr<LinearSetAttr>();
      Tensor x = node.inputs[0];
      if (attr.norm) x = norm = rms_norm(x, node.inputs[1], attr.epsilon);
      for (int i = 0; i < attr.count; ++i) {
        const int bias = bias_input(attr, i);
        products.push_back(linear_epilogue(x, node.inputs[static_cast<size_t>(weight_input(attr, i))],
                                           bias < 0 ? Tensor{} : node.inputs[static_cast<size_t>(bias)], {}));
      }
      if (attr.gated) gated = consonant::gated(attr.activation, products[0], products[1]);
    }
  };

  // Where the values in between lie in the scratch memory, and where that of the products begins.
  struct Room {
    int64_t products[2] = {0, 0}, end = 0;

    Room(const LinearSetAttr& attr, const Shape& x, const Shape& y) {
      if (attr.norm) end += bytes_of(x);
      if (!attr.gated) return;
      for (int64_t& product : products) product = end, end += bytes_of(y);
    }
    static int64_t bytes_of(const Shape& s) { return round_up(s.count() * static_cast<int64_t>(sizeof(float)), 256); }
  };

  static View dense_view(std::byte* data, const Shape& shape) {
    return {data, DType::f32, shape, dense(DType::f32, shape).strides};
  }

  static void run(Op op, const LaunchLinear& launch, std::any attributes, const std::vector<View>& in, const View& out,
                  Accelerator& device, std::byte* scratch) {
    Node node;
    node.op = id(op), node.attributes = std::move(attributes);
    launch(Args{&node, in, {&out, 1}}, device, scratch);
  }

  GpuKernel linear_;
  LaunchLinear launch_linear_;
};

}  // namespace consonant::GPU_BUILD
