// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "formats/hf_config.hpp"
#include "formats/meta.hpp"

namespace consonant {

// The codec of Qwen3-TTS, 12 frames and a half a second, in GGUF's terms: architecture "qwen3tts_tokenizer".
//
// Keys, under "qwen3tts_codec.":
//   input_sample_rate, output_sample_rate, encode_downsample, decode_upsample, frame_rate
//   dec.n_layers, dec.d_model, dec.n_heads, dec.head_dim, dec.ff_dim, dec.sliding_window, dec.max_pos, dec.rope_theta,
//   dec.rms_norm_eps, dec.n_quantizers, dec.codebook_size, dec.latent_dim, dec.decoder_dim, dec.upsampling_ratios,
//   dec.upsample_rates
//   enc.n_heads, enc.rope_theta, enc.norm_eps     (8, 10000 and 1e-5 where a file doesn't say)
//
// Tensors begin with "codec.dec." and "codec.enc."; a file without the latter can't encode. Convolutions are
// [outputs, inputs, taps], transposed ones [inputs, outputs, taps]. Codebooks are vectors, not sums and counts.

// A tensor by both names. Of a codebook `hf` is the prefix of the sum of its vectors' members and of their number.
struct CodecName {
  std::string gguf, hf;
  bool codebook = false;
};

// Those of a folder's configuration, in the order in which GGUF has them: decoder, encoder.
std::vector<CodecName> qwen3_tts_codec_names(const HfConfig& decoder, const HfConfig& encoder, int64_t quantizers);

// Whether a folder's tensor is one that no run needs: projections that only training uses, quantisers beyond those in
// use, flags.
bool is_spare_codec_tensor(std::string_view hf);

void add_qwen3_tts_codec_metadata(const HfConfig& config, Meta& meta);

}  // namespace consonant
