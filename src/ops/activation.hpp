// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>

namespace consonant {

enum class Activation : uint8_t { silu, gelu, gelu_erf, relu, relu_squared, sigmoid, elu, tanh };

// x Phi(x) = max(x, 0) - |x| Q(|x|), where Q = 1 - Phi is the normal distribution's tail: one formula for both signs.
// ln Q is a polynomial up to `end` (least greatest error of |x| Q, 2e-9), the highest power first; beyond, |x| Q is
// below 6e-9 and left out.
struct NormalTail {
  static constexpr int count = 10;
  static constexpr float end = 6;
  float coefficients[count] = {2.566819716776081e-07f,  -5.147668616700685e-06f, 4.284773240215145e-05f,
                               -1.6699303523637354e-4f, -4.745137630379759e-05f, 4.870234057307243e-03f,
                               -3.638855740427971e-2f,  -3.182925581932068e-1f,  -7.978872060775757e-1f,
                               -6.931470632553101e-1f};
};

// In double, for reference kernels.
inline double exact_silu(double x) { return x / (1 + std::exp(-x)); }
inline double exact_gelu(double x) {
  return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}
inline double exact_gelu_erf(double x) { return 0.5 * x * std::erfc(-x * 0.7071067811865476); }
inline double exact_relu(double x) { return x < 0 ? 0 : x; }
inline double exact_relu_squared(double x) { return x < 0 ? 0 : x * x; }
inline double exact_sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
inline double exact_elu(double x) { return x < 0 ? std::expm1(x) : x; }
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
    case Activation::relu_squared:
      return exact_relu_squared(x);
    case Activation::sigmoid:
      return exact_sigmoid(x);
    case Activation::elu:
      return exact_elu(x);
    case Activation::tanh:
      return std::tanh(x);
  }
  return x;
}

// y[i] = f(x[i]), times b[i] unless b is null, in float32 with the widest vectors of this processor. An element's value
// doesn't depend on where in the row it stands.
void activate(Activation f, const float* x, const float* b, float* y, int64_t n);

}  // namespace consonant
