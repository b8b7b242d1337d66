// SPDX-License-Identifier: Apache-2.0
#include "models/qwen3_tts_codec.hpp"

#include <fmt/format.h>

#include <cmath>

#include "models/config.hpp"
#include "ops/ops.hpp"

namespace consonant {

namespace {

const std::string keys = "qwen3tts_codec.";
constexpr int64_t most = 1 << 16;
constexpr float convnext_epsilon = 1e-6f;

int64_t size(const Meta& meta, const std::string& key, int64_t greatest = most) {
  const int64_t n = meta.integer(keys + key);
  if (n < 1 || n > greatest) bad_input("{}: {}{} is {}, not 1 to {}", meta.source, keys, key, n, greatest);
  return n;
}

const MetaInts& rates(const Meta& meta, const std::string& key) {
  const MetaInts& numbers = meta.integers(keys + key);
  bool fit = !numbers.empty() && numbers.size() <= 16;
  for (const int64_t n : numbers) fit = fit && n >= 1 && n <= 64;
  if (!fit) bad_input("{}: {}{} isn't up to 16 numbers from 1 to 64", meta.source, keys, key);
  return numbers;
}

// Sizes that only the file knows; where a tensor is missing or has another rank, asking for it by these says so.
Sizes sizes_of(const ModelFile& file, const std::string& name, size_t rank) {
  const StoredTensor* t = file.find(name);
  return t && t->sizes.size() == rank ? t->sizes : Sizes(rank, 1);
}

// A convolution of one tap as the matrix that it is.
Tensor pointwise(const Weights& w, const std::string& name, int64_t outputs, int64_t inputs) {
  return w.changed(name, {outputs, inputs, 1}, {outputs, inputs}, taps_first);
}

}  // namespace

CodecDecoder::CodecDecoder(const ModelFile& file, const Weights& weights) {
  const Meta& meta = *file.meta;
  rate = size(meta, "output_sample_rate", 1 << 20);
  samples_per_frame = size(meta, "decode_upsample");
  codebooks = size(meta, "dec.n_quantizers", 256);
  codebook_size = size(meta, "dec.codebook_size");
  width_ = size(meta, "dec.d_model");
  heads_ = size(meta, "dec.n_heads");
  head_ = size(meta, "dec.head_dim");
  window_ = size(meta, "dec.sliding_window");
  eps_ = static_cast<float>(positive_number(meta, keys + "dec.rms_norm_eps", 1e-5));
  rotary_ = {.dims = head_, .base = positive_number(meta, keys + "dec.rope_theta", 10000), .neighbours = false};
  const int64_t latent = size(meta, "dec.latent_dim");
  int64_t samples = 1;
  for (const int64_t r : rates(meta, "dec.upsampling_ratios")) samples *= r;
  for (const int64_t r : rates(meta, "dec.upsample_rates")) samples *= r;
  if (samples != samples_per_frame)
    bad_input("{}: the rates make {} samples of a frame, and {}decode_upsample is {}", meta.source, samples, keys,
              samples_per_frame);
  const Sizes out = sizes_of(file, "codec.dec.rvq_first.out_proj_w", 3);
  quantizer_width_ = out[0], codebook_dim_ = out[1];
  const Weights w = weights.under("codec.dec.");
  load_quantizer(w);
  pre_conv_ = CausalConv::load(w, "pre_conv_", "b", {latent, quantizer_width_, 3}, kept);
  load_transformer(w.under("xfmr."), latent, meta);
  load_upsampling(w, latent, meta);
  load_blocks(w, latent, meta);
}

void CodecDecoder::load_quantizer(const Weights& w) {
  codebooks_.push_back(w.named("rvq_first.codebook", {codebook_size, codebook_dim_}));
  for (int64_t i = 0; i + 1 < codebooks; ++i)
    codebooks_.push_back(w.named(fmt::format("rvq_rest.{}.codebook", i), {codebook_size, codebook_dim_}));
  first_out_ = pointwise(w, "rvq_first.out_proj_w", quantizer_width_, codebook_dim_);
  rest_out_ = pointwise(w, "rvq_rest.out_proj_w", quantizer_width_, codebook_dim_);
}

void CodecDecoder::load_transformer(const Weights& w, int64_t latent, const Meta& meta) {
  const int64_t ff = size(meta, "dec.ff_dim"), inner = heads_ * head_, count = size(meta, "dec.n_layers", 512);
  in_ = w.named("in_proj_w", {width_, latent}), in_b_ = w.named("in_proj_b", {width_});
  for (int64_t i = 0; i < count; ++i) {
    const Weights l = w.layer(i);
    layers_.push_back({.attn_norm = l.named("attn_norm_w", {width_}),
                       .wq = l.named("attn_q_w", {inner, width_}),
                       .wk = l.named("attn_k_w", {inner, width_}),
                       .wv = l.named("attn_v_w", {inner, width_}),
                       .wo = l.named("attn_o_w", {width_, inner}),
                       .attn_scale = l.named("attn_ls_w", {width_}),
                       .ffn_norm = l.named("ffn_norm_w", {width_}),
                       .gate = l.named("ffn_gate_w", {ff, width_}),
                       .up = l.named("ffn_up_w", {ff, width_}),
                       .down = l.named("ffn_down_w", {width_, ff}),
                       .ffn_scale = l.named("ffn_ls_w", {width_})});
  }
  norm_ = w.named("norm_w", {width_});
  out_ = w.named("out_proj_w", {latent, width_}), out_b_ = w.named("out_proj_b", {latent});
  kv.assign(layers_.size(), {heads_, head_, head_});
}

void CodecDecoder::load_upsampling(const Weights& w, int64_t latent, const Meta& meta) {
  constexpr int64_t taps = 7;
  for (const int64_t r : rates(meta, "dec.upsampling_ratios")) {
    const Weights u = w.under(fmt::format("up.{}.", upsampling_.size())), cnx = u.under("cnx.");
    ConvNext c;
    c.up = Upsampling::load(u, "tconv_", latent, latent, r, r, kept);
    c.dw = cnx.derived("dw_w", {latent, 1, taps}, "dw_w", {taps * latent}, [=](const std::vector<float>& from) {
      std::vector<float> to(from.size());
      for (int64_t i = 0; i < taps * latent; ++i)
        to[static_cast<size_t>(i % taps * latent + i / taps)] = from[static_cast<size_t>(i)];
      return to;
    });
    c.dw_b = cnx.named("dw_b", {latent});
    c.norm = cnx.named("norm_w", {latent}), c.norm_b = cnx.named("norm_b", {latent});
    c.pw1 = cnx.named("pw1_w", {4 * latent, latent}), c.pw1_b = cnx.named("pw1_b", {4 * latent});
    c.pw2 = cnx.named("pw2_w", {latent, 4 * latent}), c.pw2_b = cnx.named("pw2_b", {latent});
    c.gamma = cnx.named("gamma", {latent});
    c.state = static_cast<int>(kept.size());
    kept.push_back({taps - 1, latent});
    upsampling_.push_back(c);
  }
}

void CodecDecoder::load_blocks(const Weights& w, int64_t latent, const Meta& meta) {
  int64_t n = size(meta, "dec.decoder_dim");
  const MetaInts& strides = rates(meta, "dec.upsample_rates");
  if (n % (int64_t{1} << strides.size()) != 0)
    bad_input("{}: {}dec.decoder_dim is {}, which can't be halved {} times", meta.source, keys, n, strides.size());
  in_conv_ = CausalConv::load(w, "in_conv_", "b", {n, latent, 7}, kept);
  const auto snake_of = [](const Weights& s, const std::string& name, int64_t channels) -> Snake {
    return {s.named(name + "a", {channels}), s.named(name + "b", {channels})};
  };
  for (const int64_t r : strides) {
    const Weights b = w.layer(static_cast<int64_t>(blocks_.size()));
    Block block;
    block.act = snake_of(b, "snake_", n);
    block.up = Upsampling::load(b, "tconv_", n, n / 2, r, 2 * r, kept);
    n /= 2;
    for (const int64_t dilation : {1, 3, 9}) {
      const Weights u = b.under(fmt::format("res.{}.", block.units.size()));
      Unit unit;
      unit.act1 = snake_of(u, "act1_", n), unit.act2 = snake_of(u, "act2_", n);
      unit.conv1 = CausalConv::load(u, "conv1_", "b", {n, n, 7, 1, dilation}, kept);
      unit.conv2 = CausalConv::load(u, "conv2_", "b", {n, n, 1}, kept);
      block.units.push_back(unit);
    }
    blocks_.push_back(block);
  }
  out_snake_ = snake_of(w, "out_snake_", n);
  out_conv_ = CausalConv::load(w, "out_conv_", "b", {1, n, 7}, kept);
}

Tensor CodecDecoder::dequantized(const std::vector<Tensor>& codes) const {
  Scope scope("rvq");
  const Tensor first = linear(rows(codebooks_[0], codes[0]), first_out_);
  if (codes.size() == 1) return first;
  Tensor rest = rows(codebooks_[1], codes[1]);
  for (size_t i = 2; i < codes.size(); ++i) rest = rest + rows(codebooks_[i], codes[i]);
  return first + linear(rest, rest_out_);
}

Tensor CodecDecoder::transformed(Tensor x, StreamInputs& s) const {
  x = add(linear(x, in_), in_b_);
  const Mask seen = s.mask.sliding(window_);
  for (size_t i = 0; i < layers_.size(); ++i) {
    Scope blk("blk", static_cast<int>(i));
    const Layer& w = layers_[i];
    Tensor h = rms_norm(x, w.attn_norm, eps_);
    Tensor q = rope(split_heads(linear(h, w.wq), heads_), s.mask.pos, rotary_);  // [frame, head, dim]
    Tensor k = rope(split_heads(linear(h, w.wk), heads_), s.mask.pos, rotary_);
    auto [K, V] = kv_append(s.kv[i], k, split_heads(linear(h, w.wv), heads_), s.mask);
    Tensor y = attend(q, K, V, seen, 1 / std::sqrt(static_cast<float>(head_)));
    x = x + linear(merge_heads(y), w.wo) * w.attn_scale;
    h = rms_norm(x, w.ffn_norm, eps_);
    x = x + linear(silu(linear(h, w.gate)) * linear(h, w.up), w.down) * w.ffn_scale;
  }
  return add(linear(rms_norm(x, norm_, eps_), out_), out_b_);
}

Tensor CodecDecoder::upsampled(const ConvNext& w, Tensor x, StreamInputs& s) const {
  x = w.up(x, s);
  Tensor h = carry(s.kept[static_cast<size_t>(w.state)], x, s.mask.pos, s.slot);
  h = layer_norm(depthwise(h, w.dw, w.dw_b), w.norm, w.norm_b, convnext_epsilon);
  h = add(linear(gelu_erf(add(linear(h, w.pw1), w.pw1_b)), w.pw2), w.pw2_b);
  return x + h * w.gamma;
}

Tensor CodecDecoder::decoded(const Block& w, Tensor x, StreamInputs& s) const {
  x = w.up(snake(x, w.act.a, w.act.b), s);
  for (size_t i = 0; i < w.units.size(); ++i) {
    Scope res("res", static_cast<int>(i));
    const Unit& u = w.units[i];
    Tensor h = u.conv1(snake(x, u.act1.a, u.act1.b), s);
    x = x + u.conv2(snake(h, u.act2.a, u.act2.b), s);
  }
  return x;
}

Tensor CodecDecoder::samples(const std::vector<Tensor>& codes, StreamInputs& s) const {
  Scope dec("dec");
  Tensor x = pre_conv_(dequantized(codes), s);  // [frame, latent]
  {
    Scope xfmr("xfmr");
    x = transformed(x, s);
  }
  for (size_t i = 0; i < upsampling_.size(); ++i) {
    Scope up("up", static_cast<int>(i));
    x = upsampled(upsampling_[i], x, s);
  }
  x = in_conv_(x, s);
  for (size_t i = 0; i < blocks_.size(); ++i) {
    Scope blk("blk", static_cast<int>(i));
    x = decoded(blocks_[i], x, s);
  }
  return clamp(out_conv_(snake(x, out_snake_.a, out_snake_.b), s), -1, 1);
}

bool CodecEncoder::is_in(const ModelFile& file) { return file.find("codec.enc.seanet.init_w"); }

// Mimi's numbers are conventions: no file has its heads, its rotation or its epsilon, and strides are halves of
// kernels.
CodecEncoder::CodecEncoder(const ModelFile& file, const Weights& weights) {
  const Meta& meta = *file.meta;
  rate = size(meta, "input_sample_rate", 1 << 20);
  samples_per_frame = size(meta, "encode_downsample");
  codebooks = size(meta, "dec.n_quantizers", 256);
  heads_ = meta.integer(keys + "enc.n_heads", 8);
  eps_ = static_cast<float>(positive_number(meta, keys + "enc.norm_eps", 1e-5));
  const Weights w = weights.under("codec.enc."), seanet = w.under("seanet.");
  int64_t n = sizes_of(file, "codec.enc.seanet.init_w", 3)[0], samples = 2;
  init_ = CausalConv::load(seanet, "init_", "b", {n, 1, 7}, kept);
  for (int i = 0; file.find(fmt::format("codec.enc.seanet.ds.{}.w", i)); ++i) {
    const int64_t stride = sizes_of(file, fmt::format("codec.enc.seanet.ds.{}.w", i), 3)[2] / 2;
    if (stride < 1 || stride > 64) bad_input("{}: codec.enc.seanet.ds.{}.w has a stride of {}", meta.source, i, stride);
    const Weights b = seanet.under(fmt::format("blk.{}.", i)), d = seanet.under(fmt::format("ds.{}.", i));
    Block block;
    block.shorten = CausalConv::load(b, "short_", "b", {n / 2, n, 3}, kept);
    block.expand = CausalConv::load(b, "exp_", "b", {n, n / 2, 1}, kept);
    block.down = CausalConv::load(d, "", "b", {2 * n, n, 2 * stride, stride}, kept);
    blocks_.push_back(block);
    n *= 2, samples *= stride;
    if (n > most) bad_input("{}: {} channels after {} strides", meta.source, n, i + 1);
  }
  if (samples != samples_per_frame)
    bad_input("{}: the encoder's strides make a frame of {} samples, and {}encode_downsample is {}", meta.source,
              samples, keys, samples_per_frame);
  width_ = sizes_of(file, "codec.enc.seanet.final_w", 3)[0];
  if (heads_ < 1 || width_ % (2 * heads_) != 0)
    bad_input("{}: {} heads of an encoder that is {} wide", meta.source, heads_, width_);
  rotary_ = {
      .dims = width_ / heads_, .base = positive_number(meta, keys + "enc.rope_theta", 10000), .neighbours = false};
  final_ = CausalConv::load(seanet, "final_", "b", {width_, n, 3}, kept);
  for (int64_t i = 0; file.find(fmt::format("codec.enc.xfmr.blk.{}.fc1_w", i)); ++i) {
    const Weights l = w.under("xfmr.").layer(i);
    const int64_t ff = sizes_of(file, fmt::format("codec.enc.xfmr.blk.{}.fc1_w", i), 2)[0];
    const auto square = [&](const char* name) { return l.named(name, {width_, width_}); };
    const auto vector = [&](const char* name) { return l.named(name, {width_}); };
    layers_.push_back({vector("norm1_w"), vector("norm1_b"), square("attn_q_w"), square("attn_k_w"), square("attn_v_w"),
                       square("attn_o_w"), vector("attn_ls"), vector("norm2_w"), vector("norm2_b"),
                       l.named("fc1_w", {ff, width_}), l.named("fc2_w", {width_, ff}), vector("ffn_ls")});
  }
  kv.assign(layers_.size(), {heads_, width_ / heads_, width_ / heads_});
  downsample_ = CausalConv::load(w, "ds_", "", {width_, width_, 4, 2, 1, Edge::repeat}, kept);
  semantic_ = load_quantizer(file, w, "rvq.sem.", 1);
  acoustic_ = load_quantizer(file, w, "rvq.ac.", codebooks - 1);
}

CodecEncoder::Quantizer CodecEncoder::load_quantizer(const ModelFile& file, const Weights& w, const std::string& branch,
                                                     int64_t count) const {
  Quantizer q;
  const int64_t dim = sizes_of(file, "codec.enc." + branch + "in_w", 3)[0];
  q.in = pointwise(w, branch + "in_w", dim, width_);
  for (int64_t i = 0; i < count; ++i) {
    const std::string name = branch + (branch == "rvq.sem." ? "cb" : fmt::format("{}.cb", i));
    const int64_t entries = sizes_of(file, "codec.enc." + name, 2)[0];
    const auto squares = [dim](const std::vector<float>& vectors) {
      std::vector<float> halves;
      for (size_t at = 0; at < vectors.size(); at += static_cast<size_t>(dim)) {
        double sum = 0;
        for (size_t j = at; j < at + static_cast<size_t>(dim); ++j) sum += double{vectors[j]} * vectors[j];
        halves.push_back(static_cast<float>(-sum / 2));
      }
      return halves;
    };
    q.codebooks.push_back(
        {w.named(name, {entries, dim}), w.derived(name, {entries, dim}, name + ".half_squares", {entries}, squares)});
  }
  return q;
}

Tensor CodecEncoder::heard(Tensor samples, StreamInputs& s) const {
  Scope seanet("seanet");
  Tensor x = init_(samples, s);
  for (size_t i = 0; i < blocks_.size(); ++i) {
    Scope blk("blk", static_cast<int>(i));
    const Block& w = blocks_[i];
    x = x + w.expand(elu(w.shorten(elu(x), s)), s);
    x = w.down(elu(x), s);
  }
  return final_(elu(x), s);
}

Tensor CodecEncoder::transformed(Tensor x, StreamInputs& s) const {
  const auto heads_of = [&](Tensor h, const Tensor& w) { return split_heads(linear(h, w), heads_); };
  for (size_t i = 0; i < layers_.size(); ++i) {
    Scope blk("blk", static_cast<int>(i));
    const Layer& w = layers_[i];
    Tensor h = layer_norm(x, w.norm1, w.norm1_b, eps_);
    auto [K, V] = kv_append(s.kv[i], rope(heads_of(h, w.wk), s.mask.pos, rotary_), heads_of(h, w.wv), s.mask);
    Tensor y = attend(rope(heads_of(h, w.wq), s.mask.pos, rotary_), K, V, s.mask,
                      1 / std::sqrt(static_cast<float>(width_ / heads_)));
    x = x + linear(merge_heads(y), w.wo) * w.attn_scale;
    h = layer_norm(x, w.norm2, w.norm2_b, eps_);
    x = x + linear(gelu_erf(linear(h, w.fc1)), w.fc2) * w.ffn_scale;
  }
  return x;
}

// The nearest vector c has the greatest x c - |c|^2 / 2.
std::vector<Tensor> CodecEncoder::codes(Tensor samples, StreamInputs& s) const {
  Scope enc("enc");
  Tensor x = heard(samples, s);
  {
    Scope xfmr("xfmr");
    x = transformed(x, s);
  }
  x = downsample_(x, s);  // [frame, width]
  std::vector<Tensor> codes;
  for (const Quantizer* q : {&semantic_, &acoustic_}) {
    Scope rvq("rvq", q == &semantic_ ? 0 : 1);
    Tensor rest = linear(x, q->in);
    for (size_t i = 0; i < q->codebooks.size(); ++i) {
      const Codebook& c = q->codebooks[i];
      codes.push_back(argmax(add(linear(rest, c.vectors), c.half_squares)));
      if (i + 1 < q->codebooks.size()) rest = rest + scale(rows(c.vectors, codes.back()), -1);
    }
  }
  return codes;
}

}  // namespace consonant
