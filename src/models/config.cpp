// SPDX-License-Identifier: Apache-2.0
#include "models/config.hpp"

#include <fmt/format.h>

#include <cmath>

namespace consonant {

namespace {

constexpr int64_t most = int64_t{1} << 24;  // far above any real model; keeps products of sizes in range

int64_t count(const Meta& meta, const std::string& key) {
  const int64_t n = meta.integer(key);
  if (n < 1 || n > most) bad_input("{}: {} is {}", meta.source, key, n);
  return n;
}

int64_t count(const Meta& meta, const std::string& key, int64_t fallback) {
  return meta.has(key) ? count(meta, key) : fallback;
}

double rope_scale(const Meta& meta, std::string_view arch) {
  const std::string type_key = arch_key(arch, "rope.scaling.type"), factor_key = arch_key(arch, "rope.scaling.factor");
  const std::string_view type = meta.string(type_key, "none");
  if (type == "none") return 1;
  if (type == "linear") return 1 / positive_number(meta, factor_key, 1);
  bad_input("{}: {} is '{}'; this version knows 'none' and 'linear'", meta.source, type_key, type);
}

}  // namespace

double positive_number(const Meta& meta, const std::string& key, double fallback) {
  const double x = meta.number(key, fallback);
  if (!(x > 0) || !std::isfinite(x)) bad_input("{}: {} is {}, should be above 0", meta.source, key, x);
  return x;
}

std::string arch_key(std::string_view architecture, std::string_view key) {
  return fmt::format("{}.{}", architecture, key);
}

DecoderConfig::DecoderConfig(const ModelFile& file, std::string_view arch) {
  const Meta& meta = *file.meta;
  const auto key = [&](std::string_view name) { return arch_key(arch, name); };
  layers = count(meta, key("block_count"));
  d = count(meta, key("embedding_length"));
  ff = count(meta, key("feed_forward_length"));
  heads = count(meta, key("attention.head_count"));
  kv_heads = count(meta, key("attention.head_count_kv"), heads);
  if (heads % kv_heads != 0) bad_input("{}: {} query heads can't share {} KV heads", meta.source, heads, kv_heads);
  if (!meta.has(key("attention.key_length")) && d % heads != 0)
    bad_input("{}: width {} doesn't divide into {} heads", meta.source, d, heads);
  head = count(meta, key("attention.key_length"), d / heads);
  if (count(meta, key("attention.value_length"), head) != head)
    bad_input("{}: key and value heads of different sizes, {} and {}", meta.source, head,
              meta.integer(key("attention.value_length")));
  context = count(meta, key("context_length"));
  eps = static_cast<float>(positive_number(meta, key("attention.layer_norm_rms_epsilon"), 1e-5));
  rope_base = positive_number(meta, key("rope.freq_base"), 10000);
  rope_scale = consonant::rope_scale(meta, arch);
  rope_dims = count(meta, key("rope.dimension_count"), head);
  if (rope_dims > head || rope_dims % 2 != 0)
    bad_input("{}: {} is {}, heads have {}", meta.source, key("rope.dimension_count"), rope_dims, head);
  vocabulary = vocabulary_of(file, d);
}

int64_t vocabulary_of(const ModelFile& file, int64_t d) {
  const Meta& meta = *file.meta;
  const StoredTensor* embed = file.find("token_embd.weight");
  if (!embed || embed->sizes.size() != 2)
    bad_input("{}: the tensor token_embd.weight [vocabulary, {}] is missing", meta.source, d);
  const int64_t vocabulary = embed->sizes[0];
  if (meta.has("tokenizer.ggml.tokens")) {
    const auto named = static_cast<int64_t>(meta.strings("tokenizer.ggml.tokens").size());
    if (named != vocabulary)
      bad_input("{}: {} tokens in the vocabulary, but {} rows in token_embd.weight", meta.source, named, vocabulary);
  }
  return vocabulary;
}

}  // namespace consonant
