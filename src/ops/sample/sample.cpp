// SPDX-License-Identifier: Apache-2.0
#include "ops/sample/sample.hpp"

#include "ops/op.hpp"

namespace consonant {

std::pair<Tensor, Tensor> sample(Tensor logits, Tensor numbers, Tensor integers, Tensor adjusted, Tensor bias,
                                 Location at) {
  const Shape& shape = logits.shape();
  const auto is = [&](const Tensor& x, DType type, std::initializer_list<int64_t> sizes) {
    return x.type() == type && x.shape() == Shape(sizes, shape.axis());
  };
  const bool fits = shape.rank() == 2 && shape[1] >= 1 && shape[1] <= most_drawn_from && bias.shape().rank() == 2;
  if (!fits || !is(logits, DType::f32, {shape[0], shape[1]}) ||
      !is(numbers, DType::f32, {shape[0], SampleNumbers::count}) ||
      !is(integers, DType::i32, {shape[0], SampleIntegers::count}) ||
      !is(bias, DType::f32, {shape[0], bias.shape()[1]}) ||
      !is(adjusted, DType::i32, {shape[0], bias.shape()[1], SampleAdjustment::count}))
    shape_error("sample",
                "logits [row, n] f32 with n from 1 to 2^20, numbers [row, 8] f32, integers [row, 3] i32, "
                "adjusted [row, slot, 2] i32 and bias [row, slot] f32",
                {logits, numbers, integers, adjusted, bias}, at);
  const Shape rows({shape[0]}, shape.axis());
  auto node = make_node(id(Op::sample), "sample", {logits, numbers, integers, adjusted, bias},
                        {dense(DType::i32, rows), dense(DType::f32, rows)}, {}, at);
  return {{node, 0}, {node, 1}};
}

}  // namespace consonant
