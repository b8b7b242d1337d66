// SPDX-License-Identifier: Apache-2.0
#pragma once

// The rows of a linear_set on the processor, one after another, in numbers of type T: what the reference computes in
// double, and the processor in float32. Fusion makes these nodes for accelerators alone.
#include <cmath>

#include "ops/linear_set/linear_set.hpp"
#include "ops/work.hpp"
#include "tensor/convert.hpp"
#include "tensor/packed.hpp"

namespace consonant {

template <class T>
class LinearSetRows {
 public:
  static constexpr int64_t rows_a_chunk = 16;

  static Refusal can_run(const Node& node) {
    const LinearSetAttr& attr = node.attr<LinearSetAttr>();
    if (node.inputs[0].type() != DType::f32) return {"x isn't float32"};
    for (int i = 0; i < attr.count; ++i) {
      const Tensor& w = node.inputs[static_cast<size_t>(weight_input(attr, i))];
      if (Refusal refusal = wants_matrix(w, "w")) return refusal;
      if (w.node->op == op_view) return {"w is a view"};
    }
    return {};
  }

  static Work work(const Args& args) {
    int64_t chunks = 0;
    for (const View& y : args.out) chunks += ceil_div(y.shape[1], rows_a_chunk);
    return {chunks, 2 * args.in[0].shape[1] * static_cast<int64_t>(sizeof(float))};
  }

  static void run(const Args& args, int64_t chunk, std::byte* scratch) {
    int which = 0;
    for (const View& y : args.out) {
      const int64_t here = ceil_div(y.shape[1], rows_a_chunk);
      if (chunk < here) break;
      chunk -= here, ++which;
    }
    const LinearSetRows set(args, reinterpret_cast<float*>(scratch));
    for (int64_t row = chunk * rows_a_chunk; row < std::min(set.outputs(which), (chunk + 1) * rows_a_chunk); ++row)
      set.run_row(which, row);
  }

 private:
  LinearSetRows(const Args& args, float* scratch)
      : args_(args), attr_(args.attr<LinearSetAttr>()), x_(args.in[0]), k_(args.in[0].shape[1]), scratch_(scratch) {}

  int64_t outputs(int which) const { return args_.out[static_cast<size_t>(which)].shape[1]; }
  const View& weight(int i) const { return args_.in[static_cast<size_t>(weight_input(attr_, i))]; }

  float* decoded(int i, int64_t row, int place) const {
    const View& w = weight(i);
    float* const to = scratch_ + place * k_;
    if (w.layout == Layout::rows8)
      decode_packed_row(packed_shape(w.type, w.shape[0], w.shape[1]), w.data, row, to);
    else
      decode_row(w.type, w.data + row * row_bytes(w.type, w.shape[1]), to, w.shape[1]);
    return to;
  }

  T number(int64_t token, int64_t i) const { return x_.as<float>()[token * x_.strides[0] + i * x_.strides[1]]; }

  T norm_scale(int64_t token) const {
    T sum = 0;
    for (int64_t i = 0; i < k_; ++i) sum += number(token, i) * number(token, i);
    return 1 / std::sqrt(sum / static_cast<T>(k_) + static_cast<T>(attr_.epsilon));
  }

  T dot(int64_t token, const float* w) const {
    T sum = 0;
    if (!attr_.norm) {
      for (int64_t i = 0; i < k_; ++i) sum += number(token, i) * static_cast<T>(w[i]);
      return sum;
    }
    const T scale = norm_scale(token);
    const auto* norm = args_.in[1].template as<float>();
    for (int64_t i = 0; i < k_; ++i) sum += number(token, i) * scale * static_cast<T>(norm[i]) * static_cast<T>(w[i]);
    return sum;
  }

  void run_row(int which, int64_t row) const {
    const float* const w = decoded(which, row, 0);
    const float* const second = attr_.gated ? decoded(1, row, 1) : nullptr;
    const int bias = bias_input(attr_, which);
    const View& y = args_.out[static_cast<size_t>(which)];
    for (int64_t token = 0; token < x_.shape[0]; ++token) {
      T value = dot(token, w);
      if (second) value = static_cast<T>(exact(attr_.activation, static_cast<double>(value))) * dot(token, second);
      if (bias >= 0) value += static_cast<T>(args_.in[static_cast<size_t>(bias)].template as<float>()[row]);
      y.as<float>()[token * y.strides[0] + row * y.strides[1]] = static_cast<float>(value);
    }
  }

  const Args& args_;
  const LinearSetAttr& attr_;
  const View& x_;
  int64_t k_;
  float* scratch_;
};

}  // namespace consonant
