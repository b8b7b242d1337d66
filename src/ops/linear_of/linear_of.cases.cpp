// SPDX-License-Identifier: Apache-2.0
#include "ops/linear_of/linear_of.hpp"

#include <algorithm>
#include <cmath>

#include "ops/cases.hpp"
#include "ops/quantize/quantize.hpp"

namespace consonant {

namespace {

struct Product {
  DType type;
  int64_t tokens, used, experts, outputs, inputs;
  bool own = false;  // each slot has an x of its own
  DType x = DType::f32;
  std::vector<int32_t> ids = {};  // over and over; empty: any
  bool gated = false;
};

OpCase product(const Product& p) {
  std::string label = fmt::format("{} of {} experts, [{}, {}] by {} [{}, {}]", p.used, p.experts, p.tokens, p.inputs,
                                  name(p.type), p.outputs, p.inputs);
  if (p.own) label += ", an x each";
  if (p.x != DType::f32) label += fmt::format(", x in {}", name(p.x));
  if (!p.ids.empty()) label += ", few of them chosen";
  if (p.gated) label += ", gated";
  const auto build = [p](CaseBuilder& b) {
    const Shape shape = per_token(p.tokens, p.used);
    const Tensor ids = p.ids.empty() ? b.integers("ids", shape, 0, static_cast<int32_t>(p.experts - 1))
                                     : b.integers("ids", shape, p.ids);
    const Tensor x = b.values("x", p.own ? per_token(p.tokens, p.used, p.inputs) : per_token(p.tokens, p.inputs));
    const Tensor w = b.matrices("w", p.type, {p.experts, p.outputs, p.inputs});
    if (p.gated) {
      const Tensor up = b.matrices("up", p.type, {p.experts, p.outputs, p.inputs});
      return linear_of_gated(Activation::silu, ids, x, w, up);
    }
    return linear_of(ids, p.x == DType::f32 ? x : quantize(x, p.x), w);
  };
  const auto size = std::sqrt(static_cast<double>(p.inputs));
  return {label, build, p.inputs, p.gated ? size * size : size};
}

}  // namespace

std::vector<OpCase> linear_of_cases() {
  std::vector<OpCase> cases;
  for (const DType type : weight_types) {
    const int64_t block = std::max(32, info(type).block);
    for (const DType x : {DType::f32, DType::q8_x, DType::q16_x}) {
      if (x != DType::f32 && !is_quantized(type)) continue;
      cases.push_back(product({type, 1, 2, 5, 13, 2 * block, false, x}));
      cases.push_back(product({type, 11, 3, 4, 21, block, true, x}));
    }
  }
  for (const int64_t inputs : {1, 7, 33, 1025}) cases.push_back(product({DType::f32, 5, 2, 3, 19, inputs}));
  for (const int64_t outputs : {1, 7, 9, 130}) cases.push_back(product({DType::f16, 9, 2, 3, outputs, 48, true}));
  // Experts of many tokens, of one, and of none; more of them than tokens.
  for (const DType type : {DType::q8_0, DType::q4_k, DType::bf16}) {
    cases.push_back(product({type, 150, 2, 6, 70, 256, false, DType::f32, {3, 1, 3, 0, 3, 5, 3, 1, 3}}));
    cases.push_back(product({type, 70, 2, 3, 70, 512, true}));
    cases.push_back(product({type, 6, 4, 130, 40, 256}));
    // Few of an expert's tokens, or some more.
    cases.push_back(product({type, 9, 2, 12, 70, 512, true}));
    for (const bool gated : {false, true})
      cases.push_back(product({type, 20, 2, 12, 70, 512, false, DType::f32, {3, 1, 3, 0, 3}, gated}));
  }
  for (const DType x : {DType::q8_x, DType::q16_x}) {
    cases.push_back(product({DType::q4_1, 310, 2, 5, 27, 64, false, x, {3, 1, 3, 0, 3, 3, 3}}));
    cases.push_back(product({DType::q8_0, 40, 4, 16, 300, 96, true, x}));
    cases.push_back(product({DType::q4_k, 3, 8, 64, 33, 512, false, x}));
  }
  for (const DType type : {DType::f32, DType::bf16, DType::q8_0, DType::q4_k, DType::mxfp4})
    for (const int64_t tokens : {1, 5, 90})
      cases.push_back(product({type, tokens, 2, 6, 45, 256, false, DType::f32, {}, true}));
  for (const int64_t tokens : {0, 1}) cases.push_back(product({DType::q5_0, tokens, 3, 7, 40, 64, true}));
  cases.push_back(product({DType::q8_0, 1, 1, 2, 66000, 32}));
  cases.push_back(product({DType::f32, 4000, 2, 300, 3, 5}));
  return cases;
}

}  // namespace consonant
