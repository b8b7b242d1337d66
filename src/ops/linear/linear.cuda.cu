// SPDX-License-Identifier: Apache-2.0
// Products on tensor cores. Weights are exact, activations are rounded to halves (11 bits, or 16 with bfloat weights),
// sums are float32: see mma_weights.hpp and mma_activations.hpp. A token's result has the same bits however many there
// are: products are summed over units of 256 columns, and the units in their order.
#include "ops/linear/linear.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ops/linear/few_products.hpp"
#include "ops/linear/mma_many.hpp"
#include "ops/work.hpp"

namespace consonant::GPU_BUILD {

namespace {

using namespace mma;

// Calls fn.template operator()<type>().
template <class F>
void with_type(DType type, const F& fn) {
  switch (type) {
#define CASE(name)                         \
  case DType::name:                        \
    fn.template operator()<DType::name>(); \
    break;
    CASE(f16)
    CASE(bf16)
    CASE(q8_0)
    CASE(q4_0)
    CASE(q4_1)
    CASE(q5_0)
    CASE(q5_1)
    CASE(q2_k)
    CASE(q3_k)
    CASE(q4_k)
    CASE(q5_k)
    CASE(q6_k)
    CASE(iq4_nl)
    CASE(iq4_xs)
    CASE(mxfp4)
#undef CASE
    default:
      break;
  }
}

using Large = Tiling<4, 2, 2, 8>;  // 128 rows x 128 tokens
// 64 rows by few tokens; fewer teams where weights are wide.
template <DType Type, int Tokens>
using Small = Tiling<4, 1, 1, Tokens / 8, has_blocks(Type) ? 4 : 2>;

int64_t units_of(int64_t columns) { return ceil_div(columns, unit_columns); }

bool rows_contiguous(const Tensor& x) {
  const Output& value = x.node->outputs[static_cast<size_t>(x.output)];
  return value.type == DType::f32 && (value.shape.last() <= 1 || value.strides[1] == 1);
}

int64_t least_memory(DType type) {
  int64_t bytes = 0;
  with_type(type, [&]<DType Type>() { bytes = split_memory<Type, Small<Type, 8>>; });
  return bytes;
}

Refusal can_run(const Node& node, const Limits& limits) {
  const Tensor &x = node.inputs[0], &w = node.inputs[1];
  if (limits.compute < 80) return {"the tensor cores need compute capability 8.0"};
  if (Refusal refusal = wants_matrix(w, "w")) return refusal;
  if (w.type() == DType::f32) return {"w is f32"};
  if (!is_quantized(w.type()) && w.shape().last() % 8 != 0)
    return {fmt::format("rows of {} elements don't start at multiples of 16 bytes", w.shape().last())};
  if (!rows_contiguous(x)) return {fmt::format("x is {} in another order", name(x.type()))};
  if (node.attr<LinearAttr>().residual && !rows_contiguous(node.inputs.back()))
    return {"the residual isn't f32 in contiguous rows"};
  if (limits.shared_bytes < least_memory(w.type())) return {"a block has too little shared memory"};
  if (w.shape()[0] > limits.grid * 16 || w.shape().last() > (1 << 30)) return {"w is too large"};
  return {};
}

PlainOutputs outputs_of(const Args& args) {
  const LinearAttr& attr = args.attr<LinearAttr>();
  PlainOutputs outputs{rows_of<float>(args.out[0]), nullptr, {}};
  if (attr.bias) outputs.bias = pointer<const float>(args.in[2]);
  if (attr.residual) outputs.residual = rows_of<const float>(args.in[attr.bias ? 3 : 2]);
  return outputs;
}

PlainInputs inputs_of(const View& x) {
  PlainInputs inputs{rows_of<const float>(x), false};
  inputs.aligned = inputs.x.outer_stride % 4 == 0 && reinterpret_cast<uintptr_t>(x.data) % 16 == 0;
  return inputs;
}

template <DType Type>
Matrix<Type> matrix_of(const View& w) {
  const int64_t stride = is_quantized(Type) ? packed_shape(Type, w.shape[0], w.shape[1]).group_bytes
                                            : w.strides[0] * static_cast<int64_t>(sizeof(uint16_t));
  return {pointer<const uint8_t>(w), stride, static_cast<int>(w.shape[0]), static_cast<int>(w.shape[1])};
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

template <DType Type>
int64_t many_scratch(int64_t tokens, int64_t columns) {
  return tokens * units_of(columns) * (record_bytes<Type> + static_cast<int64_t>(sizeof(float)));
}

// Whether large tiles are the faster ones. One takes about five times as long as one of 64 x 32.
template <DType Type>
bool large_tiles(int64_t rows, int64_t tokens, const Limits& limits) {
  if (ManyMemory<Type, Large>::end > limits.shared_bytes || tokens <= 32) return false;
  const int64_t large = ceil_div(rows, Large::rows) * ceil_div(tokens, Large::tokens);
  const int64_t small = ceil_div(rows, 64) * ceil_div(tokens, 32);
  return 5 * ceil_div(large, limits.processors) <= ceil_div(small, limits.processors);
}

template <DType Type, int Tokens>
bool launch_some(const Args& args, Accelerator& device, const Records& records) {
  using T = Small<Type, Tokens>;
  constexpr int64_t shared = split_memory<Type, T>;
  if (shared > device.limits().shared_bytes) return false;
  const Matrix<Type> w = matrix_of<Type>(args.in[1]);
  const int64_t token_tiles = ceil_div(records.tokens, T::tokens);
  gpu::launch_early<some_tokens<Type, T, PlainOutputs>, T::threads * T::split>(
      device, {ceil_div(w.rows, T::rows) * token_tiles}, shared, w, records, static_cast<int>(token_tiles),
      outputs_of(args));
  return true;
}

template <DType Type>
void launch_many(const Args& args, Accelerator& device, std::byte* scratch) {
  const View &x = args.in[0], &w = args.in[1];
  const int64_t tokens = x.shape[0], units = units_of(x.shape[1]), bytes = tokens * units * record_bytes<Type>;
  const Records records{gpu::pointer<uint8_t>(scratch, bytes),
                        gpu::pointer<float>(scratch + bytes, tokens * units * static_cast<int64_t>(sizeof(float))),
                        static_cast<int>(tokens), static_cast<int>(units)};
  gpu::launch_early<make_records<Type, PlainInputs>, record_warps * 32>(
      device, {ceil_div(tokens * units, record_warps)}, 0, inputs_of(x), records);
  if (large_tiles<Type>(w.shape[0], tokens, device.limits())) {
    const int64_t token_tiles = ceil_div(tokens, Large::tokens);
    gpu::launch_early<many_tokens<Type, Large, PlainOutputs>, Large::threads>(
        device, {ceil_div(w.shape[0], Large::rows) * token_tiles}, ManyMemory<Type, Large>::end, matrix_of<Type>(w),
        records, static_cast<int>(token_tiles), outputs_of(args));
    return;
  }
  if (tokens > 16 && launch_some<Type, 32>(args, device, records)) return;
  if (tokens > 8 && launch_some<Type, 16>(args, device, records)) return;
  launch_some<Type, 8>(args, device, records);  // can_run has asked for the memory it takes
}

int64_t scratch(const Node& node, const Limits& limits) {
  const Shape &x = node.inputs[0].shape(), &w = node.inputs[1].shape();
  int64_t bytes = 0;
  with_type(node.inputs[1].type(), [&]<DType Type>() {
    if (!takes_few_products(Type, x[0], w[1], false, limits)) bytes = many_scratch<Type>(x[0], w[1]);
  });
  return bytes;
}

void launch(const Args& args, Accelerator& device, std::byte* scratch) {
  if (args.out[0].shape.count() == 0) return;
  const View &x = args.in[0], &w = args.in[1];
  if (takes_few_products(w.type, x.shape[0], w.shape[1], false, device.limits())) return launch_few(args, device);
  with_type(w.type, [&]<DType Type>() { launch_many<Type>(args, device, scratch); });
}

}  // namespace

GpuKernel linear_mma_gpu() { return {"linear_mma", Op::linear, can_run, scratch, launch, 0x1p-11}; }

}  // namespace consonant::GPU_BUILD
