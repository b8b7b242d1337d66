// SPDX-License-Identifier: Apache-2.0
// Nemotron-H (NVIDIA 2025): each layer is a norm and one mixer, which by a pattern is Mamba-2 (Dao and Gu 2024),
// attention without any positions, or a squared-ReLU MLP, in place of which nemotron_h_moe has experts.
#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "models/config.hpp"
#include "models/experts.hpp"
#include "models/language_model.hpp"
#include "ops/ops.hpp"

namespace consonant {

namespace {

constexpr int64_t most = int64_t{1} << 24;  // far above any real model; keeps products of sizes in range

int64_t count(const Meta& meta, const std::string& key) {
  const int64_t n = meta.integer(key);
  if (n < 1 || n > most) bad_input("{}: {} is {}", meta.source, key, n);
  return n;
}

// A number a layer, which may be 0.
MetaInts per_layer(const Meta& meta, const std::string& key, int64_t layers) {
  const MetaInts& numbers = meta.integers(key);
  if (static_cast<int64_t>(numbers.size()) != layers)
    bad_input("{}: {} is for {} layers, but there are {}", meta.source, key, numbers.size(), layers);
  for (const int64_t n : numbers)
    if (n < 0 || n > most) bad_input("{}: {} holds {}", meta.source, key, n);
  return numbers;
}

struct Config {
  int64_t layers, d, vocabulary, context;
  float eps;
  int64_t heads, head;  // of attention
  std::optional<ExpertConfig> experts;
  int64_t shared_ff = 0,
          latent = 0;     // width of the shared expert; of the space that the others work in, 0: the model's
  MetaInts kv_heads, ff;  // a layer each; Mamba-2 where both are 0
  int64_t inner, kernel;  // of Mamba-2: heads * head_dim; taps of its convolution
  int64_t ssm_heads, groups, states;

  int64_t bc() const { return groups * states; }
  int64_t channels() const { return inner + 2 * bc(); }

  Config(const ModelFile& file, std::string_view arch) {
    const Meta& meta = *file.meta;
    const auto key = [&](std::string_view name) { return arch_key(arch, name); };
    const auto divides = [&](std::string_view part, std::string_view whole, int64_t n, int64_t of) {
      if (of % n != 0) bad_input("{}: {} {} doesn't divide {} {}", meta.source, key(part), n, key(whole), of);
    };
    const int64_t blocks = count(meta, key("block_count"));
    layers = blocks - meta.integer(key("nextn_predict_layers"), 0);  // those past them predict further tokens
    if (layers < 1 || layers > blocks)
      bad_input("{}: {} is {} of {} blocks", meta.source, key("nextn_predict_layers"), blocks - layers, blocks);
    d = count(meta, key("embedding_length"));
    context = count(meta, key("context_length"));
    eps = static_cast<float>(positive_number(meta, key("attention.layer_norm_rms_epsilon"), 1e-5));
    heads = count(meta, key("attention.head_count"));
    head = count(meta, key("attention.key_length"));
    if (count(meta, key("attention.value_length")) != head)
      bad_input("{}: key and value heads of different sizes, {} and {}", meta.source, head,
                meta.integer(key("attention.value_length")));
    kv_heads = per_layer(meta, key("attention.head_count_kv"), blocks);
    ff = per_layer(meta, key("feed_forward_length"), blocks);
    for (int64_t i = 0; i < layers; ++i) {
      const int64_t kv = kv_heads[static_cast<size_t>(i)];
      if (kv > 0) divides("attention.head_count_kv", "attention.head_count", kv, heads);
      if (kv > 0 && ff[static_cast<size_t>(i)] > 0)
        bad_input("{}: layer {} has both {} and {}", meta.source, i, key("attention.head_count_kv"),
                  key("feed_forward_length"));
    }
    inner = count(meta, key("ssm.inner_size"));
    kernel = count(meta, key("ssm.conv_kernel"));
    if (kernel < 2 || kernel > 64) bad_input("{}: {} is {}", meta.source, key("ssm.conv_kernel"), kernel);
    ssm_heads = count(meta, key("ssm.time_step_rank"));
    groups = count(meta, key("ssm.group_count"));
    states = count(meta, key("ssm.state_size"));
    if (states > most_states)
      bad_input("{}: {} is {}, more than {}", meta.source, key("ssm.state_size"), states, most_states);
    divides("ssm.time_step_rank", "ssm.inner_size", ssm_heads, inner);
    divides("ssm.group_count", "ssm.time_step_rank", groups, ssm_heads);
    vocabulary = vocabulary_of(file, d);
    if (arch != "nemotron_h_moe") return;
    experts.emplace(file, arch, RouteAttr{.scoring = Scoring::sigmoid});
    shared_ff = count(meta, key("expert_shared_feed_forward_length"));
    if (meta.has(key("moe_latent_size"))) latent = count(meta, key("moe_latent_size"));
  }
};

struct Mamba {
  Tensor in, conv_w, conv_b, dt_bias, a, d, norm, out;

  static Mamba load(const Weights& w, const Config& c) {
    return {.in = w("ssm_in", {c.inner + c.channels() + c.ssm_heads, c.d}),
            .conv_w = w.flat("ssm_conv1d.weight", {c.channels(), c.kernel}),
            .conv_b = w.bias("ssm_conv1d", {c.channels()}),
            .dt_bias = w.bias("ssm_dt", {c.ssm_heads}),
            .a = w.flat("ssm_a", {c.ssm_heads, 1}),
            .d = w.flat("ssm_d", {c.ssm_heads, 1}),
            .norm = w.flat("ssm_norm.weight", {c.groups, c.inner / c.groups}),
            .out = w("ssm_out", {c.d, c.inner})};
  }

  Tensor operator()(const Config& c, Tensor u, const Slots& slots, MambaState& state) const {
    const auto parts = split(linear(u, in), {c.inner, c.channels(), c.ssm_heads});  // the gate; x, B and C; dt
    const auto xbc = split(causal_conv(state.conv, parts[1], conv_w, conv_b, slots), {c.inner, c.bc(), c.bc()});
    const SsmInputs scan = {split_heads(xbc[0], c.ssm_heads),
                            parts[2],
                            split_heads(xbc[1], c.groups),
                            split_heads(xbc[2], c.groups),
                            dt_bias,
                            a,
                            d};
    const Tensor y = merge_heads(ssm_scan(state.ssm, scan, slots));
    return linear(gated_norm(y, parts[0], norm, c.groups, c.eps), out);
  }
};

struct Attention {
  Tensor q, k, v, o;
  int64_t kv_heads = 0;

  static Attention load(const Weights& w, const Config& c, int64_t kv_heads) {
    return {.q = w("attn_q", {c.heads * c.head, c.d}),
            .k = w("attn_k", {kv_heads * c.head, c.d}),
            .v = w("attn_v", {kv_heads * c.head, c.d}),
            .o = w("attn_output", {c.d, c.heads * c.head}),
            .kv_heads = kv_heads};
  }

  Tensor operator()(const Config& c, Tensor x, const Mask& mask, KvState& kv) const {
    const Tensor queries = split_heads(linear(x, q), c.heads);  // [token, head, dim]
    const auto [keys, values] =
        kv_append(kv, split_heads(linear(x, k), kv_heads), split_heads(linear(x, v), kv_heads), mask);
    return linear(merge_heads(attend(queries, keys, values, mask, 1 / std::sqrt(static_cast<float>(c.head)))), o);
  }
};

struct Mlp {
  Tensor up, down;

  static Mlp load(const Weights& w, const Config& c, int64_t ff) {
    return {.up = w("ffn_up", {ff, c.d}), .down = w("ffn_down", {c.d, ff})};
  }

  Tensor operator()(Tensor x) const { return linear(relu_squared(linear(x, up)), down); }
};

// Experts, chosen by a sigmoid router with a correction bias, and one that every token goes through. Where they have a
// latent space, only the chosen ones work in it.
struct Experts {
  Tensor router, bias, up, down, shared_up, shared_down, into_latent, out_of_latent;

  static Experts load(const Weights& w, const Config& c) {
    const int64_t n = c.experts->count, ff = c.experts->ff, width = c.latent > 0 ? c.latent : c.d;
    return {.router = w("ffn_gate_inp", {n, c.d}),
            .bias = w.bias("exp_probs_b", {n}),
            .up = w("ffn_up_exps", {n, ff, width}),
            .down = w("ffn_down_exps", {n, width, ff}),
            .shared_up = w("ffn_up_shexp", {c.shared_ff, c.d}),
            .shared_down = w("ffn_down_shexp", {c.d, c.shared_ff}),
            .into_latent = c.latent > 0 ? w("ffn_latent_down", {c.latent, c.d}) : Tensor{},
            .out_of_latent = c.latent > 0 ? w("ffn_latent_up", {c.d, c.latent}) : Tensor{}};
  }

  Tensor operator()(const Config& c, Tensor x) const {
    const auto [ids, weights] = route(linear(x, router), bias, c.experts->route);  // [token, used]
    const Tensor u = into_latent ? linear(x, into_latent) : x;
    Tensor y = mix(linear_of(ids, relu_squared(linear_of(ids, u, up)), down), weights);
    if (out_of_latent) y = linear(y, out_of_latent);
    return y + linear(relu_squared(linear(x, shared_up)), shared_down);
  }
};

// Of the mixers, a layer has one.
struct Layer {
  Tensor norm;
  std::optional<Mamba> mamba;
  std::optional<Attention> attention;
  std::optional<Mlp> mlp;
  std::optional<Experts> experts;

  static Layer load(const Weights& w, const Config& c, size_t i) {
    Layer layer{.norm = w("attn_norm", {c.d}), .mamba = {}, .attention = {}, .mlp = {}, .experts = {}};
    if (c.ff[i] > 0 && c.experts)
      layer.experts = Experts::load(w, c);
    else if (c.ff[i] > 0)
      layer.mlp = Mlp::load(w, c, c.ff[i]);
    else if (c.kv_heads[i] > 0)
      layer.attention = Attention::load(w, c, c.kv_heads[i]);
    else
      layer.mamba = Mamba::load(w, c);
    return layer;
  }
};

class NemotronH final : public LanguageModel {
 public:
  NemotronH(const ModelFile& file, const Weights& w, std::string_view arch) : c_(file, arch) {
    embed_ = w("token_embd", {c_.vocabulary, c_.d});
    norm_ = w("output_norm", {c_.d});
    head_ = w.has("output") ? w("output", {c_.vocabulary, c_.d}) : embed_;
    for (int64_t i = 0; i < c_.layers; ++i) {
      layers_.push_back(Layer::load(w.layer(i), c_, static_cast<size_t>(i)));
      if (layers_.back().attention) kv.push_back({layers_.back().attention->kv_heads, c_.head, c_.head});
      if (layers_.back().mamba)
        mamba.push_back({c_.channels(), c_.kernel, c_.ssm_heads, c_.inner / c_.ssm_heads, c_.states});
    }
    layers = c_.layers, width = c_.d, vocabulary = c_.vocabulary, context = c_.context;
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
    size_t kv_layer = 0, mamba_layer = 0;
    for (size_t i = 0; i < layers_.size(); ++i) {
      Scope blk("blk", static_cast<int>(i));
      const Layer& w = layers_[i];
      const Tensor u = rms_norm(x, w.norm, c_.eps);
      if (w.mamba) x = x + (*w.mamba)(c_, u, s.slots, s.mamba[mamba_layer++]);
      if (w.attention) x = x + (*w.attention)(c_, u, s.mask, s.kv[kv_layer++]);
      if (w.mlp) x = x + (*w.mlp)(u);
      if (w.experts) x = x + (*w.experts)(c_, u);
    }
    return x;
  }

  Config c_;
  Tensor embed_, norm_, head_;
  std::vector<Layer> layers_;
};

// The block behind the last, which brings the token and the hidden state of the position before it together and goes
// through attention and experts. Its last norm is a layer norm without bias.
class NemotronHead final : public LanguageModel {
 public:
  NemotronHead(const ModelFile& file, const Weights& all) : c_(file, "nemotron_h_moe") {
    const Weights w = all.layer(c_.layers);
    const Sizes table = {c_.vocabulary, c_.d}, both = {c_.d, 2 * c_.d};
    embed_ = w.has("nextn.embed_tokens") ? w("nextn.embed_tokens", table) : all("token_embd", table);
    of_token_ = w.columns("nextn.eh_proj", both, 0, c_.d);
    of_hidden_ = w.columns("nextn.eh_proj", both, c_.d, c_.d);
    token_norm_ = w("nextn.enorm", {c_.d});
    hidden_norm_ = w("nextn.hnorm", {c_.d});
    attn_norm_ = w("attn_norm", {c_.d});
    const int64_t kv_heads = c_.kv_heads[static_cast<size_t>(c_.layers)];
    if (kv_heads < 1 || c_.heads % kv_heads != 0)
      bad_input("{}: attention.head_count_kv is {} in the block for further tokens, of {} heads", file.meta->source,
                kv_heads, c_.heads);
    attention_ = Attention::load(w, c_, kv_heads);
    ffn_norm_ = w("post_attention_norm", {c_.d});
    experts_ = Experts::load(w, c_);
    norm_ = w("nextn.shared_head_norm", {c_.d});
    no_bias_ = w.constant("nextn.no_bias", {c_.d}, std::vector<float>(static_cast<size_t>(c_.d)));
    norm_eps_ = static_cast<float>(
        positive_number(*file.meta, arch_key("nemotron_h_moe", "attention.layer_norm_epsilon"), c_.eps));
    if (w.has("nextn.shared_head_head"))
      head_ = w("nextn.shared_head_head", table);
    else
      head_ = all.has("output") ? all("output", table) : all("token_embd", table);
    layers = 1, width = c_.d, vocabulary = c_.vocabulary, context = c_.context, reads_hidden = true;
    kv.push_back({kv_heads, c_.head, c_.head});
  }

  Tensor logits(Inputs&) const override { bad_usage("a head for further tokens reads hidden states"); }

  Outputs outputs(Inputs& s, const Tensor& hidden) const override {
    Scope blk("blk", static_cast<int>(c_.layers));
    const Tensor token = rms_norm(rows(embed_, s.tokens), token_norm_, c_.eps);
    Tensor x = linear(token, of_token_) + linear(rms_norm(hidden, hidden_norm_, c_.eps), of_hidden_);
    x = x + attention_(c_, rms_norm(x, attn_norm_, c_.eps), s.mask, s.kv[0]);
    x = x + experts_(c_, rms_norm(x, ffn_norm_, c_.eps));
    const Tensor last = layer_norm(x, norm_, no_bias_, norm_eps_);
    return {linear(rows(last, s.wanted), head_), last};
  }

 private:
  Config c_;
  Tensor embed_, of_token_, of_hidden_, token_norm_, hidden_norm_, attn_norm_, ffn_norm_, norm_, no_bias_, head_;
  float norm_eps_ = 0;
  Attention attention_;
  Experts experts_;
};

}  // namespace

std::unique_ptr<LanguageModel> load_nemotron_h(const ModelFile& file, const Weights& weights) {
  return std::make_unique<NemotronH>(file, weights, "nemotron_h");
}

std::unique_ptr<LanguageModel> load_nemotron_h_moe(const ModelFile& file, const Weights& weights) {
  return std::make_unique<NemotronH>(file, weights, "nemotron_h_moe");
}

std::unique_ptr<LanguageModel> load_nemotron_h_moe_head(const ModelFile& file, const Weights& weights) {
  return std::make_unique<NemotronHead>(file, weights);
}

}  // namespace consonant
