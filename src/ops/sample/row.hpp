// SPDX-License-Identifier: Apache-2.0
#pragma once

// A row of sample's inputs, for the kernels of the processor.
#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/sample/sample.hpp"
#include "ops/sample/stages.hpp"
#include "ops/work.hpp"

namespace consonant {

struct SampleRow {
  std::span<const float> logits;
  DrawOptions options;
  std::vector<Adjustment> adjustments;
  uint64_t number;
};

inline Refusal wants_sample(const Node& node) {
  return wants_rows_of(node, {DType::f32, DType::f32, DType::i32, DType::i32, DType::f32}, {DType::i32, DType::f32});
}

inline SampleRow sample_row(const Args& args, int64_t r) {
  const View &logits = args.in[0], &slots = args.in[3], &bias = args.in[4];
  const float* f = args.in[1].row<float>(r);
  const int32_t* i = args.in[2].row<int32_t>(r);
  SampleRow row;
  row.logits = {logits.row<float>(r), static_cast<size_t>(logits.last())};
  row.options = {f[SampleNumbers::temperature],
                 i[SampleIntegers::top_k],
                 f[SampleNumbers::top_p],
                 f[SampleNumbers::min_p],
                 f[SampleNumbers::typical],
                 f[SampleNumbers::repeat_penalty],
                 f[SampleNumbers::frequency_penalty],
                 f[SampleNumbers::presence_penalty],
                 f[SampleNumbers::first_temperature]};
  row.number = uint64_t{static_cast<uint32_t>(i[SampleIntegers::number_high])} << 32 |
               static_cast<uint32_t>(i[SampleIntegers::number_low]);
  for (int64_t s = 0; s < bias.last(); ++s) {
    const int32_t* slot = slots.row<int32_t>(r * bias.last() + s);
    const int32_t token = slot[SampleAdjustment::token];
    if (token >= 0 && token < logits.last())
      row.adjustments.push_back({token, slot[SampleAdjustment::times], bias.row<float>(r)[s]});
  }
  return row;
}

inline void give(const Args& args, int64_t r, int32_t token, float log_probability) {
  args.out[0].as<int32_t>()[r] = token;
  args.out[1].as<float>()[r] = log_probability;
}

}  // namespace consonant
