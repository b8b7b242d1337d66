// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <functional>
#include <string>
#include <vector>

#include "ops/op_case.hpp"

// What the case lists of several ops share.
namespace consonant {

inline constexpr DType weight_types[] = {
    DType::f32,  DType::f16,  DType::bf16, DType::q8_0, DType::q4_0, DType::q4_1,   DType::q5_0,   DType::q5_1,
    DType::q2_k, DType::q3_k, DType::q4_k, DType::q5_k, DType::q6_k, DType::iq4_nl, DType::iq4_xs, DType::mxfp4};

// "17 tokens after 63; 1 after 0"
std::string describe(const std::vector<CaseBuilder::Sequence>& sequences);

// For ops whose output has the shape of their first input: sizes of one, odd, around the vectors' widths, past 1024 and
// past 65535, in two and three dimensions.
std::vector<OpCase> elementwise_cases(const std::function<Tensor(CaseBuilder&, const Shape&)>& build);

// These, and numbers where exp overflows, vanishes, or isn't a number.
std::vector<OpCase> activation_cases(
    const std::function<Tensor(CaseBuilder&, const Shape&)>& build,
    const std::function<Tensor(CaseBuilder&, const Shape&, const std::vector<float>&)>& of_numbers);

}  // namespace consonant
