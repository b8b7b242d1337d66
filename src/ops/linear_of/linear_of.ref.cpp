// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/checked.hpp"
#include "ops/linear_of/linear_of_node.hpp"
#include "tensor/activations.hpp"
#include "tensor/convert.hpp"

namespace consonant {

namespace {

constexpr int64_t rows_a_chunk = 16;

Work work(const Args& args) {
  const View& w = args.in[2];
  return {ceil_div(w.shape[1], rows_a_chunk), 2 * w.last() * static_cast<int64_t>(sizeof(float))};
}

void decode(const View& w, int64_t row, float* to) {
  if (w.layout == Layout::rows8)
    decode_packed_row(packed_shape(w.type, w.shape.sizes()), w.data, row, to);
  else
    decode_row(w.type, w.data + row * row_bytes(w.type, w.last()), to, w.last());
}

double dot(const View& x, int64_t row, const float* w) {
  const int64_t k = x.last();
  double sum = 0;
  if (x.type == DType::f32) {
    for (int64_t i = 0; i < k; ++i) sum += double{x.row<float>(row)[i]} * w[i];
    return sum;
  }
  const int parts = activation_parts(x.type);
  const ActivationRow numbers = ActivationRow::at(x.data + row * ActivationRow::bytes(k, parts), k, parts);
  for (int64_t i = 0; i < k; ++i) sum += double{numbers[i]} * w[i];
  return sum;
}

void run(const Args& args, int64_t chunk, std::byte* scratch) {
  const View &ids = args.in[0], &x = args.in[1], &w = args.in[2], &y = args.out[0];
  const LinearOfAttr& attr = args.attr<LinearOfAttr>();
  const int64_t experts = w.shape[0], rows = w.shape[1], pairs = ids.shape.count();
  const int64_t pairs_a_row = x.shape.rank() == 3 ? 1 : ids.last();
  float *row = reinterpret_cast<float*>(scratch), *second = row + w.last();
  for (int64_t r = chunk * rows_a_chunk; r < std::min(rows, (chunk + 1) * rows_a_chunk); ++r)
    for (int64_t e = 0; e < experts; ++e) {
      bool decoded = false;
      for (int64_t pair = 0; pair < pairs; ++pair) {
        if (ids.row<int32_t>(pair / ids.last())[pair % ids.last()] != e) continue;
        if (!decoded) decode(w, e * rows + r, row);
        if (!decoded && attr.gated) decode(args.in[3], e * rows + r, second);
        decoded = true;
        double sum = dot(x, pair / pairs_a_row, row);
        if (attr.gated) sum = exact(attr.activation, sum) * dot(x, pair / pairs_a_row, second);
        y.row<float>(pair)[r] = static_cast<float>(sum);
      }
    }
}

}  // namespace

extern const Kernel linear_of_ref = {DeviceKind::reference, Op::linear_of, wants_experts, work, run};

}  // namespace consonant
