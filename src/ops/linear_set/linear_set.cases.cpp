// SPDX-License-Identifier: Apache-2.0
#include "ops/linear_set/linear_set.hpp"

#include <cmath>

#include "ops/cases.hpp"

namespace consonant {

namespace {

struct Set {
  std::vector<DType> types;
  int64_t tokens, inputs;
  std::vector<int64_t> outputs;
  bool norm = false, bias = false, gated = false;
};

OpCase set_case(const Set& p) {
  std::string label = fmt::format("[{}, {}]{} by", p.tokens, p.inputs, p.norm ? ", normalised," : "");
  for (size_t i = 0; i < p.types.size(); ++i)
    label += fmt::format(" {} [{}, {}]", name(p.types[i]), p.outputs[i], p.inputs);
  if (p.bias) label += ", biases";
  if (p.gated) label += ", gated";
  const auto build = [p](CaseBuilder& b) {
    LinearSet set;
    set.x = b.values("x", per_token(p.tokens, p.inputs));
    if (p.norm) set.norm = b.vector("norm", p.inputs), set.epsilon = 1e-5f;
    for (size_t i = 0; i < p.types.size(); ++i) {
      set.weights.push_back(b.matrix(fmt::format("w{}", i), p.types[i], p.outputs[i], p.inputs));
      if (p.bias) set.biases.push_back(i == 1 ? Tensor{} : b.vector(fmt::format("bias{}", i), p.outputs[i]));
    }
    if (p.gated) return linear_gated(set, p.tokens % 2 ? Activation::silu : Activation::gelu);
    return linear_set(set)[0];
  };
  const double inputs = static_cast<double>(p.inputs);
  return {label, build, p.gated ? 4 * p.inputs : p.inputs, p.gated ? inputs : std::sqrt(inputs)};
}

}  // namespace

std::vector<OpCase> linear_set_cases() {
  std::vector<OpCase> cases;
  for (const DType type : weight_types) {
    const int64_t block = std::max(32, info(type).block);
    for (const int64_t tokens : {1, 3, 11}) {
      cases.push_back(set_case({{type, type, type}, tokens, 2 * block, {40, 13, 9}, true}));
      cases.push_back(set_case({{type, type}, tokens, block, {37, 37}, true, false, true}));
    }
    cases.push_back(set_case({{type}, 2, 3 * block, {50}, true}));
  }
  cases.push_back(set_case({{DType::q4_k, DType::q4_k, DType::q6_k}, 1, 2304, {64, 16, 16}, true, true}));
  cases.push_back(set_case({{DType::q4_k, DType::q6_k}, 1, 512, {24, 24}, false, false, true}));
  cases.push_back(set_case({{DType::q8_0, DType::q5_1, DType::q8_0}, 8, 288, {70, 21, 18}, false, true}));
  cases.push_back(set_case({{DType::q4_1, DType::q4_1}, 150, 96, {9, 17}, true, true}));
  cases.push_back(set_case({{DType::q8_0}, 1, 32, {66000}, true}));
  cases.push_back(set_case({{DType::q4_k, DType::q4_k}, 0, 256, {16, 16}, true, false, true}));
  for (const int64_t inputs : {1, 7, 33})
    cases.push_back(set_case({{DType::f32, DType::f32}, 5, inputs, {19, 3}, true}));
  return cases;
}

}  // namespace consonant
