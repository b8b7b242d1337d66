// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "formats/names/names.hpp"

namespace consonant {

namespace {

constexpr int64_t usual_pattern = 6;  // every sixth layer sees the whole context

// Every how many layers one is global; refuses lists of layer kinds without such a period.
int64_t global_period(const HfConfig& config) {
  const Json* kinds = config.find("layer_types");
  if (!kinds) return config.count("sliding_window_pattern", usual_pattern);
  if (!kinds->is_array()) bad_input("{}: \"layer_types\" is no list", config.source());
  const auto is_global = [&](size_t i) { return kinds->at(i) == "full_attention"; };
  size_t period = 1;
  while (period <= kinds->size() && !is_global(period - 1)) ++period;
  if (period > kinds->size()) return std::max<int64_t>(usual_pattern, static_cast<int64_t>(period));
  for (size_t i = 0; i < kinds->size(); ++i)
    if (is_global(i) != ((i + 1) % period == 0))
      bad_input("{}: \"layer_types\" doesn't repeat every {} layers: layer {} breaks it", config.source(), period, i);
  return static_cast<int64_t>(period);
}

void metadata(const HfConfig& config, Meta& meta) {
  config.require("hidden_activation", "gelu_pytorch_tanh");
  config.require("attention_bias", false);
  config.refuse("attn_logit_softcapping");
  config.refuse("final_logit_softcapping");
  add_decoder_metadata("gemma3", config, meta);
  const HfConfig global = config.rope("full_attention"), local = config.rope("sliding_attention");
  add_f32(meta, "gemma3.rope.freq_base", global.number("rope_theta", 1e6));
  add_f32(meta, "gemma3.rope.freq_base_swa",
          config.has("rope_local_base_freq") || !config.has("rope_parameters")
              ? config.number("rope_local_base_freq", 1e4)
              : local.number("rope_theta", 1e4));
  add_rope_scaling("gemma3", global, meta);
  add_u32(meta, "gemma3.attention.sliding_window", config.count("sliding_window"));
  if (const int64_t period = global_period(config); period != usual_pattern)
    add_u32(meta, "gemma3.attention.sliding_window_pattern", period);
  const double scalar = config.number("query_pre_attn_scalar", static_cast<double>(head_size(config)));
  if (!(scalar > 0)) bad_input("{}: \"query_pre_attn_scalar\" is {}", config.source(), scalar);
  if (scalar != static_cast<double>(head_size(config))) add_f32(meta, "gemma3.attention.scale", 1 / std::sqrt(scalar));
}

}  // namespace

const Architecture gemma3_architecture = {
    .name = "gemma3",
    .classes = {"Gemma3ForCausalLM"},
    .tied_by_default = true,
    .tensors = {{"model.embed_tokens.weight", "token_embd.weight"},
                {"lm_head.weight", "output.weight"},
                {"model.norm.weight", "output_norm.weight", Change::plus_one},
                {"model.layers.{}.input_layernorm.weight", "blk.{}.attn_norm.weight", Change::plus_one},
                {"model.layers.{}.self_attn.q_proj.weight", "blk.{}.attn_q.weight"},
                {"model.layers.{}.self_attn.q_norm.weight", "blk.{}.attn_q_norm.weight", Change::plus_one},
                {"model.layers.{}.self_attn.k_proj.weight", "blk.{}.attn_k.weight"},
                {"model.layers.{}.self_attn.k_norm.weight", "blk.{}.attn_k_norm.weight", Change::plus_one},
                {"model.layers.{}.self_attn.v_proj.weight", "blk.{}.attn_v.weight"},
                {"model.layers.{}.self_attn.o_proj.weight", "blk.{}.attn_output.weight"},
                {"model.layers.{}.post_attention_layernorm.weight", "blk.{}.post_attention_norm.weight",
                 Change::plus_one},
                {"model.layers.{}.pre_feedforward_layernorm.weight", "blk.{}.ffn_norm.weight", Change::plus_one},
                {"model.layers.{}.post_feedforward_layernorm.weight", "blk.{}.post_ffw_norm.weight", Change::plus_one},
                {"model.layers.{}.mlp.gate_proj.weight", "blk.{}.ffn_gate.weight"},
                {"model.layers.{}.mlp.up_proj.weight", "blk.{}.ffn_up.weight"},
                {"model.layers.{}.mlp.down_proj.weight", "blk.{}.ffn_down.weight"}},
    .metadata = metadata,
    .make = no_made_tensors};

}  // namespace consonant
