// SPDX-License-Identifier: Apache-2.0
#include "formats/names/whisper.hpp"

#include <algorithm>

#include "formats/names/names.hpp"
#include "formats/whisper/tensors.hpp"

namespace consonant {

// Hugging Face's names stand without "model." and whisper.cpp's are those of the original checkpoints.
const std::vector<WhisperName>& whisper_names() {
  static const std::vector<WhisperName> names = {
      {"enc.conv1", "encoder.conv1", "encoder.conv1"},
      {"enc.conv2", "encoder.conv2", "encoder.conv2"},
      {"enc.output_norm", "encoder.layer_norm", "encoder.ln_post"},
      {"dec.output_norm", "decoder.layer_norm", "decoder.ln"},
      {"enc.blk.{}.attn_norm", "encoder.layers.{}.self_attn_layer_norm", "encoder.blocks.{}.attn_ln"},
      {"enc.blk.{}.attn_q", "encoder.layers.{}.self_attn.q_proj", "encoder.blocks.{}.attn.query"},
      {"enc.blk.{}.attn_k", "encoder.layers.{}.self_attn.k_proj", "encoder.blocks.{}.attn.key"},
      {"enc.blk.{}.attn_v", "encoder.layers.{}.self_attn.v_proj", "encoder.blocks.{}.attn.value"},
      {"enc.blk.{}.attn_output", "encoder.layers.{}.self_attn.out_proj", "encoder.blocks.{}.attn.out"},
      {"enc.blk.{}.ffn_norm", "encoder.layers.{}.final_layer_norm", "encoder.blocks.{}.mlp_ln"},
      {"enc.blk.{}.ffn_up", "encoder.layers.{}.fc1", "encoder.blocks.{}.mlp.0"},
      {"enc.blk.{}.ffn_down", "encoder.layers.{}.fc2", "encoder.blocks.{}.mlp.2"},
      {"dec.blk.{}.attn_norm", "decoder.layers.{}.self_attn_layer_norm", "decoder.blocks.{}.attn_ln"},
      {"dec.blk.{}.attn_q", "decoder.layers.{}.self_attn.q_proj", "decoder.blocks.{}.attn.query"},
      {"dec.blk.{}.attn_k", "decoder.layers.{}.self_attn.k_proj", "decoder.blocks.{}.attn.key"},
      {"dec.blk.{}.attn_v", "decoder.layers.{}.self_attn.v_proj", "decoder.blocks.{}.attn.value"},
      {"dec.blk.{}.attn_output", "decoder.layers.{}.self_attn.out_proj", "decoder.blocks.{}.attn.out"},
      {"dec.blk.{}.cross_attn_norm", "decoder.layers.{}.encoder_attn_layer_norm", "decoder.blocks.{}.cross_attn_ln"},
      {"dec.blk.{}.cross_attn_q", "decoder.layers.{}.encoder_attn.q_proj", "decoder.blocks.{}.cross_attn.query"},
      {"dec.blk.{}.cross_attn_k", "decoder.layers.{}.encoder_attn.k_proj", "decoder.blocks.{}.cross_attn.key"},
      {"dec.blk.{}.cross_attn_v", "decoder.layers.{}.encoder_attn.v_proj", "decoder.blocks.{}.cross_attn.value"},
      {"dec.blk.{}.cross_attn_output", "decoder.layers.{}.encoder_attn.out_proj", "decoder.blocks.{}.cross_attn.out"},
      {"dec.blk.{}.ffn_norm", "decoder.layers.{}.final_layer_norm", "decoder.blocks.{}.mlp_ln"},
      {"dec.blk.{}.ffn_up", "decoder.layers.{}.fc1", "decoder.blocks.{}.mlp.0"},
      {"dec.blk.{}.ffn_down", "decoder.layers.{}.fc2", "decoder.blocks.{}.mlp.2"},
      {"enc.position_embd.weight", "encoder.embed_positions.weight", "encoder.positional_embedding"},
      {"dec.position_embd.weight", "decoder.embed_positions.weight", "decoder.positional_embedding"},
      {"token_embd.weight", "decoder.embed_tokens.weight", "decoder.token_embedding.weight"}};
  return names;
}

namespace {

// A name of one kind in the terms of another: whole, or but for ".weight" or ".bias".
std::optional<std::string> translate(std::string_view name, std::string_view WhisperName::*from,
                                     std::string_view WhisperName::*to) {
  const std::string_view leaf = name.substr(std::min(name.rfind('.'), name.size()));
  const bool has_leaf = leaf == ".weight" || leaf == ".bias";
  for (const WhisperName& n : whisper_names()) {
    if (const auto layer = match_layer(n.*from, name)) return with_layer(n.*to, *layer);
    if (!has_leaf || (n.*from).ends_with(".weight")) continue;
    if (const auto layer = match_layer(n.*from, name.substr(0, name.size() - leaf.size())))
      return with_layer(n.*to, *layer) + std::string(leaf);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> whisper_gguf_name(std::string_view own, std::string_view WhisperName::*kind) {
  return translate(own, kind, &WhisperName::gguf);
}

std::string whisper_own_name(std::string_view gguf, std::string_view WhisperName::*kind) {
  return translate(gguf, &WhisperName::gguf, kind).value_or(std::string(gguf));
}

}  // namespace consonant
