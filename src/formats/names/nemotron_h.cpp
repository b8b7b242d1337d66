// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/error.hpp"
#include "formats/names/names.hpp"

namespace consonant {

namespace {

enum class Mixer { mamba, attention, mlp, experts };

Mixer mixer_of(char c, const HfConfig& config) {
  switch (c) {
    case 'M':
      return Mixer::mamba;
    case '*':
      return Mixer::attention;
    case '-':
      return Mixer::mlp;
    case 'E':
      return Mixer::experts;
    default:
      bad_input("{}: \"hybrid_override_pattern\" holds '{}'; known are M, *, - and E", config.source(), c);
  }
}

Mixer mixer_of(const Json& kind, const HfConfig& config) {
  if (kind == "linear_attention" || kind == "mamba") return Mixer::mamba;
  if (kind == "full_attention" || kind == "attention") return Mixer::attention;
  if (kind == "mlp") return Mixer::mlp;
  if (kind == "moe") return Mixer::experts;
  bad_input("{}: \"layers_block_type\" holds {}; known are linear_attention, full_attention, mlp and moe",
            config.source(), kind.dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, 100));
}

// What each layer is. Published configurations spell it as a string, those of transformers 5 as a list.
std::vector<Mixer> pattern(const HfConfig& config) {
  const bool spelt = config.has("hybrid_override_pattern");
  const char* key = spelt ? "hybrid_override_pattern" : "layers_block_type";
  std::vector<Mixer> mixers;
  if (spelt) {
    for (const char c : config.string(key, "")) mixers.push_back(mixer_of(c, config));
  } else {
    const Json* kinds = config.find(key);
    if (!kinds || !kinds->is_array())
      bad_input("{}: neither \"hybrid_override_pattern\" nor a list \"layers_block_type\"", config.source());
    for (const Json& kind : *kinds) mixers.push_back(mixer_of(kind, config));
  }
  const int64_t layers = layer_count(config);
  if (static_cast<int64_t>(mixers.size()) != layers)
    bad_input("{}: \"{}\" is of {} layers, but \"num_hidden_layers\" is {}", config.source(), key, mixers.size(),
              layers);
  return mixers;
}

// `n` at the layers of a kind, 0 at the others.
void add_per_layer(Meta& meta, std::string key, const std::vector<Mixer>& mixers, Mixer kind, int64_t n) {
  MetaInts numbers;
  for (const Mixer mixer : mixers) numbers.push_back(mixer == kind ? n : 0);
  meta.add(std::move(key), {MetaType::i32, true, std::move(numbers)});
}

void check(const HfConfig& config) {
  config.require("mamba_hidden_act", "silu");
  config.require("mlp_hidden_act", "relu2");
  config.require("use_conv_bias", true);
  for (const char* key : {"attention_bias", "use_bias", "mamba_proj_bias", "mlp_bias"}) config.require(key, false);
  config.refuse("sliding_window");
}

void decoder_metadata(std::string_view name, const std::vector<Mixer>& mixers, const HfConfig& config, Meta& meta) {
  const auto key = [&](std::string_view rest) { return fmt::format("{}.{}", name, rest); };
  const int64_t heads = config.count("num_attention_heads"), head = head_size(config), d = config.count("hidden_size");
  const int64_t ssm_heads = config.count("mamba_num_heads"), ssm_dim = config.count("mamba_head_dim");
  const double eps = config.number("layer_norm_epsilon", config.number("norm_eps", 1e-5));
  add_u32(meta, key("block_count"), static_cast<int64_t>(mixers.size()));
  add_u32(meta, key("context_length"), config.count("max_position_embeddings"));
  add_u32(meta, key("embedding_length"), d);
  add_u32(meta, key("attention.head_count"), heads);
  add_per_layer(meta, key("attention.head_count_kv"), mixers, Mixer::attention,
                config.count("num_key_value_heads", heads));
  add_f32(meta, key("attention.layer_norm_rms_epsilon"), eps);
  add_f32(meta, key("attention.layer_norm_epsilon"), eps);
  add_u32(meta, key("attention.key_length"), head);
  add_u32(meta, key("attention.value_length"), head);
  add_u32(meta, key("vocab_size"), config.count("vocab_size"));
  add_u32(meta, key("rope.dimension_count"), std::max<int64_t>(d / heads, 1));  // which nothing reads: no layer rotates
  add_bool(meta, key("rope.scaling.finetuned"), false);
  add_u32(meta, key("ssm.conv_kernel"), config.count("conv_kernel", 4));
  add_u32(meta, key("ssm.state_size"), config.count("ssm_state_size"));
  add_u32(meta, key("ssm.group_count"), config.count("n_groups"));
  add_u32(meta, key("ssm.time_step_rank"), ssm_heads);
  if (ssm_heads > (int64_t{1} << 31) / ssm_dim)
    bad_input("{}: \"mamba_num_heads\" {} of \"mamba_head_dim\" {}", config.source(), ssm_heads, ssm_dim);
  add_u32(meta, key("ssm.inner_size"), ssm_heads * ssm_dim);
}

void dense_metadata(const HfConfig& config, Meta& meta) {
  check(config);
  const std::vector<Mixer> mixers = pattern(config);
  decoder_metadata("nemotron_h", mixers, config, meta);
  add_per_layer(meta, "nemotron_h.feed_forward_length", mixers, Mixer::mlp, config.count("intermediate_size"));
}

void experts_metadata(const HfConfig& config, Meta& meta) {
  check(config);
  const auto key = [](std::string_view rest) { return fmt::format("nemotron_h_moe.{}", rest); };
  const std::vector<Mixer> mixers = pattern(config);
  if (std::count(mixers.begin(), mixers.end(), Mixer::mlp) > 0)
    bad_input("{}: has layers of experts and layers with one MLP, which GGUF can't tell apart", config.source());
  const int64_t ff = config.count("moe_intermediate_size");
  decoder_metadata("nemotron_h_moe", mixers, config, meta);
  add_per_layer(meta, key("feed_forward_length"), mixers, Mixer::experts, ff);
  add_u32(meta, key("expert_count"), config.count("n_routed_experts"));
  add_u32(meta, key("expert_used_count"), config.count("num_experts_per_tok"));
  add_u32(meta, key("expert_group_count"), config.count("n_group", 1));
  add_u32(meta, key("expert_group_used_count"), config.count("topk_group", 1));
  add_u32(meta, key("expert_feed_forward_length"), ff);
  add_u32(meta, key("expert_shared_feed_forward_length"), config.count("moe_shared_expert_intermediate_size"));
  add_u32(meta, key("expert_shared_count"), config.count("n_shared_experts", 1));
  add_bool(meta, key("expert_weights_norm"), config.boolean("norm_topk_prob", true));
  add_f32(meta, key("expert_weights_scale"), config.number("routed_scaling_factor", 1));
  if (config.has("moe_latent_size")) add_u32(meta, key("moe_latent_size"), config.count("moe_latent_size"));
}

// GGUF's rows of q and k are in llama's order, which changes no product of the two: nothing rotates them.
std::vector<TensorName> common_tensors() {
  return {{"backbone.embeddings.weight", "token_embd.weight"},
          {"lm_head.weight", "output.weight"},
          {"backbone.norm_f.weight", "output_norm.weight"},
          {"backbone.layers.{}.norm.weight", "blk.{}.attn_norm.weight"},
          {"backbone.layers.{}.mixer.in_proj.weight", "blk.{}.ssm_in.weight"},
          {"backbone.layers.{}.mixer.conv1d.weight", "blk.{}.ssm_conv1d.weight", Change::squeeze},
          {"backbone.layers.{}.mixer.conv1d.bias", "blk.{}.ssm_conv1d.bias"},
          {"backbone.layers.{}.mixer.dt_bias", "blk.{}.ssm_dt.bias"},
          {"backbone.layers.{}.mixer.A_log", "blk.{}.ssm_a", Change::minus_exp_column},
          {"backbone.layers.{}.mixer.D", "blk.{}.ssm_d", Change::column},
          {"backbone.layers.{}.mixer.norm.weight", "blk.{}.ssm_norm.weight", Change::group_rows},
          {"backbone.layers.{}.mixer.out_proj.weight", "blk.{}.ssm_out.weight"},
          {"backbone.layers.{}.mixer.q_proj.weight", "blk.{}.attn_q.weight", Change::rope_rows_q},
          {"backbone.layers.{}.mixer.k_proj.weight", "blk.{}.attn_k.weight", Change::rope_rows_k},
          {"backbone.layers.{}.mixer.v_proj.weight", "blk.{}.attn_v.weight"},
          {"backbone.layers.{}.mixer.o_proj.weight", "blk.{}.attn_output.weight"}};
}

std::vector<TensorName> dense_tensors() {
  std::vector<TensorName> tensors = common_tensors();
  tensors.push_back({"backbone.layers.{}.mixer.up_proj.weight", "blk.{}.ffn_up.weight"});
  tensors.push_back({"backbone.layers.{}.mixer.down_proj.weight", "blk.{}.ffn_down.weight"});
  return tensors;
}

std::vector<TensorName> expert_tensors() {
  std::vector<TensorName> tensors = common_tensors();
  for (const TensorName& name : std::initializer_list<TensorName>{
           {"backbone.layers.{}.mixer.gate.weight", "blk.{}.ffn_gate_inp.weight"},
           {"backbone.layers.{}.mixer.gate.e_score_correction_bias", "blk.{}.exp_probs_b.bias"},
           {"backbone.layers.{}.mixer.experts.{}.up_proj.weight", "blk.{}.ffn_up_exps.weight"},
           {"backbone.layers.{}.mixer.experts.{}.down_proj.weight", "blk.{}.ffn_down_exps.weight"},
           {"backbone.layers.{}.mixer.shared_experts.up_proj.weight", "blk.{}.ffn_up_shexp.weight"},
           {"backbone.layers.{}.mixer.shared_experts.down_proj.weight", "blk.{}.ffn_down_shexp.weight"},
           {"backbone.layers.{}.mixer.fc1_latent_proj.weight", "blk.{}.ffn_latent_down.weight"},
           {"backbone.layers.{}.mixer.fc2_latent_proj.weight", "blk.{}.ffn_latent_up.weight"}})
    tensors.push_back(name);
  return tensors;
}

// Both have one class; the pattern tells them apart.
const Architecture* variant(const HfConfig& config) {
  const std::vector<Mixer> mixers = pattern(config);
  return std::count(mixers.begin(), mixers.end(), Mixer::experts) > 0 ? &nemotron_h_moe_architecture
                                                                      : &nemotron_h_architecture;
}

}  // namespace

const Architecture nemotron_h_architecture = {.name = "nemotron_h",
                                              .classes = {"NemotronHForCausalLM"},
                                              .tied_by_default = false,
                                              .tensors = dense_tensors(),
                                              .metadata = dense_metadata,
                                              .make = no_made_tensors,
                                              .variant = variant};

const Architecture nemotron_h_moe_architecture = {.name = "nemotron_h_moe",
                                                  .classes = {"NemotronHForCausalLM"},
                                                  .tied_by_default = false,
                                                  .tensors = expert_tensors(),
                                                  .metadata = experts_metadata,
                                                  .make = no_made_tensors};

}  // namespace consonant
