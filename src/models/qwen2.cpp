// SPDX-License-Identifier: Apache-2.0
// Qwen2 and Qwen2.5 (Yang et al. 2024): LLaMA's shape with biases on q, k and v; rotary pairs are halves of a head.
#include <cmath>

#include "models/config.hpp"
#include "models/language_model.hpp"
#include "ops/ops.hpp"

namespace consonant {

namespace {

struct Layer {
  Tensor attn_norm, wq, bq, wk, bk, wv, bv, wo, ffn_norm, gate, up, down;

  static Layer load(const Weights& w, const DecoderConfig& c) {
    return {.attn_norm = w("attn_norm", {c.d}),
            .wq = w("attn_q", {c.heads * c.head, c.d}),
            .bq = w.bias("attn_q", {c.heads * c.head}),
            .wk = w("attn_k", {c.kv_heads * c.head, c.d}),
            .bk = w.bias("attn_k", {c.kv_heads * c.head}),
            .wv = w("attn_v", {c.kv_heads * c.head, c.d}),
            .bv = w.bias("attn_v", {c.kv_heads * c.head}),
            .wo = w("attn_output", {c.d, c.heads * c.head}),
            .ffn_norm = w("ffn_norm", {c.d}),
            .gate = w("ffn_gate", {c.ff, c.d}),
            .up = w("ffn_up", {c.ff, c.d}),
            .down = w("ffn_down", {c.d, c.ff})};
  }
};

Tensor attention(const Layer& w, const DecoderConfig& c, const Rotary& rotary, Tensor x, const Inputs& s, KvState& kv) {
  Tensor q = split_heads(linear(x, w.wq) + w.bq, c.heads);  // [token, head, dim]
  Tensor k = split_heads(linear(x, w.wk) + w.bk, c.kv_heads);
  Tensor v = split_heads(linear(x, w.wv) + w.bv, c.kv_heads);
  auto [keys, values] = kv_append(kv, rope(k, s.pos, rotary), v, s.mask);  // every position so far
  Tensor y = attend(rope(q, s.pos, rotary), keys, values, s.mask, 1 / std::sqrt(static_cast<float>(c.head)));
  return linear(merge_heads(y), w.wo);
}

Tensor mlp(const Layer& w, Tensor x) { return linear(silu(linear(x, w.gate)) * linear(x, w.up), w.down); }

class Qwen2 final : public LanguageModel {
 public:
  Qwen2(const ModelFile& file, const Weights& w) : c_(file, "qwen2") {
    embed_ = w("token_embd", {c_.vocabulary, c_.d});
    norm_ = w("output_norm", {c_.d});
    head_ = w.has("output") ? w("output", {c_.vocabulary, c_.d}) : embed_;
    rotary_ = {c_.rope_dims, c_.rope_base, c_.rope_scale, false, {}};
    for (int64_t i = 0; i < c_.layers; ++i) layers_.push_back(Layer::load(w.layer(i), c_));
    layers = c_.layers, width = c_.d, vocabulary = c_.vocabulary, context = c_.context;
    kv.assign(static_cast<size_t>(c_.layers), {c_.kv_heads, c_.head, c_.head});
  }

  Tensor logits(Inputs& s) const override {
    Tensor x = rows(embed_, s.tokens);
    for (size_t i = 0; i < layers_.size(); ++i) {
      Scope blk("blk", static_cast<int>(i));
      const Layer& w = layers_[i];
      x = x + attention(w, c_, rotary_, rms_norm(x, w.attn_norm, c_.eps), s, s.kv[i]);
      x = x + mlp(w, rms_norm(x, w.ffn_norm, c_.eps));
    }
    return linear(rms_norm(rows(x, s.wanted), norm_, c_.eps), head_);
  }

 private:
  DecoderConfig c_;
  Rotary rotary_;
  Tensor embed_, norm_, head_;
  std::vector<Layer> layers_;
};

}  // namespace

std::unique_ptr<LanguageModel> load_qwen2(const ModelFile& file, const Weights& weights) {
  return std::make_unique<Qwen2>(file, weights);
}

}  // namespace consonant
