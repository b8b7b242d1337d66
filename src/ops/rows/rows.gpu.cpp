// SPDX-License-Identifier: Apache-2.0
#include "ops/matrix_gpu.hpp"
#include "ops/rows/gather.hpp"

namespace consonant::GPU_BUILD {

namespace {

template <DType Type>
GPU_KERNEL void gather(Matrix<Type> x, gpu::Ptr<const int32_t> index, Rows<float> y) {
  for_elements(y.rows, y.cols / Matrix<Type>::run, [&](int64_t r, int64_t at) {
    const auto to = y.row(r);
    const int32_t from = index[r];
    if (from >= 0)
      x.read(from, at, [&](int64_t i, float value) { to[i] = value; });
    else
      for (int i = 0; i < Matrix<Type>::run; ++i) to[at * Matrix<Type>::run + i] = 0;
  });
}

Refusal can_run(const Node& node, const Limits& limits) {
  const Shape& y = node.outputs[0].shape;
  if (elementwise_grid(y[0], y[1]).x > limits.grid) return {"there are too many rows"};
  return wants_rows(node);
}

void launch(const Args& args, Accelerator& device, std::byte*) {
  const View &x = args.in[0], &y = args.out[0];
  with_matrix_type(x.type, [&](auto type) {
    constexpr DType Type = decltype(type)::value;
    gpu::launch<gather<Type>, elementwise_threads>(device, elementwise_grid(y.rows(), y.last() / Matrix<Type>::run), 0,
                                                   matrix_of<Type>(x), pointer<const int32_t>(args.in[1]),
                                                   rows_of<float>(y));
  });
}

}  // namespace

GpuKernel rows_gpu() { return {"rows", Op::rows, can_run, nullptr, launch}; }

}  // namespace consonant::GPU_BUILD
