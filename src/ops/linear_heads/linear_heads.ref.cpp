// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "ops/work.hpp"
#include "tensor/convert.hpp"

namespace consonant {

namespace {

void run(const Args& args, int64_t, std::byte*) {
  const View &x = args.in[0], &w = args.in[1], &y = args.out[0];
  const int64_t tokens = x.shape[0], heads = x.shape[1], inputs = x.shape[2], outputs = y.shape[2];
  std::vector<float> row(static_cast<size_t>(inputs));
  for (int64_t h = 0; h < heads; ++h)
    for (int64_t r = 0; r < outputs; ++r) {
      decode_row(w.type, w.data + (h * outputs + r) * row_bytes(w.type, inputs), row.data(), inputs);
      for (int64_t t = 0; t < tokens; ++t) {
        double sum = 0;
        for (int64_t i = 0; i < inputs; ++i)
          sum += double{x.row<float>(t * heads + h)[i]} * row[static_cast<size_t>(i)];
        y.row<float>(t * heads + h)[r] = static_cast<float>(sum);
      }
    }
}

Refusal can_run(const Node& node) {
  if (node.inputs[0].type() != DType::f32) return {"x must be f32"};
  return wants_matrix(node.inputs[1], "w");
}

}  // namespace

extern const Kernel linear_heads_ref = {DeviceKind::reference, Op::linear_heads, can_run, whole, run};

}  // namespace consonant
