// SPDX-License-Identifier: Apache-2.0
// DeepSeek V2 and V3 (DeepSeek-AI 2024) and GLM-4.7-Flash: latent attention in its absorbed form, leading dense layers,
// then experts beside a shared one.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "models/config.hpp"
#include "models/experts.hpp"
#include "models/language_model.hpp"
#include "ops/ops.hpp"

namespace consonant {

namespace {

constexpr int64_t most = int64_t{1} << 24;  // far above any real model; keeps products of sizes in range

struct Config {
  int64_t layers, d, ff, heads, vocabulary, context;
  int64_t dense_layers;                 // the first ones, without experts
  int64_t q_latent;                     // 0: queries are made from x at once
  int64_t latent, nope, turned, value;  // numbers of a row; of a head: keys without and with position
  float eps;
  float inner_eps = 1e-6f;  // of the norms within attention: fixed, whatever the file says of the others
  float scale;              // of scores
  Rotary rotary;

  explicit Config(const ModelFile& file);

 private:
  static std::string key(std::string_view name) { return arch_key("deepseek2", name); }
  static int64_t count(const Meta& meta, std::string_view name, int64_t least = 1) {
    const int64_t n = meta.integer(key(name));
    if (n < least || n > most) bad_input("{}: {} is {}", meta.source, key(name), n);
    return n;
  }
  static int64_t count_or(const Meta& meta, std::string_view name, int64_t fallback) {
    return meta.has(key(name)) ? count(meta, name, 0) : fallback;
  }
  void read_heads(const Meta& meta);
  void read_rotary(const Meta& meta);
  void read_vocabulary(const ModelFile& file);
};

Config::Config(const ModelFile& file) {
  const Meta& meta = *file.meta;
  // Layers that predict further tokens stand behind the others.
  layers = count(meta, "block_count") - count_or(meta, "nextn_predict_layers", 0);
  if (layers < 1)
    bad_input("{}: {} leaves no layer of {}", meta.source, key("nextn_predict_layers"), key("block_count"));
  d = count(meta, "embedding_length");
  ff = count(meta, "feed_forward_length");
  context = count(meta, "context_length");
  dense_layers = count_or(meta, "leading_dense_block_count", 0);
  if (dense_layers > layers)
    bad_input("{}: {} is {}, but there are {} layers", meta.source, key("leading_dense_block_count"), dense_layers,
              layers);
  eps = static_cast<float>(positive_number(meta, key("attention.layer_norm_rms_epsilon"), 1e-6));
  read_heads(meta);
  read_rotary(meta);
  read_vocabulary(file);
}

// Files of newer converters have the heads' own sizes behind "mla", and the row's in the plain keys; older ones have
// the heads' in the plain keys.
void Config::read_heads(const Meta& meta) {
  heads = count(meta, "attention.head_count");
  q_latent = count_or(meta, "attention.q_lora_rank", 0);
  latent = count(meta, "attention.kv_lora_rank");
  turned = count(meta, "rope.dimension_count");
  const bool apart = meta.has(key("attention.key_length_mla"));
  const std::string_view key_name = apart ? "attention.key_length_mla" : "attention.key_length";
  const int64_t key_length = count(meta, key_name);
  value = count(meta, apart ? "attention.value_length_mla" : "attention.value_length");
  nope = key_length - turned;
  if (turned % 2 != 0 || nope < 1)
    bad_input("{}: {} is {}, of keys of {} ({})", meta.source, key("rope.dimension_count"), turned, key_length,
              key(key_name));
  scale = static_cast<float>(1 / std::sqrt(static_cast<double>(key_length)));
}

// With YaRN, `yarn_log_multiplier` times ln(factor) + 1 is what queries and keys are scaled by each; files that have it
// have sines and cosines as they are.
void Config::read_rotary(const Meta& meta) {
  rotary = {turned, positive_number(meta, key("rope.freq_base"), 10000), 1, true, {}};
  const std::string type_key = key("rope.scaling.type");
  const std::string_view type = meta.string(type_key, "none");
  if (type == "none") return;
  const double factor = positive_number(meta, key("rope.scaling.factor"), 1);
  if (type == "linear") {
    rotary.scale = 1 / factor;
    return;
  }
  if (type != "yarn")
    bad_input("{}: {} is '{}'; this architecture has 'none', 'linear' and 'yarn'", meta.source, type_key, type);
  const auto trained = static_cast<double>(count(meta, "rope.scaling.original_context_length"));
  rotary.yarn = {factor, trained, positive_number(meta, key("rope.scaling.yarn_beta_fast"), 32),
                 positive_number(meta, key("rope.scaling.yarn_beta_slow"), 1)};
  const double stretch = factor > 1 ? std::log(factor) : 0,
               multiplier = meta.number(key("rope.scaling.yarn_log_multiplier"), 0);
  if (!(multiplier >= 0) || !std::isfinite(multiplier))
    bad_input("{}: {} is {}", meta.source, key("rope.scaling.yarn_log_multiplier"), multiplier);
  const double grown = 1 + multiplier * stretch;
  scale = static_cast<float>(scale * grown * grown);
  rotary.magnitude = positive_number(meta, key("rope.scaling.attn_factor"), multiplier > 0 ? 1 : 1 + 0.1 * stretch);
}

void Config::read_vocabulary(const ModelFile& file) {
  const Meta& meta = *file.meta;
  const StoredTensor* embed = file.find("token_embd.weight");
  if (!embed || embed->sizes.size() != 2)
    bad_input("{}: the tensor token_embd.weight [vocabulary, {}] is missing", meta.source, d);
  vocabulary = embed->sizes[0];
  if (!meta.has("tokenizer.ggml.tokens")) return;
  const auto named = static_cast<int64_t>(meta.strings("tokenizer.ggml.tokens").size());
  if (named != vocabulary)
    bad_input("{}: {} tokens in the vocabulary, but {} rows in token_embd.weight", meta.source, named, vocabulary);
}

struct Attention {
  Tensor wq, q_a, q_a_norm, q_b;  // either the first or the others
  Tensor kv_a, kv_a_norm, k_b, v_b, wo;

  static Attention load(const Weights& w, const Config& c) {
    Attention a;
    const int64_t queries = c.heads * (c.nope + c.turned);
    if (c.q_latent == 0) {
      a.wq = w("attn_q", {queries, c.d});
    } else {
      a.q_a = w("attn_q_a", {c.q_latent, c.d});
      a.q_a_norm = w("attn_q_a_norm", {c.q_latent});
      a.q_b = w("attn_q_b", {queries, c.q_latent});
    }
    a.kv_a = w("attn_kv_a_mqa", {c.latent + c.turned, c.d});
    a.kv_a_norm = w("attn_kv_a_norm", {c.latent});
    a.k_b = w("attn_k_b", {c.heads, c.latent, c.nope});
    a.v_b = w("attn_v_b", {c.heads, c.value, c.latent});
    a.wo = w("attn_output", {c.d, c.heads * c.value});
    return a;
  }
};

struct Mlp {
  Tensor gate, up, down;

  static Mlp load(const Weights& w, std::string_view suffix, int64_t d, int64_t ff) {
    return {.gate = w(fmt::format("ffn_gate{}", suffix), {ff, d}),
            .up = w(fmt::format("ffn_up{}", suffix), {ff, d}),
            .down = w(fmt::format("ffn_down{}", suffix), {d, ff})};
  }
};

// Experts, chosen by a router, beside one that every token goes through.
struct Experts {
  Tensor router, correction;  // the latter counts for the choice alone; softmax routers have none
  Tensor gate, up, down;      // [expert, outputs, inputs]
  Mlp shared;

  static Experts load(const Weights& w, const ExpertConfig& e, int64_t d) {
    Experts x;
    x.router = w("ffn_gate_inp", {e.count, d});
    if (e.route.scoring == Scoring::sigmoid || w.has_bias("exp_probs_b"))
      x.correction = w.bias("exp_probs_b", {e.count});
    x.gate = w("ffn_gate_exps", {e.count, e.ff, d});
    x.up = w("ffn_up_exps", {e.count, e.ff, d});
    x.down = w("ffn_down_exps", {e.count, d, e.ff});
    if (e.shared > 0) x.shared = Mlp::load(w, "_shexp", d, e.shared * e.ff);
    return x;
  }
};

struct Layer {
  Tensor attn_norm, ffn_norm;
  Attention attention;
  Mlp dense;  // of the leading layers
  Experts experts;
};

// Keys and values of all heads are linear in one row a position, so queries are brought to the rows' space (k_b) and
// what is mixed there back to the heads (v_b): the cache holds the rows alone.
Tensor attention(const Attention& w, const Config& c, Tensor x, const Inputs& s, KvState& kv) {
  Tensor q = w.wq ? linear(x, w.wq) : linear(rms_norm(linear(x, w.q_a), w.q_a_norm, c.inner_eps), w.q_b);
  const std::vector<Tensor> of_head = split(split_heads(q, c.heads), {c.nope, c.turned});  // [token, head, dim]
  const std::vector<Tensor> row = split(linear(x, w.kv_a), {c.latent, c.turned});          // [token, n]
  Tensor turned = merge_heads(rope(split_heads(row[1], 1), s.pos, c.rotary));
  Tensor rows = latent_append(kv, rms_norm(row[0], w.kv_a_norm, c.inner_eps), turned, s.mask);  // every position so far
  Tensor y = attend_latent(linear_heads(of_head[0], w.k_b), rope(of_head[1], s.pos, c.rotary), rows, s.mask, c.scale);
  return linear(merge_heads(linear_heads(y, w.v_b)), w.wo);
}

Tensor mlp(const Mlp& w, Tensor x) { return linear(silu(linear(x, w.gate)) * linear(x, w.up), w.down); }

Tensor experts(const Experts& w, const ExpertConfig& e, Tensor x) {
  auto [ids, weights] = route(linear(x, w.router), w.correction, e.route);  // [token, used]
  Tensor h = silu(linear_of(ids, x, w.gate)) * linear_of(ids, x, w.up);     // [token, used, ff]
  Tensor y = mix(linear_of(ids, h, w.down), weights);
  return w.shared.gate ? y + mlp(w.shared, x) : y;
}

// Files that don't name the scoring: those with a correction have sigmoid scores.
RouteAttr usual_routing(const ModelFile& file) {
  const bool corrected = std::any_of(file.tensors.begin(), file.tensors.end(),
                                     [](const StoredTensor& t) { return t.name.ends_with(".exp_probs_b.bias"); });
  return {.scoring = corrected ? Scoring::sigmoid : Scoring::softmax, .normalise = false};
}

Layer load_layer(const Weights& w, const Config& c, const std::optional<ExpertConfig>& e, int64_t i) {
  Layer layer;
  layer.attn_norm = w("attn_norm", {c.d});
  layer.attention = Attention::load(w, c);
  layer.ffn_norm = w("ffn_norm", {c.d});
  if (i < c.dense_layers)
    layer.dense = Mlp::load(w, "", c.d, c.ff);
  else
    layer.experts = Experts::load(w, *e, c.d);
  return layer;
}

class Deepseek2 final : public LanguageModel {
 public:
  Deepseek2(const ModelFile& file, const Weights& w) : c_(file) {
    embed_ = w("token_embd", {c_.vocabulary, c_.d});
    norm_ = w("output_norm", {c_.d});
    head_ = w.has("output") ? w("output", {c_.vocabulary, c_.d}) : embed_;
    if (c_.dense_layers < c_.layers) e_.emplace(file, "deepseek2", usual_routing(file));
    for (int64_t i = 0; i < c_.layers; ++i) layers_.push_back(load_layer(w.layer(i), c_, e_, i));
    layers = c_.layers, width = c_.d, vocabulary = c_.vocabulary, context = c_.context;
    kv.assign(static_cast<size_t>(c_.layers), {1, 0, c_.latent + c_.turned});
  }

  Tensor logits(Inputs& s) const override { return linear(rms_norm(rows(last(s), s.wanted), norm_, c_.eps), head_); }

  Outputs outputs(Inputs& s, const Tensor&) const override {
    const Tensor hidden = rms_norm(last(s), norm_, c_.eps);
    return {linear(rows(hidden, s.wanted), head_), hidden};
  }

 private:
  // What the last layer gives [token, d].
  Tensor last(Inputs& s) const {
    Tensor x = rows(embed_, s.tokens);
    for (size_t i = 0; i < layers_.size(); ++i) {
      Scope blk("blk", static_cast<int>(i));
      const Layer& w = layers_[i];
      x = x + attention(w.attention, c_, rms_norm(x, w.attn_norm, c_.eps), s, s.kv[i]);
      Tensor normed = rms_norm(x, w.ffn_norm, c_.eps);
      x = x + (w.dense.gate ? mlp(w.dense, normed) : experts(w.experts, *e_, normed));
    }
    return x;
  }

  Config c_;
  std::optional<ExpertConfig> e_;
  Tensor embed_, norm_, head_;
  std::vector<Layer> layers_;
};

// The layer behind the last: the token and the hidden state of the position before it are brought together, and what
// follows the token is predicted as the model does it (DeepSeek-AI 2024, multi-token prediction).
class Deepseek2Head final : public LanguageModel {
 public:
  Deepseek2Head(const ModelFile& file, const Weights& all) : c_(file) {
    const Weights w = all.layer(c_.layers);
    const Sizes table = {c_.vocabulary, c_.d}, both = {c_.d, 2 * c_.d};
    embed_ = w.has("nextn.embed_tokens") ? w("nextn.embed_tokens", table) : all("token_embd", table);
    of_token_ = w.columns("nextn.eh_proj", both, 0, c_.d);
    of_hidden_ = w.columns("nextn.eh_proj", both, c_.d, c_.d);
    token_norm_ = w("nextn.enorm", {c_.d});
    hidden_norm_ = w("nextn.hnorm", {c_.d});
    e_.emplace(file, "deepseek2", usual_routing(file));
    layer_ = load_layer(w, c_, e_, c_.layers);
    norm_ = w.has("nextn.shared_head_norm") ? w("nextn.shared_head_norm", {c_.d}) : all("output_norm", {c_.d});
    if (w.has("nextn.shared_head_head"))
      head_ = w("nextn.shared_head_head", table);
    else
      head_ = all.has("output") ? all("output", table) : all("token_embd", table);
    layers = 1, width = c_.d, vocabulary = c_.vocabulary, context = c_.context, reads_hidden = true;
    kv.push_back({1, 0, c_.latent + c_.turned});
  }

  Tensor logits(Inputs&) const override { bad_usage("a head for further tokens reads hidden states"); }

  Outputs outputs(Inputs& s, const Tensor& hidden) const override {
    Scope blk("blk", static_cast<int>(c_.layers));
    const Tensor token = rms_norm(rows(embed_, s.tokens), token_norm_, c_.eps);
    Tensor x = linear(token, of_token_) + linear(rms_norm(hidden, hidden_norm_, c_.eps), of_hidden_);
    x = x + attention(layer_.attention, c_, rms_norm(x, layer_.attn_norm, c_.eps), s, s.kv[0]);
    const Tensor normed = rms_norm(x, layer_.ffn_norm, c_.eps);
    x = x + experts(layer_.experts, *e_, normed);
    const Tensor last = rms_norm(x, norm_, c_.eps);
    return {linear(rows(last, s.wanted), head_), last};
  }

 private:
  Config c_;
  std::optional<ExpertConfig> e_;
  Tensor embed_, of_token_, of_hidden_, token_norm_, hidden_norm_, norm_, head_;
  Layer layer_;
};

}  // namespace

std::unique_ptr<LanguageModel> load_deepseek2(const ModelFile& file, const Weights& weights) {
  return std::make_unique<Deepseek2>(file, weights);
}

std::unique_ptr<LanguageModel> load_deepseek2_head(const ModelFile& file, const Weights& weights) {
  return std::make_unique<Deepseek2Head>(file, weights);
}

}  // namespace consonant
