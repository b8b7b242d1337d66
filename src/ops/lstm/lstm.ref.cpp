// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <vector>

#include "ops/activation.hpp"
#include "ops/lstm/lstm.hpp"
#include "ops/lstm/lstm_node.hpp"

namespace consonant {

namespace {

void run(const Args& args, int64_t, std::byte*) {
  const View &x = args.in[0], &w = args.in[1], &state = args.in[3], &y = args.out[0];
  const auto* b = args.in[2].as<float>();
  const auto n = static_cast<size_t>(y.last());
  std::vector<float> weights(4 * n * n);
  for (size_t r = 0; r < 4 * n; ++r) decode_weight_row(w, static_cast<int64_t>(r), weights.data() + r * n);
  std::vector<double> h(state.row<float>(0), state.row<float>(0) + n), c(state.row<float>(1), state.row<float>(1) + n),
      gates(4 * n);
  for (int64_t t = 0; t < y.shape[0]; ++t) {
    for (size_t r = 0; r < 4 * n; ++r) {
      gates[r] = double{x.row<float>(t)[r]} + b[r];
      for (size_t k = 0; k < n; ++k) gates[r] += weights[r * n + k] * h[k];
    }
    for (size_t j = 0; j < n; ++j) {
      c[j] = exact_sigmoid(gates[n + j]) * c[j] + exact_sigmoid(gates[j]) * std::tanh(gates[2 * n + j]);
      h[j] = exact_sigmoid(gates[3 * n + j]) * std::tanh(c[j]);
      y.row<float>(t)[j] = static_cast<float>(h[j]);
    }
  }
  for (size_t j = 0; j < n; ++j) {
    args.out[1].row<float>(0)[j] = static_cast<float>(h[j]);
    args.out[1].row<float>(1)[j] = static_cast<float>(c[j]);
  }
}

}  // namespace

extern const Kernel lstm_ref = {DeviceKind::reference, Op::lstm, lstm_can_run, whole, run};

}  // namespace consonant
