// SPDX-License-Identifier: Apache-2.0
#include "models/qwen3_tts.hpp"

#include <fmt/format.h>

#include <cmath>

#include "models/config.hpp"
#include "ops/ops.hpp"

namespace consonant {

namespace {

std::string key(std::string_view rest) { return fmt::format("qwen3tts.{}", rest); }

int64_t size(const Meta& meta, std::string_view name, int64_t most = 1 << 16) {
  const std::string k = key(name);
  const int64_t n = meta.integer(k);
  if (n < 1 || n > most) bad_input("{}: {} is {}, not 1 to {}", meta.source, k, n, most);
  return n;
}

// A size that only a tensor tells.
int64_t size_of(const ModelFile& file, const std::string& name, size_t rank) {
  const StoredTensor* t = file.find(name);
  if (!t || t->sizes.size() != rank) bad_input("{}: the tensor {} is missing", file.meta->source, name);
  if (t->sizes[0] < 1 || t->sizes[0] > 1 << 16)
    bad_input("{}: the tensor {} is {}", file.meta->source, name, to_string(t->sizes));
  return t->sizes[0];
}

void check_heads(const ModelFile& file, std::string_view part, int64_t heads, int64_t kv_heads, int64_t head) {
  if (heads % kv_heads != 0)
    bad_input("{}: {}: {} query heads can't share {} KV heads", file.meta->source, key(part), heads, kv_heads);
  if (head % 2 != 0) bad_input("{}: {}: heads of an odd size, {}", file.meta->source, key(part), head);
}

}  // namespace

void Qwen3Tts::Decoder::load(const Weights& w, const Dims& s) {
  sizes = s;
  for (int64_t i = 0; i < s.layers; ++i) {
    const Weights l = w.layer(i);
    layers.push_back({.attn_norm = l("attn_norm", {s.width}),
                      .wq = l("attn_q", {s.heads * s.head, s.width}),
                      .wk = l("attn_k", {s.kv_heads * s.head, s.width}),
                      .wv = l("attn_v", {s.kv_heads * s.head, s.width}),
                      .wo = l("attn_output", {s.width, s.heads * s.head}),
                      .q_norm = l("attn_q_norm", {s.head}),
                      .k_norm = l("attn_k_norm", {s.head}),
                      .ffn_norm = l("ffn_norm", {s.width}),
                      .gate = l("ffn_gate", {s.ff, s.width}),
                      .up = l("ffn_up", {s.ff, s.width}),
                      .down = l("ffn_down", {s.width, s.ff})});
  }
  norm = w("output_norm", {s.width});
}

Tensor Qwen3Tts::Decoder::attention(const Layer& w, Tensor x, const Tensor& pos, const Mask& mask, KvState& kv) const {
  Tensor q = rms_norm(split_heads(linear(x, w.wq), sizes.heads), w.q_norm, eps);  // [token, head, dim]
  Tensor k = rms_norm(split_heads(linear(x, w.wk), sizes.kv_heads), w.k_norm, eps);
  Tensor v = split_heads(linear(x, w.wv), sizes.kv_heads);
  auto [keys, values] = kv_append(kv, rope(k, pos, rotary), v, mask);
  Tensor y = attend(rope(q, pos, rotary), keys, values, mask, 1 / std::sqrt(static_cast<float>(sizes.head)));
  return linear(merge_heads(y), w.wo);
}

Tensor Qwen3Tts::Decoder::run(Tensor x, const Tensor& pos, const Mask& mask, std::vector<KvState>& kv) const {
  for (size_t i = 0; i < layers.size(); ++i) {
    Scope blk("blk", static_cast<int>(i));
    const Layer& w = layers[i];
    x = x + attention(w, rms_norm(x, w.attn_norm, eps), pos, mask, kv[i]);
    Tensor h = rms_norm(x, w.ffn_norm, eps);
    x = x + linear(silu(linear(h, w.gate)) * linear(h, w.up), w.down);
  }
  return x;
}

Qwen3Tts::Qwen3Tts(const ModelFile& file, const Weights& weights) : vocabulary_(*file.meta) {
  const Meta& meta = *file.meta;
  const Weights t = weights.under("talker."), p = weights.under("code_pred.");
  width = size(meta, "talker.d_model"), layers = size(meta, "talker.n_layers", 512);
  context = size(meta, "talker.max_pos", 1 << 20);
  const int64_t read = size(meta, "talker.text_hidden_size"), groups = vocabulary_.groups;
  const Dims talker = {layers,
                       width,
                       size(meta, "talker.ff_dim"),
                       size(meta, "talker.n_heads"),
                       size(meta, "talker.n_kv_heads"),
                       size(meta, "talker.head_dim")};
  check_heads(file, "talker", talker.heads, talker.kv_heads, talker.head);
  talker_.load(t, talker);
  text_embed_ = t("token_embd_text", {vocabulary_.text, read});
  fc1_ = t("text_proj.fc1", {read, read}), fc1_bias_ = t.bias("text_proj.fc1", {read});
  fc2_ = t("text_proj.fc2", {width, read}), fc2_bias_ = t.bias("text_proj.fc2", {width});
  head_ = t("output", {vocabulary_.codes, width});
  std::vector<float> forbidden(static_cast<size_t>(vocabulary_.codes));
  for (int64_t id = vocabulary_.book; id < vocabulary_.codes; ++id)
    if (id != vocabulary_.end) forbidden[static_cast<size_t>(id)] = -INFINITY;
  forbidden_ = weights.constant("talker.forbidden", {vocabulary_.codes}, std::move(forbidden));

  const Dims predictor = {size(meta, "code_pred.n_layers", 512),
                          size(meta, "code_pred.d_model"),
                          size_of(file, "code_pred.blk.0.ffn_up.weight", 2),
                          size(meta, "code_pred.n_heads"),
                          size(meta, "code_pred.n_kv_heads"),
                          size_of(file, "code_pred.blk.0.attn_q_norm.weight", 1)};
  check_heads(file, "code_pred", predictor.heads, predictor.kv_heads, predictor.head);
  predictor_.load(p, predictor);
  if (predictor.width != width) {
    narrow_ = p("small_to_mtp", {predictor.width, width});
    narrow_bias_ = p.bias("small_to_mtp", {predictor.width});
  }
  tables_.push_back(t("token_embd", {vocabulary_.codes, width}));
  for (int64_t g = 0; g + 1 < groups; ++g) {
    tables_.push_back(p(fmt::format("token_embd.{}", g), {vocabulary_.book, width}));
    heads_.push_back(p(fmt::format("output.{}", g), {vocabulary_.book, predictor.width}));
  }
  // The sections of a multi-axis rotation turn alike where all axes count the same positions, as they do here.
  const double base = positive_number(meta, key("talker.rope_theta"), 1e6);
  talker_.eps = predictor_.eps = static_cast<float>(positive_number(meta, key("talker.rms_norm_eps"), 1e-6));
  talker_.rotary = {talker.head, base, 1, false, {}};
  predictor_.rotary = {predictor.head, base, 1, false, {}};
  kv.assign(static_cast<size_t>(talker.layers), {talker.kv_heads, talker.head, talker.head});
  frame_kv.assign(static_cast<size_t>(predictor.layers), {predictor.kv_heads, predictor.head, predictor.head});
}

Tensor Qwen3Tts::embed(const FrameInputs& s) const {
  Scope scope("input");
  Tensor x = linear(silu(linear(rows(text_embed_, s.text), fc1_) + fc1_bias_), fc2_) + fc2_bias_;
  for (size_t g = 0; g < tables_.size(); ++g) x = x + rows(tables_[g], s.codes[g]);
  return s.voice ? x + rows(s.voices, s.voice) : x;
}

Tensor Qwen3Tts::hidden(FrameInputs& s) const {
  Tensor x = embed(s);
  Scope scope("talker");
  x = talker_.run(x, s.pos, s.mask, s.kv);
  return rms_norm(rows(x, s.wanted), talker_.norm, talker_.eps);
}

Tensor Qwen3Tts::logits(Tensor hidden) const {
  Scope scope("talker");
  return linear(hidden, head_);
}

Tensor Qwen3Tts::allowed(Tensor logits) const {
  Scope scope("talker");
  return logits + forbidden_;
}

Tensor Qwen3Tts::narrow(Tensor x) const { return narrow_ ? linear(x, narrow_) + narrow_bias_ : x; }

std::vector<Tensor> Qwen3Tts::predict(Tensor hidden, Tensor first, FrameInputs& s, const DrawCode& draw) const {
  const auto read = [&](int64_t place, Tensor x) {
    const Tensor& pos = s.places[static_cast<size_t>(place)];
    return predictor_.run(narrow(x), pos, {pos, s.frame, s.frame_pages, 0}, s.frame_kv);
  };
  {
    Scope scope("code", 0);
    read(0, hidden);
  }
  std::vector<Tensor> codes = {first};
  for (int64_t g = 1; g <= std::ssize(heads_); ++g) {
    Scope scope("code", static_cast<int>(g));
    Tensor x = read(g, rows(tables_[static_cast<size_t>(g - 1)], codes.back()));
    x = linear(rms_norm(x, predictor_.norm, predictor_.eps), heads_[static_cast<size_t>(g - 1)]);
    codes.push_back(draw(g, x));
  }
  codes.erase(codes.begin());
  return codes;
}

}  // namespace consonant
