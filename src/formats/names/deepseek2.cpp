// SPDX-License-Identifier: Apache-2.0
// DeepSeek V2 and V3, and GLM-4.7-Flash, which has their shape.
#include <cmath>

#include "base/error.hpp"
#include "formats/names/names.hpp"

namespace consonant {

namespace {

// YaRN's own scale of the attention for a stretch of `factor` (Peng et al. 2023).
double yarn_scale(double factor, double multiplier) {
  return factor <= 1 ? 1 : 0.1 * multiplier * std::log(factor) + 1;
}

void add_yarn(const HfConfig& rope, Meta& meta) {
  if (rope.string("rope_type", "default") != "yarn") return;
  const double all = rope.number("mscale_all_dim", 0), rotary = rope.number("mscale", 0);
  if (all != 0) add_f32(meta, "deepseek2.rope.scaling.yarn_log_multiplier", 0.1 * all);
  // What sines and cosines are scaled by; where both numbers are equal it is nothing, as a reader of GGUF assumes.
  if (rope.has("attention_factor") || all == 0 || all == rotary) return;
  const double factor = rope.number("factor");
  add_f32(meta, "deepseek2.rope.scaling.attn_factor",
          rotary != 0 ? yarn_scale(factor, rotary) / yarn_scale(factor, all) : yarn_scale(factor, 1));
}

int64_t count_or_none(const HfConfig& config, std::string_view key) {
  const double n = config.number(key, 0);
  if (n < 0 || n > 0x7FFFFFFF || n != std::floor(n))
    bad_input("{}: \"{}\" is {}, should be a whole number from 0 on", config.source(), key, n);
  return static_cast<int64_t>(n);
}

int64_t leading_dense_layers(const HfConfig& config) {
  if (config.has("first_k_dense_replace")) return count_or_none(config, "first_k_dense_replace");
  const Json* kinds = config.find("mlp_layer_types");
  if (!kinds || !kinds->is_array()) return 0;
  int64_t dense = 0;
  while (dense < static_cast<int64_t>(kinds->size()) && (*kinds)[static_cast<size_t>(dense)] == "dense") ++dense;
  for (size_t i = static_cast<size_t>(dense); i < kinds->size(); ++i)
    if ((*kinds)[i] != "sparse")
      bad_input("{}: \"mlp_layer_types\" has a dense layer behind one with experts", config.source());
  return dense;
}

void add_experts(const HfConfig& config, Meta& meta) {
  const auto key = [](std::string_view rest) { return fmt::format("deepseek2.{}", rest); };
  const bool second = config.string("model_type", "") == "deepseek_v2";
  const std::string scoring = config.string("scoring_func", second ? "softmax" : "sigmoid");
  if (scoring != "softmax" && scoring != "sigmoid")
    bad_input("{}: \"scoring_func\" is \"{}\"; softmax and sigmoid are supported", config.source(), scoring);
  config.require("moe_layer_freq", 1);
  add_u32(meta, key("expert_count"), config.count("n_routed_experts"));
  add_u32(meta, key("expert_used_count"), config.count("num_experts_per_tok"));
  add_u32(meta, key("expert_group_count"), config.count("n_group", 1));
  add_u32(meta, key("expert_group_used_count"), config.count("topk_group", 1));
  add_u32(meta, key("expert_gating_func"), scoring == "softmax" ? 1 : 2);
  add_u32(meta, key("leading_dense_block_count"), leading_dense_layers(config));
  add_u32(meta, key("expert_feed_forward_length"), config.count("moe_intermediate_size"));
  add_u32(meta, key("expert_shared_count"), count_or_none(config, "n_shared_experts"));
  add_f32(meta, key("expert_weights_scale"), config.number("routed_scaling_factor", 1));
  if (config.boolean("norm_topk_prob", !second)) add_bool(meta, key("expert_weights_norm"), true);
}

void metadata(const HfConfig& config, Meta& meta) {
  config.require("hidden_act", "silu");
  config.require("attention_bias", false);
  config.require("rope_interleave", true);
  const auto key = [](std::string_view rest) { return fmt::format("deepseek2.{}", rest); };
  const int64_t latent = config.count("kv_lora_rank"), nope = config.count("qk_nope_head_dim"),
                turned = config.count("qk_rope_head_dim");
  add_u32(meta, key("block_count"), config.count("num_hidden_layers"));
  add_u32(meta, key("context_length"), config.count("max_position_embeddings"));
  add_u32(meta, key("embedding_length"), config.count("hidden_size"));
  add_u32(meta, key("feed_forward_length"), config.count("intermediate_size"));
  add_u32(meta, key("attention.head_count"), config.count("num_attention_heads"));
  add_u32(meta, key("attention.head_count_kv"), 1);
  add_f32(meta, key("attention.layer_norm_rms_epsilon"), config.number("rms_norm_eps"));
  add_u32(meta, key("vocab_size"), config.count("vocab_size"));
  if (config.has("q_lora_rank")) add_u32(meta, key("attention.q_lora_rank"), config.count("q_lora_rank"));
  add_u32(meta, key("attention.kv_lora_rank"), latent);
  // One key and value head of the cache's width; what the heads have themselves is behind "mla".
  add_u32(meta, key("attention.key_length"), latent + turned);
  add_u32(meta, key("attention.value_length"), latent);
  add_u32(meta, key("attention.key_length_mla"), nope + turned);
  add_u32(meta, key("attention.value_length_mla"), config.count("v_head_dim"));
  add_u32(meta, key("rope.dimension_count"), turned);
  const HfConfig rope = config.rope();
  add_f32(meta, key("rope.freq_base"), rope.number("rope_theta", 10000));
  add_rope_scaling("deepseek2", rope, meta);
  add_yarn(rope, meta);
  add_experts(config, meta);
}

}  // namespace

const Architecture deepseek2_architecture = {
    .name = "deepseek2",
    .classes = {"DeepseekV2ForCausalLM", "DeepseekV3ForCausalLM", "Glm4MoeLiteForCausalLM"},
    .tied_by_default = false,
    .tensors = {{"model.embed_tokens.weight", "token_embd.weight"},
                {"lm_head.weight", "output.weight"},
                {"model.norm.weight", "output_norm.weight"},
                {"model.layers.{}.input_layernorm.weight", "blk.{}.attn_norm.weight"},
                {"model.layers.{}.self_attn.q_proj.weight", "blk.{}.attn_q.weight"},
                {"model.layers.{}.self_attn.q_a_proj.weight", "blk.{}.attn_q_a.weight"},
                {"model.layers.{}.self_attn.q_a_layernorm.weight", "blk.{}.attn_q_a_norm.weight"},
                {"model.layers.{}.self_attn.q_b_proj.weight", "blk.{}.attn_q_b.weight"},
                {"model.layers.{}.self_attn.kv_a_proj_with_mqa.weight", "blk.{}.attn_kv_a_mqa.weight"},
                {"model.layers.{}.self_attn.kv_a_layernorm.weight", "blk.{}.attn_kv_a_norm.weight"},
                {"model.layers.{}.self_attn.kv_b_proj.weight", "blk.{}.attn_kv_b.weight"},
                {"model.layers.{}.self_attn.o_proj.weight", "blk.{}.attn_output.weight"},
                {"model.layers.{}.post_attention_layernorm.weight", "blk.{}.ffn_norm.weight"},
                {"model.layers.{}.mlp.gate_proj.weight", "blk.{}.ffn_gate.weight"},
                {"model.layers.{}.mlp.up_proj.weight", "blk.{}.ffn_up.weight"},
                {"model.layers.{}.mlp.down_proj.weight", "blk.{}.ffn_down.weight"},
                {"model.layers.{}.mlp.gate.weight", "blk.{}.ffn_gate_inp.weight"},
                {"model.layers.{}.mlp.gate.e_score_correction_bias", "blk.{}.exp_probs_b.bias"},
                {"model.layers.{}.mlp.experts.{}.gate_proj.weight", "blk.{}.ffn_gate_exps.weight"},
                {"model.layers.{}.mlp.experts.{}.up_proj.weight", "blk.{}.ffn_up_exps.weight"},
                {"model.layers.{}.mlp.experts.{}.down_proj.weight", "blk.{}.ffn_down_exps.weight"},
                {"model.layers.{}.mlp.shared_experts.gate_proj.weight", "blk.{}.ffn_gate_shexp.weight"},
                {"model.layers.{}.mlp.shared_experts.up_proj.weight", "blk.{}.ffn_up_shexp.weight"},
                {"model.layers.{}.mlp.shared_experts.down_proj.weight", "blk.{}.ffn_down_shexp.weight"}},
    .metadata = metadata,
    .make = no_made_tensors};

}  // namespace consonant
