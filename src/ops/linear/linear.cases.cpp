// SPDX-License-Identifier: Apache-2.0
#include "ops/linear/linear.hpp"

#include <algorithm>
#include <cmath>

#include "ops/cases.hpp"
#include "ops/quantize/quantize.hpp"

namespace consonant {

namespace {

struct Product {
  DType type;
  int64_t tokens, outputs, inputs;
  DType x = DType::f32;
  bool bias = false, residual = false;
};

OpCase product(const Product& p) {
  std::string label = fmt::format("[{}, {}] by {} [{}, {}]", p.tokens, p.inputs, name(p.type), p.outputs, p.inputs);
  if (p.x != DType::f32) label += fmt::format(", x in {}", name(p.x));
  if (p.bias) label += ", bias";
  if (p.residual) label += ", residual";
  const auto build = [p](CaseBuilder& b) {
    Tensor x = b.values("x", per_token(p.tokens, p.inputs));
    Tensor w = b.matrix("w", p.type, p.outputs, p.inputs);
    return linear_epilogue(p.x == DType::f32 ? x : quantize(x, p.x), w, p.bias ? b.vector("bias", p.outputs) : Tensor{},
                           p.residual ? b.values("residual", per_token(p.tokens, p.outputs)) : Tensor{});
  };
  return {label, build, p.inputs, std::sqrt(static_cast<double>(p.inputs))};
}

}  // namespace

std::vector<OpCase> linear_cases() {
  std::vector<OpCase> cases;
  for (const DType type : weight_types) {
    const int64_t block = std::max(32, info(type).block);
    for (const DType x : {DType::f32, DType::q8_x, DType::q16_x}) {
      if (x != DType::f32 && !is_quantized(type)) continue;
      cases.push_back(product({type, 1, 13, 3 * block, x}));
      cases.push_back(product({type, 7, 40, 2 * block, x}));
      cases.push_back(product({type, 29, 8, block, x}));
      cases.push_back(product({type, 3, 21, block, x, true, true}));
    }
  }
  for (const int64_t inputs : {1, 7, 31, 33, 1025}) cases.push_back(product({DType::f32, 5, 19, inputs}));
  for (const int64_t outputs : {1, 7, 9, 1027}) cases.push_back(product({DType::f16, 3, outputs, 48}));
  cases.push_back(product({DType::q4_k, 150, 9, 512}));
  // More than a tile of rows and tokens, and k of several units a chain.
  for (const DType type : {DType::q8_0, DType::q5_1, DType::q2_k, DType::q4_k, DType::q6_k})
    cases.push_back(product({type, 70, 70, 2048}));
  // What tensor cores decode first.
  for (const DType type : {DType::f16, DType::bf16, DType::q8_0, DType::q5_1, DType::q4_k})
    cases.push_back(product({type, 131, 69, type == DType::q4_k ? 512 : 352, DType::f32, true, true}));
  for (const DType type : {DType::f32, DType::f16, DType::bf16}) {
    cases.push_back(product({type, 67, 66, 1024}));
    cases.push_back(product({type, 18, 9, 1031}));
  }
  for (const DType x : {DType::f32, DType::q8_x, DType::q16_x}) {
    cases.push_back(product({DType::q4_1, 0, 16, 64, x}));
    for (const bool bias : {false, true}) cases.push_back(product({DType::q8_0, 5, 27, 96, x, bias, !bias}));
    cases.push_back(product({DType::q8_0, 1, 66000, 32, x}));
    cases.push_back(product({DType::q4_1, 150, 9, 576, x}));
    cases.push_back(product({DType::q6_k, 2, 9, 16384, x}));
  }
  return cases;
}

}  // namespace consonant
