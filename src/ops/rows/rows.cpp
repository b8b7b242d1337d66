// SPDX-License-Identifier: Apache-2.0
#include "ops/rows/rows.hpp"

#include "ops/op.hpp"

namespace consonant {

Tensor rows(Tensor x, Tensor index, Location at) {
  if (x.shape().rank() != 2 || index.shape().rank() != 1 || index.type() != DType::i32)
    shape_error("rows", "x [n, columns] and index [m] i32", {x, index}, at);
  const int64_t sizes[] = {index.shape()[0], x.shape()[1]};
  return {make_node(id(Op::rows), "rows", {x, index}, {dense(DType::f32, make_shape(sizes, 2, index.shape().axis()))},
                    {}, at),
          0};
}

}  // namespace consonant
