// SPDX-License-Identifier: Apache-2.0
// LLaMA (Touvron et al. 2023; Grattafiori et al. 2024) and the many models of its shape: SmolLM2, Mistral, ...
#include <cmath>

#include "models/config.hpp"
#include "models/language_model.hpp"
#include "ops/ops.hpp"

namespace consonant {

namespace {

// A linear layer of this family: some checkpoints have biases.
struct Linear {
  Tensor w, b;

  static Linear load(const Weights& w, std::string_view name, int64_t outputs, int64_t inputs) {
    return {w(name, {outputs, inputs}), w.has_bias(name) ? w.bias(name, {outputs}) : Tensor{}};
  }
  Tensor operator()(Tensor x, Location at = Location::current()) const {
    Tensor y = linear(x, w, at);
    return b ? add(y, b, at) : y;
  }
};

struct Layer {
  Tensor attn_norm, ffn_norm;
  Linear q, k, v, o, gate, up, down;

  static Layer load(const Weights& w, const DecoderConfig& c) {
    return {.attn_norm = w("attn_norm", {c.d}),
            .ffn_norm = w("ffn_norm", {c.d}),
            .q = Linear::load(w, "attn_q", c.heads * c.head, c.d),
            .k = Linear::load(w, "attn_k", c.kv_heads * c.head, c.d),
            .v = Linear::load(w, "attn_v", c.kv_heads * c.head, c.d),
            .o = Linear::load(w, "attn_output", c.d, c.heads * c.head),
            .gate = Linear::load(w, "ffn_gate", c.ff, c.d),
            .up = Linear::load(w, "ffn_up", c.ff, c.d),
            .down = Linear::load(w, "ffn_down", c.d, c.ff)};
  }
};

Tensor attention(const Layer& w, const DecoderConfig& c, const Rotary& rotary, Tensor x, const Inputs& s, KvState& kv) {
  Tensor q = rope(split_heads(w.q(x), c.heads), s.pos, rotary);  // [token, head, dim]
  Tensor k = rope(split_heads(w.k(x), c.kv_heads), s.pos, rotary);
  Tensor v = split_heads(w.v(x), c.kv_heads);
  auto [keys, values] = kv_append(kv, k, v, s.mask);  // every position so far
  return w.o(merge_heads(attend(q, keys, values, s.mask, 1 / std::sqrt(static_cast<float>(c.head)))));
}

Tensor mlp(const Layer& w, Tensor x) { return w.down(silu(w.gate(x)) * w.up(x)); }

class Llama final : public LanguageModel {
 public:
  Llama(const ModelFile& file, const Weights& w) : c_(file, "llama") {
    embed_ = w("token_embd", {c_.vocabulary, c_.d});
    norm_ = w("output_norm", {c_.d});
    head_ = w.has("output") ? w("output", {c_.vocabulary, c_.d}) : embed_;
    rotary_ = {c_.rope_dims, c_.rope_base, c_.rope_scale, true, {}};
    if (w.has("rope_freqs")) rotary_.divisors = w("rope_freqs", {c_.rope_dims / 2});
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

std::unique_ptr<LanguageModel> load_llama(const ModelFile& file, const Weights& weights) {
  return std::make_unique<Llama>(file, weights);
}

}  // namespace consonant
