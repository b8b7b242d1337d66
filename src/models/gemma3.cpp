// SPDX-License-Identifier: Apache-2.0
// Gemma 3, text (Kamath et al. 2025): norms before and after each block, q and k normalised per head, five layers with
// a sliding window for each one that sees everything, with two rotary bases. The file's norms include the + 1.
#include <cmath>

#include "models/config.hpp"
#include "models/language_model.hpp"
#include "ops/ops.hpp"

namespace consonant {

namespace {

struct Config : DecoderConfig {
  int64_t window, pattern;  // every `pattern`-th layer is global
  float scale;              // of queries
  double local_base;

  explicit Config(const ModelFile& file) : DecoderConfig(file, "gemma3") {
    const Meta& meta = *file.meta;
    window = meta.integer("gemma3.attention.sliding_window");
    pattern = meta.integer("gemma3.attention.sliding_window_pattern", 6);
    if (window < 1 || pattern < 1)
      bad_input("{}: a sliding window of {} every {} layers", meta.source, window, pattern);
    // The 27B model, known by its depth, scales by width / heads instead of the head's size.
    const double size = layers == 62 ? static_cast<double>(d) / static_cast<double>(heads) : static_cast<double>(head);
    scale = static_cast<float>(positive_number(meta, "gemma3.attention.scale", 1 / std::sqrt(size)));
    local_base = positive_number(meta, "gemma3.rope.freq_base_swa", 10000);
  }
  bool is_global(size_t layer) const { return (static_cast<int64_t>(layer) + 1) % pattern == 0; }
};

struct Layer {
  Tensor attn_norm, wq, wk, wv, wo, q_norm, k_norm, attn_post_norm, ffn_norm, gate, up, down, ffn_post_norm;

  static Layer load(const Weights& w, const Config& c) {
    return {.attn_norm = w("attn_norm", {c.d}),
            .wq = w("attn_q", {c.heads * c.head, c.d}),
            .wk = w("attn_k", {c.kv_heads * c.head, c.d}),
            .wv = w("attn_v", {c.kv_heads * c.head, c.d}),
            .wo = w("attn_output", {c.d, c.heads * c.head}),
            .q_norm = w("attn_q_norm", {c.head}),
            .k_norm = w("attn_k_norm", {c.head}),
            .attn_post_norm = w("post_attention_norm", {c.d}),
            .ffn_norm = w("ffn_norm", {c.d}),
            .gate = w("ffn_gate", {c.ff, c.d}),
            .up = w("ffn_up", {c.ff, c.d}),
            .down = w("ffn_down", {c.d, c.ff}),
            .ffn_post_norm = w("post_ffw_norm", {c.d})};
  }
};

Tensor attention(const Layer& w, const Config& c, const Rotary& rotary, Tensor x, const Inputs& s, const Mask& mask,
                 KvState& kv) {
  Tensor q = rms_norm(split_heads(linear(x, w.wq), c.heads), w.q_norm, c.eps);  // [token, head, dim]
  Tensor k = rms_norm(split_heads(linear(x, w.wk), c.kv_heads), w.k_norm, c.eps);
  Tensor v = split_heads(linear(x, w.wv), c.kv_heads);
  auto [keys, values] = kv_append(kv, rope(k, s.pos, rotary), v, mask);  // every position so far
  return linear(merge_heads(attend(rope(q, s.pos, rotary), keys, values, mask, c.scale)), w.wo);
}

Tensor mlp(const Layer& w, Tensor x) { return linear(gelu(linear(x, w.gate)) * linear(x, w.up), w.down); }

class Gemma3 final : public LanguageModel {
 public:
  Gemma3(const ModelFile& file, const Weights& w) : c_(file) {
    embed_ = w("token_embd", {c_.vocabulary, c_.d});
    norm_ = w("output_norm", {c_.d});
    head_ = w.has("output") ? w("output", {c_.vocabulary, c_.d}) : embed_;
    global_ = {c_.rope_dims, c_.rope_base, c_.rope_scale, false, {}};
    local_ = {c_.rope_dims, c_.local_base, 1, false, {}};
    for (int64_t i = 0; i < c_.layers; ++i) layers_.push_back(Layer::load(w.layer(i), c_));
    layers = c_.layers, width = c_.d, vocabulary = c_.vocabulary, context = c_.context;
    kv.assign(static_cast<size_t>(c_.layers), {c_.kv_heads, c_.head, c_.head});
  }

  Tensor logits(Inputs& s) const override {
    Tensor x = scale(rows(embed_, s.tokens), std::sqrt(static_cast<float>(c_.d)));
    for (size_t i = 0; i < layers_.size(); ++i) {
      Scope blk("blk", static_cast<int>(i));
      const Layer& w = layers_[i];
      const bool global = c_.is_global(i);
      const Mask mask = global ? s.mask : s.mask.sliding(c_.window);
      Tensor y = attention(w, c_, global ? global_ : local_, rms_norm(x, w.attn_norm, c_.eps), s, mask, s.kv[i]);
      x = x + rms_norm(y, w.attn_post_norm, c_.eps);
      x = x + rms_norm(mlp(w, rms_norm(x, w.ffn_norm, c_.eps)), w.ffn_post_norm, c_.eps);
    }
    return linear(rms_norm(rows(x, s.wanted), norm_, c_.eps), head_);
  }

 private:
  Config c_;
  Rotary global_, local_;
  Tensor embed_, norm_, head_;
  std::vector<Layer> layers_;
};

}  // namespace

std::unique_ptr<LanguageModel> load_gemma3(const ModelFile& file, const Weights& weights) {
  return std::make_unique<Gemma3>(file, weights);
}

}  // namespace consonant
