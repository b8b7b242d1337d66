// SPDX-License-Identifier: Apache-2.0
#include "formats/names/names.hpp"

namespace consonant {

namespace {

void metadata(const HfConfig& config, Meta& meta) {
  config.require("hidden_act", "silu");
  config.require("use_sliding_window", false);
  config.require("attention_bias", false);
  config.require("decoder_sparse_step", 1);  // every layer has experts
  config.require("mlp_only_layers", Json::array());
  add_decoder_metadata("qwen3moe", config, meta);
  const char* const experts = config.has("num_experts") ? "num_experts" : "num_local_experts";
  add_u32(meta, "qwen3moe.expert_count", config.count(experts));
  add_u32(meta, "qwen3moe.expert_used_count", config.count("num_experts_per_tok"));
  add_u32(meta, "qwen3moe.expert_feed_forward_length", config.count("moe_intermediate_size"));
  // Readers take it for granted; only what is otherwise needs a word.
  if (!config.boolean("norm_topk_prob", false)) add_bool(meta, "qwen3moe.expert_weights_norm", false);
  const HfConfig rope = config.rope();
  add_f32(meta, "qwen3moe.rope.freq_base", rope.number("rope_theta", 10000));
  add_rope_scaling("qwen3moe", rope, meta);
}

}  // namespace

const Architecture qwen3moe_architecture = {
    .name = "qwen3moe",
    .classes = {"Qwen3MoeForCausalLM"},
    .tied_by_default = false,
    .tensors = {{"model.embed_tokens.weight", "token_embd.weight"},
                {"lm_head.weight", "output.weight"},
                {"model.norm.weight", "output_norm.weight"},
                {"model.layers.{}.input_layernorm.weight", "blk.{}.attn_norm.weight"},
                {"model.layers.{}.self_attn.q_proj.weight", "blk.{}.attn_q.weight"},
                {"model.layers.{}.self_attn.q_norm.weight", "blk.{}.attn_q_norm.weight"},
                {"model.layers.{}.self_attn.k_proj.weight", "blk.{}.attn_k.weight"},
                {"model.layers.{}.self_attn.k_norm.weight", "blk.{}.attn_k_norm.weight"},
                {"model.layers.{}.self_attn.v_proj.weight", "blk.{}.attn_v.weight"},
                {"model.layers.{}.self_attn.o_proj.weight", "blk.{}.attn_output.weight"},
                {"model.layers.{}.post_attention_layernorm.weight", "blk.{}.ffn_norm.weight"},
                {"model.layers.{}.mlp.gate.weight", "blk.{}.ffn_gate_inp.weight"},
                {"model.layers.{}.mlp.experts.{}.gate_proj.weight", "blk.{}.ffn_gate_exps.weight"},
                {"model.layers.{}.mlp.experts.{}.up_proj.weight", "blk.{}.ffn_up_exps.weight"},
                {"model.layers.{}.mlp.experts.{}.down_proj.weight", "blk.{}.ffn_down_exps.weight"}},
    .metadata = metadata,
    .make = no_made_tensors};

}  // namespace consonant
