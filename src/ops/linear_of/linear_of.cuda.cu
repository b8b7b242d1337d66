// SPDX-License-Identifier: Apache-2.0
// Experts' products on tensor cores, with sums in float32: activations are rounded as in linear_mma, and a token's
// result has the same bits however many there are.
#include "ops/gpu_kernel.hpp"
#include "ops/linear_of/experts_forms.hpp"
#include "ops/linear_of/linear_of_node.hpp"

namespace consonant::GPU_BUILD {

namespace {

Refusal can_run(const Node& node, const Limits& limits) {
  const Tensor &ids = node.inputs[0], &x = node.inputs[1], &w = node.inputs[2];
  const Shape& s = w.shape();
  const LinearOfAttr& attr = node.attr<LinearOfAttr>();
  if (limits.compute < 80) return {"the tensor cores need compute capability 8.0"};
  if (Refusal refusal = wants_experts(node)) return refusal;
  const mma::ExpertForms forms = mma::experts_of(w.type());
  if (!forms.launch) return {fmt::format("w is {}", name(w.type()))};
  if (attr.gated && node.inputs[3].type() != w.type())
    return {fmt::format("the two w are {} and {}", name(w.type()), name(node.inputs[3].type()))};
  if (attr.gated && attr.activation != Activation::silu && attr.activation != Activation::gelu)
    return {"the activation is neither silu nor gelu"};
  if (x.type() != DType::f32) return {fmt::format("x is {}, not f32", name(x.type()))};
  if (!is_quantized(w.type()) && s.last() % 8 != 0)
    return {fmt::format("rows of {} elements don't start at multiples of 16 bytes", s.last())};
  if (forms.least_memory(s.last()) > limits.shared_bytes || s[0] * 4 > limits.shared_bytes / 2)
    return {"a block has too little shared memory"};
  if (ids.shape().last() > 65535 || ids.shape().count() > INT32_MAX / 8 || s.last() > (1 << 30))
    return {"the sizes are too large"};
  const int64_t tiles = ids.shape().count() / 8 + s[0] + 1;
  if (tiles > limits.grid / std::max<int64_t>(1, ceil_div(s[1], 16)) || ids.shape().count() > limits.grid)
    return {fmt::format("{} has more tiles than a grid has blocks", to_string(node.outputs[0].shape))};
  return {};
}

int64_t scratch(const Node& node, const Limits&) {
  const Shape& w = node.inputs[2].shape();
  return mma::experts_of(node.inputs[2].type())
      .scratch(node.inputs[0].shape().count(), w[0], w[1], w[2], node.attr<LinearOfAttr>().gated);
}

void launch(const Args& args, Accelerator& device, std::byte* scratch) {
  mma::experts_of(args.in[2].type).launch(args, device, scratch);
}

}  // namespace

GpuKernel linear_of_mma_gpu() { return {"linear_of_mma", Op::linear_of, can_run, scratch, launch, 0x1p-11}; }

}  // namespace consonant::GPU_BUILD
