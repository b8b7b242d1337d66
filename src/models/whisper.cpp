// SPDX-License-Identifier: Apache-2.0
#include "models/whisper.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "audio/mel.hpp"
#include "models/config.hpp"
#include "ops/ops.hpp"

namespace consonant {

namespace {

constexpr float epsilon = 1e-5f;
constexpr double rate = 16000, highest = 8000;

int64_t size(const Meta& meta, std::string_view key, int64_t least, int64_t most) {
  const std::string name = fmt::format("whisper.{}", key);
  const int64_t n = meta.integer(name);
  if (n < least || n > most) bad_input("{}: {} is {}, not {} to {}", meta.source, name, n, least, most);
  return n;
}

}  // namespace

Tensor Whisper::Norm::operator()(Tensor x, Location at) const { return layer_norm(x, w, b, epsilon, at); }

Tensor Whisper::Linear::operator()(Tensor x, Location at) const {
  Tensor y = linear(x, w, at);
  return b ? add(y, b, at) : y;
}

Whisper::Norm Whisper::load_norm(const Weights& w, std::string_view name) const {
  return {w(name, {width}), w.bias(name, {width})};
}

// Key projections have no bias.
Whisper::Attention Whisper::load_attention(const Weights& w, const std::string& name) const {
  const auto part = [&](const char* end) { return w(name + end, {width, width}); };
  const auto bias = [&](const char* end) { return w.bias(name + end, {width}); };
  return {load_norm(w, name + "_norm"),
          {part("_q"), bias("_q")},
          {part("_k"), {}},
          {part("_v"), bias("_v")},
          {part("_output"), bias("_output")}};
}

Whisper::Layer Whisper::load_layer(const Weights& w, int64_t ff, bool cross) const {
  return {.self = load_attention(w, "attn"),
          .cross = cross ? load_attention(w, "cross_attn") : Attention{},
          .ffn_norm = load_norm(w, "ffn_norm"),
          .up = {w("ffn_up", {ff, width}), w.bias("ffn_up", {ff})},
          .down = {w("ffn_down", {width, ff}), w.bias("ffn_down", {width})}};
}

Whisper::Whisper(const ModelFile& file, const Weights& w) {
  const Meta& meta = *file.meta;
  constexpr int64_t most = 1 << 16;
  width = size(meta, "embedding_length", 1, most);
  vocabulary = size(meta, "vocab_size", 1, 1 << 20);
  mels = size(meta, "mel_bins", 1, 1024);
  positions = size(meta, "encoder.context_length", 1, most);
  context = size(meta, "decoder.context_length", 1, most);
  heads_ = size(meta, "encoder.attention.head_count", 1, most);
  const int64_t ff = size(meta, "feed_forward_length", 1, most),
                encoder_layers = size(meta, "encoder.block_count", 1, 512);
  layers = size(meta, "decoder.block_count", 1, 512);
  if (width % heads_ != 0 || size(meta, "decoder.attention.head_count", 1, most) != heads_)
    bad_input("{}: {} heads of the encoder, {} of the decoder and a width of {}", meta.source, heads_,
              meta.integer("whisper.decoder.attention.head_count"), width);
  scale_ = 1 / std::sqrt(static_cast<float>(width / heads_));

  window_ = w.constant("hann", {n_fft}, hann_window(n_fft));
  filters_ = w.constant("mel_filters", {mels, n_fft / 2 + 1}, mel_filters(mels, n_fft, rate, 0, highest));
  const Weights enc = w.under("enc."), dec = w.under("dec.");
  conv1_ = {enc("conv1", {width, 3 * mels}), enc.bias("conv1", {width})};
  conv2_ = {enc("conv2", {width, 3 * width}), enc.bias("conv2", {width})};
  encoder_positions_ = enc("position_embd", {positions, width});
  for (int64_t i = 0; i < encoder_layers; ++i) encoder_.push_back(load_layer(enc.layer(i), ff, false));
  encoder_norm_ = load_norm(enc, "output_norm");
  embed_ = w("token_embd", {vocabulary, width});
  decoder_positions_ = dec("position_embd", {context, width});
  for (int64_t i = 0; i < layers; ++i) decoder_.push_back(load_layer(dec.layer(i), ff, true));
  decoder_norm_ = load_norm(dec, "output_norm");
  kv.assign(static_cast<size_t>(layers), {heads_, width / heads_, width / heads_});
  cross_kv = kv;
  read_alignment_heads(meta);
}

// Without a list: all heads of the upper half of the layers, as the original has it.
void Whisper::read_alignment_heads(const Meta& meta) {
  const char* key = "whisper.alignment_heads";
  if (!meta.has(key)) {
    for (int64_t layer = layers / 2; layer < layers; ++layer)
      for (int64_t head = 0; head < heads_; ++head) alignment_heads.emplace_back(layer, head);
    return;
  }
  const MetaInts& numbers = meta.integers(key);
  if (numbers.empty() || numbers.size() % 2 != 0)
    bad_input("{}: {} has {} numbers, not pairs of layer and head", meta.source, key, numbers.size());
  for (size_t i = 0; i < numbers.size(); i += 2) {
    if (numbers[i] < 0 || numbers[i] >= layers || numbers[i + 1] < 0 || numbers[i + 1] >= heads_)
      bad_input("{}: {} names head {} of layer {}; there are {} heads and {} layers", meta.source, key, numbers[i + 1],
                numbers[i], heads_, layers);
    alignment_heads.emplace_back(numbers[i], numbers[i + 1]);
  }
  std::sort(alignment_heads.begin(), alignment_heads.end());
  alignment_heads.erase(std::unique(alignment_heads.begin(), alignment_heads.end()), alignment_heads.end());
}

Tensor Whisper::heads_of(Tensor x, Location at) const { return split_heads(x, heads_, at); }

std::pair<Tensor, Tensor> Whisper::encode(EncoderInputs& s) const {
  Tensor energy = linear(power_spectrum(s.samples, window_, hop), filters_);  // [frame, mel]
  auto [features, peak] = log_mel(energy, s.peak);
  return {encode_features(features, s), peak};
}

Tensor Whisper::encode_features(Tensor features, EncoderInputs& s) const {
  Scope enc("enc");
  Tensor x = gelu_erf(add(conv1d(features, conv1_.w, 3, 1, 1), conv1_.b));
  x = gelu_erf(add(conv1d(x, conv2_.w, 3, 2, 1), conv2_.b));
  x = x + rows(encoder_positions_, s.index);  // [position, width]
  for (size_t i = 0; i < encoder_.size(); ++i) {
    Scope blk("blk", static_cast<int>(i));
    const Layer& w = encoder_[i];
    Tensor h = w.self.norm(x);
    auto [keys, values] = kv_pack(heads_of(w.self.k(h)), heads_of(w.self.v(h)), s.packed);
    x = x + w.self.o(merge_heads(attend(heads_of(w.self.q(h)), keys, values, s.self, scale_)));
    x = x + w.down(gelu_erf(w.up(w.ffn_norm(x))));
  }
  x = encoder_norm_(x);
  for (size_t i = 0; i < decoder_.size(); ++i) {
    Scope blk("cross", static_cast<int>(i));
    const Attention& w = decoder_[i].cross;
    kv_append(s.cross_kv[i], heads_of(w.k(x)), heads_of(w.v(x)), s.cross);
  }
  return x;
}

Tensor Whisper::decode(Inputs& s, std::vector<Tensor>* weights) const {
  Tensor x = rows(embed_, s.tokens) + rows(decoder_positions_, s.pos);
  for (size_t i = 0; i < decoder_.size(); ++i) {
    Scope blk("blk", static_cast<int>(i));
    const Layer& w = decoder_[i];
    Tensor h = w.self.norm(x);
    auto [keys, values] = kv_append(s.kv[i], heads_of(w.self.k(h)), heads_of(w.self.v(h)), s.mask);
    x = x + w.self.o(merge_heads(attend(heads_of(w.self.q(h)), keys, values, s.mask, scale_)));
    Tensor q = heads_of(w.cross.q(w.cross.norm(x)));
    x = x + w.cross.o(merge_heads(attend(q, s.cross_kv[i].keys, s.cross_kv[i].values, s.cross, scale_)));
    x = x + w.down(gelu_erf(w.up(w.ffn_norm(x))));
    if (!weights) continue;
    std::vector<int64_t> chosen;
    for (const auto& [layer, head] : alignment_heads)
      if (layer == static_cast<int64_t>(i)) chosen.push_back(head);
    if (!chosen.empty()) weights->push_back(attend_weights(q, s.cross_kv[i].keys, s.cross, positions, scale_, chosen));
  }
  return linear(decoder_norm_(rows(x, s.wanted)), embed_);
}

Tensor Whisper::logits(Inputs& s) const {
  Scope dec("dec");
  return decode(s, nullptr);
}

std::vector<Tensor> Whisper::align(Inputs& s) const {
  Scope dec("dec");
  std::vector<Tensor> weights, outputs = {decode(s, &weights)};
  outputs.insert(outputs.end(), weights.begin(), weights.end());
  return outputs;
}

}  // namespace consonant
