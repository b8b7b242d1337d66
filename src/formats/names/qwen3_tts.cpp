// SPDX-License-Identifier: Apache-2.0
// Talker, code predictor and speaker encoder share one file; the two decoders have layers of the same names.
#include "formats/names/qwen3_tts.hpp"

#include <vector>

#include "formats/names/names.hpp"

namespace consonant {

namespace {

const std::vector<TensorName>& names() {
  static const std::vector<TensorName> all = {
      {"talker.model.codec_embedding.weight", "talker.token_embd.weight"},
      {"talker.model.text_embedding.weight", "talker.token_embd_text.weight"},
      {"talker.text_projection.linear_fc1.weight", "talker.text_proj.fc1.weight"},
      {"talker.text_projection.linear_fc1.bias", "talker.text_proj.fc1.bias"},
      {"talker.text_projection.linear_fc2.weight", "talker.text_proj.fc2.weight"},
      {"talker.text_projection.linear_fc2.bias", "talker.text_proj.fc2.bias"},
      {"talker.model.norm.weight", "talker.output_norm.weight"},
      {"talker.codec_head.weight", "talker.output.weight"},
      {"talker.code_predictor.model.codec_embedding.{}.weight", "code_pred.token_embd.{}.weight"},
      {"talker.code_predictor.lm_head.{}.weight", "code_pred.output.{}.weight"},
      {"talker.code_predictor.model.norm.weight", "code_pred.output_norm.weight"},
      {"talker.code_predictor.small_to_mtp_projection.weight", "code_pred.small_to_mtp.weight"},
      {"talker.code_predictor.small_to_mtp_projection.bias", "code_pred.small_to_mtp.bias"},
      {"talker.model.layers.{}.input_layernorm.weight", "talker.blk.{}.attn_norm.weight"},
      {"talker.model.layers.{}.self_attn.q_proj.weight", "talker.blk.{}.attn_q.weight"},
      {"talker.model.layers.{}.self_attn.k_proj.weight", "talker.blk.{}.attn_k.weight"},
      {"talker.model.layers.{}.self_attn.v_proj.weight", "talker.blk.{}.attn_v.weight"},
      {"talker.model.layers.{}.self_attn.q_norm.weight", "talker.blk.{}.attn_q_norm.weight"},
      {"talker.model.layers.{}.self_attn.k_norm.weight", "talker.blk.{}.attn_k_norm.weight"},
      {"talker.model.layers.{}.self_attn.o_proj.weight", "talker.blk.{}.attn_output.weight"},
      {"talker.model.layers.{}.post_attention_layernorm.weight", "talker.blk.{}.ffn_norm.weight"},
      {"talker.model.layers.{}.mlp.gate_proj.weight", "talker.blk.{}.ffn_gate.weight"},
      {"talker.model.layers.{}.mlp.up_proj.weight", "talker.blk.{}.ffn_up.weight"},
      {"talker.model.layers.{}.mlp.down_proj.weight", "talker.blk.{}.ffn_down.weight"},
      {"talker.code_predictor.model.layers.{}.input_layernorm.weight", "code_pred.blk.{}.attn_norm.weight"},
      {"talker.code_predictor.model.layers.{}.self_attn.q_proj.weight", "code_pred.blk.{}.attn_q.weight"},
      {"talker.code_predictor.model.layers.{}.self_attn.k_proj.weight", "code_pred.blk.{}.attn_k.weight"},
      {"talker.code_predictor.model.layers.{}.self_attn.v_proj.weight", "code_pred.blk.{}.attn_v.weight"},
      {"talker.code_predictor.model.layers.{}.self_attn.q_norm.weight", "code_pred.blk.{}.attn_q_norm.weight"},
      {"talker.code_predictor.model.layers.{}.self_attn.k_norm.weight", "code_pred.blk.{}.attn_k_norm.weight"},
      {"talker.code_predictor.model.layers.{}.self_attn.o_proj.weight", "code_pred.blk.{}.attn_output.weight"},
      {"talker.code_predictor.model.layers.{}.post_attention_layernorm.weight", "code_pred.blk.{}.ffn_norm.weight"},
      {"talker.code_predictor.model.layers.{}.mlp.gate_proj.weight", "code_pred.blk.{}.ffn_gate.weight"},
      {"talker.code_predictor.model.layers.{}.mlp.up_proj.weight", "code_pred.blk.{}.ffn_up.weight"},
      {"talker.code_predictor.model.layers.{}.mlp.down_proj.weight", "code_pred.blk.{}.ffn_down.weight"}};
  return all;
}

}  // namespace

std::optional<std::string> qwen3_tts_gguf_name(std::string_view hf) {
  constexpr std::string_view speaker = "speaker_encoder.";
  if (hf.starts_with(speaker)) return "speaker." + std::string(hf.substr(speaker.size()));
  for (const TensorName& name : names()) {
    const auto number = match_layer(name.hf, hf);
    if (!number) continue;
    std::string gguf(name.gguf);
    if (const size_t hole = gguf.find("{}"); hole != gguf.npos) gguf.replace(hole, 2, std::to_string(*number));
    return gguf;
  }
  return std::nullopt;
}

}  // namespace consonant
