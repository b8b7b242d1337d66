// SPDX-License-Identifier: Apache-2.0
#include "formats/names/qwen3_tts_codec.hpp"

#include <fmt/format.h>

#include "base/error.hpp"

namespace consonant {

namespace {

using Names = std::vector<CodecName>;

// A list of positive numbers of the configuration.
MetaInts counts(const HfConfig& config, std::string_view key) {
  const Json* list = config.find(key);
  MetaInts numbers;
  if (list && list->is_array())
    for (const Json& n : *list)
      if (n.is_number_integer() && n.get<int64_t>() >= 1 && n.get<int64_t>() <= 4096)
        numbers.push_back(n.get<int64_t>());
  if (numbers.empty() || numbers.size() != list->size() || numbers.size() > 16)
    bad_input("{}: \"{}\" isn't a list of up to 16 numbers from 1 to 4096", config.source(), key);
  return numbers;
}

void add_affine(Names& names, const std::string& gguf, const std::string& hf) {
  names.push_back({gguf + "w", hf + ".weight"});
  names.push_back({gguf + "b", hf + ".bias"});
}

void add_decoder_transformer(Names& names, int64_t layers) {
  const std::string gguf = "codec.dec.xfmr.", hf = "decoder.pre_transformer.";
  add_affine(names, gguf + "in_proj_", hf + "input_proj");
  for (int64_t i = 0; i < layers; ++i) {
    const std::string to = fmt::format("{}blk.{}.", gguf, i), from = fmt::format("{}layers.{}.", hf, i);
    names.push_back({to + "attn_norm_w", from + "input_layernorm.weight"});
    for (const char* part : {"q", "k", "v", "o"})
      names.push_back({fmt::format("{}attn_{}_w", to, part), fmt::format("{}self_attn.{}_proj.weight", from, part)});
    names.push_back({to + "attn_ls_w", from + "self_attn_layer_scale.scale"});
    names.push_back({to + "ffn_norm_w", from + "post_attention_layernorm.weight"});
    for (const char* part : {"gate", "up", "down"})
      names.push_back({fmt::format("{}ffn_{}_w", to, part), fmt::format("{}mlp.{}_proj.weight", from, part)});
    names.push_back({to + "ffn_ls_w", from + "mlp_layer_scale.scale"});
  }
  names.push_back({gguf + "norm_w", hf + "norm.weight"});
  add_affine(names, gguf + "out_proj_", hf + "output_proj");
}

void add_snake(Names& names, const std::string& gguf, const std::string& hf) {
  names.push_back({gguf + "a", hf + ".alpha"});
  names.push_back({gguf + "b", hf + ".beta"});
}

void add_decoder(Names& names, const HfConfig& config, int64_t quantizers) {
  const std::string quantizer = "decoder.quantizer.";
  names.push_back({"codec.dec.rvq_first.codebook", quantizer + "rvq_first.vq.layers.0._codebook.", true});
  for (int64_t i = 0; i + 1 < quantizers; ++i)
    names.push_back({fmt::format("codec.dec.rvq_rest.{}.codebook", i),
                     fmt::format("{}rvq_rest.vq.layers.{}._codebook.", quantizer, i), true});
  for (const char* branch : {"rvq_first", "rvq_rest"})
    names.push_back(
        {fmt::format("codec.dec.{}.out_proj_w", branch), fmt::format("{}{}.output_proj.weight", quantizer, branch)});
  add_affine(names, "codec.dec.pre_conv_", "decoder.pre_conv.conv");
  add_decoder_transformer(names, config.count("num_hidden_layers"));
  for (size_t s = 0; s < counts(config, "upsampling_ratios").size(); ++s) {
    const std::string to = fmt::format("codec.dec.up.{}.", s), from = fmt::format("decoder.upsample.{}.", s);
    add_affine(names, to + "tconv_", from + "0.conv");
    add_affine(names, to + "cnx.dw_", from + "1.dwconv.conv");
    add_affine(names, to + "cnx.norm_", from + "1.norm");
    add_affine(names, to + "cnx.pw1_", from + "1.pwconv1");
    add_affine(names, to + "cnx.pw2_", from + "1.pwconv2");
    names.push_back({to + "cnx.gamma", from + "1.gamma"});
  }
  add_affine(names, "codec.dec.in_conv_", "decoder.decoder.0.conv");
  const size_t blocks = counts(config, "upsample_rates").size();
  for (size_t b = 0; b < blocks; ++b) {
    const std::string to = fmt::format("codec.dec.blk.{}.", b), from = fmt::format("decoder.decoder.{}.block.", b + 1);
    add_snake(names, to + "snake_", from + "0");
    add_affine(names, to + "tconv_", from + "1.conv");
    for (int r = 0; r < 3; ++r) {
      const std::string unit = fmt::format("{}res.{}.", to, r), own = fmt::format("{}{}.", from, r + 2);
      add_snake(names, unit + "act1_", own + "act1");
      add_affine(names, unit + "conv1_", own + "conv1.conv");
      add_snake(names, unit + "act2_", own + "act2");
      add_affine(names, unit + "conv2_", own + "conv2.conv");
    }
  }
  add_snake(names, "codec.dec.out_snake_", fmt::format("decoder.decoder.{}", blocks + 1));
  add_affine(names, "codec.dec.out_conv_", fmt::format("decoder.decoder.{}.conv", blocks + 2));
}

// Of each stride the list of layers has a residual unit, an activation and a convolution.
void add_encoder(Names& names, const HfConfig& config, int64_t quantizers) {
  const std::string layers = "encoder.encoder.layers.", seanet = "codec.enc.seanet.";
  const size_t strides = counts(config, "upsampling_ratios").size();
  add_affine(names, seanet + "init_", layers + "0.conv");
  for (size_t i = 0; i < strides; ++i) {
    add_affine(names, fmt::format("{}blk.{}.short_", seanet, i), fmt::format("{}{}.block.1.conv", layers, 1 + 3 * i));
    add_affine(names, fmt::format("{}blk.{}.exp_", seanet, i), fmt::format("{}{}.block.3.conv", layers, 1 + 3 * i));
    add_affine(names, fmt::format("{}ds.{}.", seanet, i), fmt::format("{}{}.conv", layers, 3 + 3 * i));
  }
  add_affine(names, seanet + "final_", fmt::format("{}{}.conv", layers, 2 + 3 * strides));
  for (int64_t i = 0; i < config.count("num_hidden_layers"); ++i) {
    const std::string to = fmt::format("codec.enc.xfmr.blk.{}.", i),
                      from = fmt::format("encoder.encoder_transformer.layers.{}.", i);
    add_affine(names, to + "norm1_", from + "input_layernorm");
    for (const char* part : {"q", "k", "v", "o"})
      names.push_back({fmt::format("{}attn_{}_w", to, part), fmt::format("{}self_attn.{}_proj.weight", from, part)});
    names.push_back({to + "attn_ls", from + "self_attn_layer_scale.scale"});
    add_affine(names, to + "norm2_", from + "post_attention_layernorm");
    names.push_back({to + "fc1_w", from + "mlp.fc1.weight"});
    names.push_back({to + "fc2_w", from + "mlp.fc2.weight"});
    names.push_back({to + "ffn_ls", from + "mlp_layer_scale.scale"});
  }
  names.push_back({"codec.enc.ds_w", "encoder.downsample.conv.weight"});
  const std::string semantic = "encoder.quantizer.semantic_residual_vector_quantizer.",
                    acoustic = "encoder.quantizer.acoustic_residual_vector_quantizer.";
  names.push_back({"codec.enc.rvq.sem.in_w", semantic + "input_proj.weight"});
  names.push_back({"codec.enc.rvq.ac.in_w", acoustic + "input_proj.weight"});
  names.push_back({"codec.enc.rvq.sem.cb", semantic + "layers.0.codebook.", true});
  for (int64_t i = 0; i + 1 < quantizers; ++i)
    names.push_back(
        {fmt::format("codec.enc.rvq.ac.{}.cb", i), fmt::format("{}layers.{}.codebook.", acoustic, i), true});
}

}  // namespace

std::vector<CodecName> qwen3_tts_codec_names(const HfConfig& decoder, const HfConfig& encoder, int64_t quantizers) {
  Names names;
  add_decoder(names, decoder, quantizers);
  add_encoder(names, encoder, quantizers);
  return names;
}

bool is_spare_codec_tensor(std::string_view hf) {
  return hf.ends_with(".codebook.initialized") ||
         (hf.starts_with("decoder.quantizer.") && hf.ends_with(".input_proj.weight")) ||
         (hf.starts_with("encoder.quantizer.") && hf.ends_with(".output_proj.weight")) ||
         (hf.starts_with("encoder.quantizer.") && hf.find("_residual_vector_quantizer.layers.") != hf.npos);
}

void add_qwen3_tts_codec_metadata(const HfConfig& config, Meta& meta) {
  const HfConfig decoder = config.object("decoder_config"), encoder = config.object("encoder_config");
  const std::string codec = "qwen3tts_codec.", dec = codec + "dec.";
  for (const char* key : {"input_sample_rate", "output_sample_rate"}) add_u32(meta, codec + key, config.count(key));
  add_u32(meta, codec + "encode_downsample", config.count("encode_downsample_rate"));
  add_u32(meta, codec + "decode_upsample", config.count("decode_upsample_rate"));
  add_f32(meta, codec + "frame_rate", encoder.number("frame_rate", 12.5));
  for (const auto& [key, hf] : {std::pair{"n_layers", "num_hidden_layers"},
                                {"d_model", "hidden_size"},
                                {"n_heads", "num_attention_heads"},
                                {"head_dim", "head_dim"},
                                {"ff_dim", "intermediate_size"},
                                {"n_quantizers", "num_quantizers"},
                                {"codebook_size", "codebook_size"},
                                {"latent_dim", "latent_dim"},
                                {"decoder_dim", "decoder_dim"},
                                {"sliding_window", "sliding_window"},
                                {"max_pos", "max_position_embeddings"}})
    add_u32(meta, dec + key, decoder.count(hf));
  add_f32(meta, dec + "rope_theta", decoder.number("rope_theta", 10000));
  add_f32(meta, dec + "rms_norm_eps", decoder.number("rms_norm_eps", 1e-5));
  for (const char* key : {"upsample_rates", "upsampling_ratios"})
    meta.add(dec + key, {MetaType::i32, true, counts(decoder, key)});
  add_u32(meta, codec + "enc.n_heads", encoder.count("num_attention_heads"));
  add_f32(meta, codec + "enc.rope_theta", encoder.number("rope_theta", 10000));
  add_f32(meta, codec + "enc.norm_eps", encoder.number("norm_eps", 1e-5));
}

}  // namespace consonant
