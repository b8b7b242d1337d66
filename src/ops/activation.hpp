// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>

namespace consonant {

enum class Activation : uint8_t { silu, gelu, gelu_erf, relu, sigmoid };

// In double, for reference kernels.
inline double exact_silu(double x) { return x / (1 + std::exp(-x)); }
inline double exact_gelu(double x) {
  return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}
inline double exact_gelu_erf(double x) { return 0.5 * x * std::erfc(-x * 0.7071067811865476); }
inline double exact_relu(double x) { return x < 0 ? 0 : x; }
inline double exact_sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
inline double exact(Activation f, double x) {
  switch (f) {
    case Activation::silu:
      return exact_silu(x);
    case Activation::gelu:
      return exact_gelu(x);
    case Activation::gelu_erf:
      return exact_gelu_erf(x);
    case Activation::relu:
      return exact_relu(x);
    case Activation::sigmoid:
      return exact_sigmoid(x);
  }
  return x;
}

// y[i] = f(x[i]), times b[i] unless b is null, in float32 with the widest vectors of this processor. An element's value
// doesn't depend on where in the row it stands.
void activate(Activation f, const float* x, const float* b, float* y, int64_t n);

}  // namespace consonant
