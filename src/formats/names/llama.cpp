// SPDX-License-Identifier: Apache-2.0
#include "formats/names/names.hpp"

namespace consonant {

namespace {

void metadata(const HfConfig& config, Meta& meta) {
  config.require("hidden_act", "silu");
  config.require("pretraining_tp", 1);
  add_decoder_metadata("llama", config, meta);
  const HfConfig rope = config.rope();
  add_f32(meta, "llama.rope.freq_base", rope.number("rope_theta", 10000));
  add_u32(meta, "llama.rope.dimension_count", head_size(config));
  add_rope_scaling("llama", rope, meta);
}

}  // namespace

const Architecture llama_architecture = {
    .name = "llama",
    .classes = {"LlamaForCausalLM"},
    .tied_by_default = false,
    .tensors = {{"model.embed_tokens.weight", "token_embd.weight"},
                {"lm_head.weight", "output.weight"},
                {"model.norm.weight", "output_norm.weight"},
                {"model.layers.{}.input_layernorm.weight", "blk.{}.attn_norm.weight"},
                {"model.layers.{}.self_attn.q_proj.weight", "blk.{}.attn_q.weight", Change::rope_rows_q},
                {"model.layers.{}.self_attn.q_proj.bias", "blk.{}.attn_q.bias", Change::rope_rows_q},
                {"model.layers.{}.self_attn.k_proj.weight", "blk.{}.attn_k.weight", Change::rope_rows_k},
                {"model.layers.{}.self_attn.k_proj.bias", "blk.{}.attn_k.bias", Change::rope_rows_k},
                {"model.layers.{}.self_attn.v_proj.weight", "blk.{}.attn_v.weight"},
                {"model.layers.{}.self_attn.v_proj.bias", "blk.{}.attn_v.bias"},
                {"model.layers.{}.self_attn.o_proj.weight", "blk.{}.attn_output.weight"},
                {"model.layers.{}.self_attn.o_proj.bias", "blk.{}.attn_output.bias"},
                {"model.layers.{}.post_attention_layernorm.weight", "blk.{}.ffn_norm.weight"},
                {"model.layers.{}.mlp.gate_proj.weight", "blk.{}.ffn_gate.weight"},
                {"model.layers.{}.mlp.gate_proj.bias", "blk.{}.ffn_gate.bias"},
                {"model.layers.{}.mlp.up_proj.weight", "blk.{}.ffn_up.weight"},
                {"model.layers.{}.mlp.up_proj.bias", "blk.{}.ffn_up.bias"},
                {"model.layers.{}.mlp.down_proj.weight", "blk.{}.ffn_down.weight"},
                {"model.layers.{}.mlp.down_proj.bias", "blk.{}.ffn_down.bias"}},
    .metadata = metadata,
    .make = llama3_rope_factors};

}  // namespace consonant
