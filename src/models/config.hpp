// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "formats/model_file.hpp"
#include "ops/rope_angles/rope_angles.hpp"

namespace consonant {

// Sizes that decoder models share, read from GGUF's "<architecture>.*" keys and checked: counts are positive and
// bounded, heads divide evenly. Anything else is bad input that names the key.
struct DecoderConfig {
  int64_t layers, d, ff, heads, kv_heads, head, vocabulary, context;
  float eps;
  double rope_base, rope_scale;  // rope_scale: 1 / factor with linear scaling
  int64_t rope_dims;

  DecoderConfig(const ModelFile& file, std::string_view architecture);
};

// Rows of token_embd.weight [vocabulary, d], which the tokenizer, if there is one, has to agree with.
int64_t vocabulary_of(const ModelFile& file, int64_t d);

// A number that has to be above 0 and finite; bad input that names the key if it isn't.
double positive_number(const Meta& meta, const std::string& key, double fallback);

// "<architecture>.<key>".
std::string arch_key(std::string_view architecture, std::string_view key);

}  // namespace consonant
