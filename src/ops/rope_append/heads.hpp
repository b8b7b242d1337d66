// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "ops/kv_cache.hpp"
#include "ops/rope_append/rope_append.hpp"

// What rope_append's kernels on the processor share.
namespace consonant {

// The node's values by their roles; a norm that it hasn't is null.
struct RopeAppendArgs {
  const RopeAppendAttr& attr;
  const View &q, &k, &v, &angles, &pos, &seq, &pages;
  const float *q_norm, *k_norm;
  const View &y, &keys, &values;

  explicit RopeAppendArgs(const Args& a)
      : attr(a.attr<RopeAppendAttr>()),
        q(a.in[2]),
        k(a.in[3]),
        v(a.in[4]),
        angles(a.in[5]),
        pos(a.in[6]),
        seq(a.in[7]),
        pages(a.in[8]),
        q_norm(attr.q_norm ? a.in[9].as<float>() : nullptr),
        k_norm(attr.k_norm ? a.in[attr.q_norm ? 10 : 9].as<float>() : nullptr),
        y(a.out[0]),
        keys(a.out[1]),
        values(a.out[2]) {}
};

// A head normalised, if it has a norm, and turned, in arithmetic of type T.
template <class T>
void turn_head(const RopeAppendAttr& attr, const float* x, const float* norm, const float* angles, float* y,
               int64_t dim) {
  T sum = 0;
  for (int64_t i = 0; norm && i < dim; ++i) sum += T{x[i]} * T{x[i]};
  const T scale = 1 / std::sqrt(sum / static_cast<T>(dim) + static_cast<T>(attr.epsilon));
  const auto number = [&](int64_t i) { return norm ? T{x[i]} * scale * T{norm[i]} : T{x[i]}; };
  const int64_t half = attr.rope.dims / 2, step = attr.rope.neighbours ? 2 : 1, other = attr.rope.neighbours ? 1 : half;
  for (int64_t i = 0; i < half; ++i) {
    const T a = number(i * step), b = number(i * step + other), cosine = angles[i], sine = angles[half + i];
    y[i * step] = static_cast<float>(a * cosine - b * sine);
    y[i * step + other] = static_cast<float>(b * cosine + a * sine);
  }
  for (int64_t i = attr.rope.dims; i < dim; ++i) y[i] = static_cast<float>(number(i));
}

// Token t of the batch. `row` has room for a key.
template <class T>
void rope_append_token(const RopeAppendArgs& a, int64_t t, float* row) {
  const float* angles = a.angles.row<float>(t);
  const int64_t heads = a.y.shape[1], dim = a.y.last();
  for (int64_t r = t * heads; r < (t + 1) * heads; ++r)
    turn_head<T>(a.attr, a.q.row<float>(r), a.q_norm, angles, a.y.row<float>(r), dim);
  const int32_t position = a.pos.as<int32_t>()[t], sequence = a.seq.as<int32_t>()[t];
  const int32_t page = a.pages.row<int32_t>(sequence)[position / kv_page];
  const KvPage keys(a.keys, StateKind::keys, page), values(a.values, StateKind::values, page);
  for (int64_t head = 0; head < keys.heads(); ++head) {
    turn_head<T>(a.attr, a.k.row<float>(t * keys.heads() + head), a.k_norm, angles, row, dim);
    keys.write(head, position % kv_page, row);
    values.write(head, position % kv_page, a.v.row<float>(t * keys.heads() + head));
  }
}

// Refuses what these can't read.
inline Refusal wants_heads(const Node& node) {
  for (const size_t i : {2, 3, 4})
    if (Refusal refusal = wants_head_rows(node.inputs[i], i == 2 ? "q" : i == 3 ? "k" : "v")) return refusal;
  const Tensor& angles = node.inputs[5];
  if (angles.type() != DType::f32 || angles.node->outputs[static_cast<size_t>(angles.output)].strides[1] != 1)
    return {"angles must be f32 in contiguous rows"};
  return wants_cache(node.inputs[0], node.inputs[1]);
}

}  // namespace consonant
