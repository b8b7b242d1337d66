// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "models/language_model.hpp"
#include "models/stream_convolutions.hpp"
#include "ops/rope_angles/rope_angles.hpp"

namespace consonant {

// Qwen3-TTS's codec (Qwen team 2026; its encoder is Mimi's, Defossez et al. 2024): 16 codes stand for 80 ms of sound at
// 24 kHz. Both directions are causal, and a stream may be cut into steps anywhere between frames.

// Residual vector quantisation (Zeghidour et al. 2021) in two branches that start from the same vector: the first code
// alone, the others one after the other.

// Codes to sound.
class CodecDecoder {
 public:
  CodecDecoder(const ModelFile& file, const Weights& weights);

  // codes [frame] i32, one value a codebook -> samples [frame * samples_per_frame, 1] from -1 to 1. A position of `s`
  // is a frame; codes lie in 0 ... codebook_size - 1.
  Tensor samples(const std::vector<Tensor>& codes, StreamInputs& s) const;

  int64_t rate = 0, samples_per_frame = 0, codebooks = 0, codebook_size = 0;
  std::vector<KvShape> kv;     // an attention layer each
  std::vector<KeptRows> kept;  // a convolution each

 private:
  struct Layer {
    Tensor attn_norm, wq, wk, wv, wo, attn_scale, ffn_norm, gate, up, down, ffn_scale;
  };
  struct ConvNext {
    Upsampling up;
    Tensor dw, dw_b, norm, norm_b, pw1, pw1_b, pw2, pw2_b, gamma;
    int state;
  };
  struct Snake {
    Tensor a, b;
  };
  struct Unit {
    Snake act1, act2;
    CausalConv conv1, conv2;
  };
  struct Block {
    Snake act;
    Upsampling up;
    std::vector<Unit> units;
  };

  void load_quantizer(const Weights& w);
  void load_transformer(const Weights& w, int64_t latent, const Meta& meta);
  void load_upsampling(const Weights& w, int64_t latent, const Meta& meta);
  void load_blocks(const Weights& w, int64_t latent, const Meta& meta);
  Tensor dequantized(const std::vector<Tensor>& codes) const;
  Tensor transformed(Tensor x, StreamInputs& s) const;
  Tensor upsampled(const ConvNext& w, Tensor x, StreamInputs& s) const;
  Tensor decoded(const Block& w, Tensor x, StreamInputs& s) const;

  int64_t width_ = 0, heads_ = 0, head_ = 0, window_ = 0, codebook_dim_ = 0, quantizer_width_ = 0;
  float eps_ = 0;
  Rotary rotary_;
  std::vector<Tensor> codebooks_;
  Tensor first_out_, rest_out_;
  CausalConv pre_conv_, in_conv_, out_conv_;
  Tensor in_, in_b_, norm_, out_, out_b_;
  std::vector<Layer> layers_;
  std::vector<ConvNext> upsampling_;
  std::vector<Block> blocks_;
  Snake out_snake_;
};

// Sound to codes.
class CodecEncoder {
 public:
  // Whether the file has an encoder: older ones don't.
  static bool is_in(const ModelFile& file);
  // Of as many codebooks as the decoder reads.
  CodecEncoder(const ModelFile& file, const Weights& weights);

  // samples [sample, 1] -> codes [frame] i32, one value a codebook. A position of `s` is half a frame: there are
  // positions(samples) of them. Steps but the last have whole frames.
  std::vector<Tensor> codes(Tensor samples, StreamInputs& s) const;

  int64_t positions(int64_t samples) const { return (samples + samples_per_frame / 2 - 1) / (samples_per_frame / 2); }

  int64_t rate = 0, samples_per_frame = 0, codebooks = 0;
  std::vector<KvShape> kv;
  std::vector<KeptRows> kept;

 private:
  struct Layer {
    Tensor norm1, norm1_b, wq, wk, wv, wo, attn_scale, norm2, norm2_b, fc1, fc2, ffn_scale;
  };
  struct Block {
    CausalConv shorten, expand, down;
  };
  struct Codebook {
    Tensor vectors, half_squares;  // -|c|^2 / 2
  };
  struct Quantizer {
    Tensor in;
    std::vector<Codebook> codebooks;
  };

  Quantizer load_quantizer(const ModelFile& file, const Weights& w, const std::string& branch, int64_t count) const;
  Tensor heard(Tensor samples, StreamInputs& s) const;
  Tensor transformed(Tensor x, StreamInputs& s) const;

  int64_t width_ = 0, heads_ = 0;
  float eps_ = 0;
  Rotary rotary_;
  CausalConv init_, final_, downsample_;
  std::vector<Block> blocks_;
  std::vector<Layer> layers_;
  Quantizer semantic_, acoustic_;
};

}  // namespace consonant
