// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/hf_config.hpp"
#include "formats/meta.hpp"
#include "tensor/host_tensor.hpp"

namespace consonant {

// What a tensor goes through on its way from a Hugging Face folder to GGUF's conventions.
enum class Change {
  none,
  rope_rows_q,  // rows of each head: halves to pairs, see halves_to_pairs
  rope_rows_k,
  plus_one,  // Gemma stores norm weights minus one
  // Of Mamba-2; in f32:
  squeeze,           // taps of a convolution [channel, 1, kernel] to [channel, kernel]
  column,            // [n] to [n, 1]
  minus_exp_column,  // the same of -exp(x): the logarithm is stored
  group_rows         // [n] to [groups, n / groups], as many as "n_groups" says
};

// "{}" stands for the number of the layer. A second one in `hf` stands for that of an expert: the matrices of a
// layer's experts become one tensor [expert, rows, columns].
struct TensorName {
  std::string_view hf, gguf;
  Change change = Change::none;
};

// The number at "{}" if `name` is made by `pattern` ("model.layers.{}.mlp.up_proj.weight"), -1 if the pattern has none;
// nothing if it isn't.
std::optional<int64_t> match_layer(std::string_view pattern, std::string_view name);

// The same of a pattern with up to two holes, for a layer and an expert.
struct NameMatch {
  int64_t layer = -1, expert = -1;
};
std::optional<NameMatch> match_name(std::string_view pattern, std::string_view name);

// A tensor that is computed from the configuration.
struct MadeTensor {
  std::string name;
  HostTensor tensor;
};

// One architecture as Hugging Face folders have it, told in GGUF's terms.
struct Architecture {
  std::string_view name;                  // GGUF's: "llama"
  std::vector<std::string_view> classes;  // `architectures` in config.json
  bool tied_by_default = false;           // output matrix = embedding if config.json doesn't say
  std::vector<TensorName> tensors;
  void (*metadata)(const HfConfig& config, Meta& meta);
  std::vector<MadeTensor> (*make)(const HfConfig& config);
  // Of several architectures whose class is the same, the one that a configuration is of; null: this one.
  const Architecture* (*variant)(const HfConfig& config) = nullptr;
};

extern const Architecture llama_architecture, qwen2_architecture, qwen3_architecture, qwen3moe_architecture,
    gemma3_architecture, deepseek2_architecture, nemotron_h_architecture, nemotron_h_moe_architecture;

// nullptr if none has that class.
const Architecture* find_architecture(std::string_view class_name);
std::string known_architectures();  // "LlamaForCausalLM, ..."

// What transformer decoders share: sizes, heads, rotary parameters, epsilon, under `name`.
void add_decoder_metadata(std::string_view name, const HfConfig& config, Meta& meta);
int64_t head_size(const HfConfig& config);
// "num_hidden_layers", or where that is left out, as many as "layers_block_type" lists.
int64_t layer_count(const HfConfig& config);
// Rotary scaling of the kinds "linear" and "yarn"; "llama3" goes into a tensor instead. Other kinds are refused.
void add_rope_scaling(std::string_view name, const HfConfig& rope, Meta& meta);
std::vector<MadeTensor> no_made_tensors(const HfConfig& config);
// rope_freqs.weight for llama3 scaling: what each rotary frequency is divided by. Nothing for other kinds.
std::vector<MadeTensor> llama3_rope_factors(const HfConfig& config);

// Rotary embedding pairs element j of a head with j + half in Hugging Face's files and 2j with 2j + 1 in GGUF's llama:
// row 2j + p of a head comes from row p * half + j. Also for biases, whose rows are single elements.
HostTensor halves_to_pairs(const HostTensor& from, int64_t heads);
HostTensor plus_one(const HostTensor& from);  // in f32
HostTensor to_f32(const HostTensor& from);
HostTensor minus_exp(const HostTensor& from);  // in f32

}  // namespace consonant
