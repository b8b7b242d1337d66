// SPDX-License-Identifier: Apache-2.0
#include "ops/conv/conv.hpp"

#include <cmath>

#include "ops/cases.hpp"

namespace consonant {

namespace {

struct Convolution {
  int64_t rows, n, outputs;
  ConvAttr attr;
  DType type = DType::f32;
};

OpCase convolution(const Convolution& c) {
  std::string label = fmt::format("[{}, {}] by {} [{}, {}], stride {}, dilation {}", c.rows, c.n, name(c.type),
                                  c.outputs, c.attr.kernel * c.n, c.attr.stride, c.attr.dilation);
  if (c.attr.bias) label += ", bias";
  if (c.attr.residual) label += ", residual";
  const int64_t inputs = c.attr.kernel * c.n;
  const auto build = [c, inputs](CaseBuilder& b) {
    const Tensor x = b.values("x", {c.rows, c.n}), w = b.matrix("w", c.type, c.outputs, inputs);
    const int64_t count = (c.rows - c.attr.dilation * (c.attr.kernel - 1) - 1) / c.attr.stride + 1;
    return conv(x, w, c.attr.bias ? b.vector("b", c.outputs) : Tensor{}, c.attr,
                c.attr.residual ? b.values("residual", {count, c.outputs}) : Tensor{});
  };
  return {label, build, inputs, std::sqrt(static_cast<double>(inputs))};
}

}  // namespace

std::vector<OpCase> conv_cases() {
  std::vector<OpCase> cases;
  for (const DType type : {DType::f32, DType::f16, DType::bf16})
    cases.push_back(convolution({20, 24, 17, {3, 1, 4, true, false}, type}));
  for (const int64_t dilation : {1, 3, 9}) {
    cases.push_back(convolution({150, 33, 20, {7, 1, dilation, true, true}}));
    cases.push_back(convolution({60, 4, 70, {7, 1, dilation, false, true}}));
    cases.push_back(convolution({70, 300, 9, {2, 1, dilation}, DType::f16}));
  }
  for (const int64_t stride : {2, 5, 8}) {
    cases.push_back(convolution({81, 12, 24, {2 * stride, stride, 1, true, false}}));
    cases.push_back(convolution({160, 1, 3, {3, stride, 2, true, false}}));
  }
  cases.push_back(convolution({1, 1, 1, {}}));
  cases.push_back(convolution({7, 5, 3, {7, 3, 1, true, false}}));
  cases.push_back(convolution({1200, 1, 4, {7, 1, 1, true, false}, DType::f16}));
  return cases;
}

}  // namespace consonant
