// SPDX-License-Identifier: Apache-2.0
// Products on tensor cores. Few and some tokens (mma_few.hpp, mma_some.hpp) are multiplied with exact weights. With
// blocks they are whole numbers of 16 bits in units of 256 columns, whose products add up without rounding; with plain
// weights they are halves, of 11 bits, or 16 with bfloat weights. A token's result has the same bits however many there
// are, since units' products are added up in their order. From halves_tokens on (mma_halves.hpp) the weights are
// decoded first, and tokens and weights are halves: then its bits are others, but the same in all batches that large.
// Few rows of float32 weights have a form of their own (float_rows.hpp).
#include "ops/linear/linear.hpp"

#include <fmt/format.h>

#include "ops/gpu_kernel.hpp"
#include "ops/linear/few_products.hpp"
#include "ops/linear/mma_forms.hpp"
#include "ops/work.hpp"

namespace consonant::GPU_BUILD {

namespace {

bool rows_contiguous(const Tensor& x) {
  const Output& value = x.node->outputs[static_cast<size_t>(x.output)];
  return value.type == DType::f32 && (value.shape.last() <= 1 || value.strides[1] == 1);
}

Refusal can_run(const Node& node, const Limits& limits) {
  const Tensor &x = node.inputs[0], &w = node.inputs[1];
  if (limits.compute < 80) return {"the tensor cores need compute capability 8.0"};
  if (Refusal refusal = wants_matrix(w, "w")) return refusal;
  if (!mma::forms_of(w.type()).launch) return {fmt::format("w is {}", name(w.type()))};
  if (!is_quantized(w.type()) && w.shape().last() % 8 != 0)
    return {fmt::format("rows of {} elements don't start at multiples of 16 bytes", w.shape().last())};
  if (!rows_contiguous(x)) return {fmt::format("x is {} in another order", name(x.type()))};
  if (node.attr<LinearAttr>().residual && !rows_contiguous(node.inputs.back()))
    return {"the residual isn't f32 in contiguous rows"};
  if (limits.shared_bytes < mma::forms_of(w.type()).least_memory) return {"a block has too little shared memory"};
  if (w.type() == DType::f32 && w.shape()[0] > mma::most_float_rows)
    return {fmt::format("w has {} rows of float32, more than {}", w.shape()[0], mma::most_float_rows)};
  if (w.type() == DType::f32 && x.shape()[0] > 8 * 65535) return {"there are too many tokens for a grid"};
  if (w.shape()[0] > limits.grid * 16 || w.shape().last() > (1 << 30)) return {"w is too large"};
  return {};
}

int64_t scratch(const Node& node, const Limits& limits) {
  const Shape &x = node.inputs[0].shape(), &w = node.inputs[1].shape();
  const DType type = node.inputs[1].type();
  if (takes_few_products(type, x[0], w[1], false, limits)) return 0;
  return mma::forms_of(type).scratch(x[0], w[0], w[1], limits);
}

void launch_few(const Args& args, Accelerator& device) {
  const LinearAttr& attr = args.attr<LinearAttr>();
  const View* const weights[] = {&args.in[1]};
  const View* const biases[] = {attr.bias ? &args.in[2] : nullptr};
  const View* const y[] = {&args.out[0]};
  FewProducts products{.x = &args.in[0], .weights = weights, .biases = biases, .y = y};
  if (attr.residual) products.residual = &args.in.back();
  launch_few_products(products, device);
}

void launch(const Args& args, Accelerator& device, std::byte* scratch) {
  launch_linear_mma(args, device, scratch, DType::f32);
}

}  // namespace

DType launch_linear_mma(const Args& args, Accelerator& device, std::byte* scratch, DType made) {
  if (args.out[0].shape.count() == 0) return made;
  const View &x = args.in[0], &w = args.in[1];
  if (!takes_few_products(w.type, x.shape[0], w.shape[1], false, device.limits()))
    return mma::forms_of(w.type).launch(args, device, scratch, made);
  launch_few(args, device);
  return made;
}

GpuKernel linear_mma_gpu() {
  return {"linear_mma", Op::linear, can_run, scratch, launch, 0x1p-11, mma::halves_tokens - 1};
}

}  // namespace consonant::GPU_BUILD
