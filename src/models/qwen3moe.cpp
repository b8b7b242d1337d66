// SPDX-License-Identifier: Apache-2.0
// Qwen3 (Yang et al. 2025) with a mixture of experts in every layer: the router's softmax is over all experts, and the
// weights of those chosen are made to sum to one.
#include <cmath>

#include "models/config.hpp"
#include "models/experts.hpp"
#include "models/language_model.hpp"
#include "ops/ops.hpp"

namespace consonant {

namespace {

struct Layer {
  Tensor attn_norm, wq, wk, wv, wo, q_norm, k_norm, ffn_norm, router, gate, up, down;

  static Layer load(const Weights& w, const DecoderConfig& c, const ExpertConfig& e) {
    return {.attn_norm = w("attn_norm", {c.d}),
            .wq = w("attn_q", {c.heads * c.head, c.d}),
            .wk = w("attn_k", {c.kv_heads * c.head, c.d}),
            .wv = w("attn_v", {c.kv_heads * c.head, c.d}),
            .wo = w("attn_output", {c.d, c.heads * c.head}),
            .q_norm = w("attn_q_norm", {c.head}),
            .k_norm = w("attn_k_norm", {c.head}),
            .ffn_norm = w("ffn_norm", {c.d}),
            .router = w("ffn_gate_inp", {e.count, c.d}),
            .gate = w("ffn_gate_exps", {e.count, e.ff, c.d}),
            .up = w("ffn_up_exps", {e.count, e.ff, c.d}),
            .down = w("ffn_down_exps", {e.count, c.d, e.ff})};
  }
};

Tensor attention(const Layer& w, const DecoderConfig& c, const Rotary& rotary, Tensor x, const Inputs& s, KvState& kv) {
  Tensor q = rms_norm(split_heads(linear(x, w.wq), c.heads), w.q_norm, c.eps);  // [token, head, dim]
  Tensor k = rms_norm(split_heads(linear(x, w.wk), c.kv_heads), w.k_norm, c.eps);
  Tensor v = split_heads(linear(x, w.wv), c.kv_heads);
  auto [keys, values] = kv_append(kv, rope(k, s.pos, rotary), v, s.mask);  // every position so far
  Tensor y = attend(rope(q, s.pos, rotary), keys, values, s.mask, 1 / std::sqrt(static_cast<float>(c.head)));
  return linear(merge_heads(y), w.wo);
}

Tensor experts(const Layer& w, const ExpertConfig& e, Tensor x) {
  auto [ids, weights] = route(linear(x, w.router), {}, e.route);         // [token, used]
  Tensor h = silu(linear_of(ids, x, w.gate)) * linear_of(ids, x, w.up);  // [token, used, ff]
  return mix(linear_of(ids, h, w.down), weights);
}

class Qwen3Moe final : public LanguageModel {
 public:
  Qwen3Moe(const ModelFile& file, const Weights& w) : c_(file, "qwen3moe"), e_(file, "qwen3moe", {.normalise = true}) {
    embed_ = w("token_embd", {c_.vocabulary, c_.d});
    norm_ = w("output_norm", {c_.d});
    head_ = w.has("output") ? w("output", {c_.vocabulary, c_.d}) : embed_;
    rotary_ = {c_.rope_dims, c_.rope_base, c_.rope_scale, false, {}};
    for (int64_t i = 0; i < c_.layers; ++i) layers_.push_back(Layer::load(w.layer(i), c_, e_));
    layers = c_.layers, width = c_.d, vocabulary = c_.vocabulary, context = c_.context;
    kv.assign(static_cast<size_t>(c_.layers), {c_.kv_heads, c_.head, c_.head});
  }

  Tensor logits(Inputs& s) const override {
    Tensor x = rows(embed_, s.tokens);
    for (size_t i = 0; i < layers_.size(); ++i) {
      Scope blk("blk", static_cast<int>(i));
      const Layer& w = layers_[i];
      x = x + attention(w, c_, rotary_, rms_norm(x, w.attn_norm, c_.eps), s, s.kv[i]);
      x = x + experts(w, e_, rms_norm(x, w.ffn_norm, c_.eps));
    }
    return linear(rms_norm(rows(x, s.wanted), norm_, c_.eps), head_);
  }

 private:
  DecoderConfig c_;
  ExpertConfig e_;
  Rotary rotary_;
  Tensor embed_, norm_, head_;
  std::vector<Layer> layers_;
};

}  // namespace

std::unique_ptr<LanguageModel> load_qwen3moe(const ModelFile& file, const Weights& weights) {
  return std::make_unique<Qwen3Moe>(file, weights);
}

}  // namespace consonant
