// SPDX-License-Identifier: Apache-2.0
#include "formats/names/names.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>

#include "base/error.hpp"

namespace consonant {

namespace {

const auto& architectures() {
  static const std::array all = {&llama_architecture,     &qwen2_architecture,  &qwen3_architecture,
                                 &qwen3moe_architecture,  &gemma3_architecture, &deepseek2_architecture,
                                 &nemotron_h_architecture};
  return all;
}

// A number as a name has it; nothing for "007".
std::optional<int64_t> whole_number(std::string_view digits) {
  int64_t number = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size() || number < 0) return std::nullopt;
  if (std::to_string(number) != digits) return std::nullopt;
  return number;
}

}  // namespace

std::optional<int64_t> match_layer(std::string_view pattern, std::string_view name) {
  const size_t hole = pattern.find("{}");
  if (hole == pattern.npos) return pattern == name ? std::optional<int64_t>(-1) : std::nullopt;
  const std::string_view head = pattern.substr(0, hole), tail = pattern.substr(hole + 2);
  if (name.size() <= head.size() + tail.size() || !name.starts_with(head) || !name.ends_with(tail)) return std::nullopt;
  return whole_number(name.substr(head.size(), name.size() - head.size() - tail.size()));
}

std::optional<NameMatch> match_name(std::string_view pattern, std::string_view name) {
  constexpr std::string_view hole = "{}";
  const size_t first = pattern.find(hole), second = first == pattern.npos ? first : pattern.find(hole, first + 2);
  if (second == pattern.npos) {
    const auto layer = match_layer(pattern, name);
    return layer ? std::optional(NameMatch{*layer, -1}) : std::nullopt;
  }
  const std::string_view head = pattern.substr(0, first);
  if (!name.starts_with(head)) return std::nullopt;
  const size_t digits = std::min(name.find_first_not_of("0123456789", first), name.size()) - first;
  const auto layer = whole_number(name.substr(first, digits));
  if (!layer) return std::nullopt;
  const auto expert = match_layer(pattern.substr(first + 2), name.substr(first + digits));
  return expert ? std::optional(NameMatch{*layer, *expert}) : std::nullopt;
}

const Architecture* find_architecture(std::string_view class_name) {
  for (const Architecture* a : architectures())
    for (const std::string_view c : a->classes)
      if (c == class_name) return a;
  return nullptr;
}

std::string known_architectures() {
  std::string out;
  for (const Architecture* a : architectures())
    for (const std::string_view c : a->classes) out.append(out.empty() ? "" : ", ").append(c);
  return out;
}

int64_t layer_count(const HfConfig& config) {
  const Json* kinds = config.has("num_hidden_layers") ? nullptr : config.find("layers_block_type");
  if (kinds && kinds->is_array() && !kinds->empty()) return static_cast<int64_t>(kinds->size());
  return config.count("num_hidden_layers");
}

int64_t head_size(const HfConfig& config) {
  constexpr int64_t most = int64_t{1} << 16;  // far above any model: tables are sized by it before tensors are seen
  if (config.has("head_dim")) {
    const int64_t head = config.count("head_dim");
    if (head > most) bad_input("{}: \"head_dim\" is {}, more than {}", config.source(), head, most);
    return head;
  }
  const int64_t width = config.count("hidden_size"), heads = config.count("num_attention_heads");
  if (width % heads != 0)
    bad_input("{}: \"hidden_size\" {} isn't a multiple of \"num_attention_heads\" {}, and there is no \"head_dim\"",
              config.source(), width, heads);
  if (width / heads > most)
    bad_input("{}: \"hidden_size\" {} over \"num_attention_heads\" {} makes heads of more than {}", config.source(),
              width, heads, most);
  return width / heads;
}

void add_decoder_metadata(std::string_view name, const HfConfig& config, Meta& meta) {
  const auto key = [&](std::string_view rest) { return fmt::format("{}.{}", name, rest); };
  const int64_t heads = config.count("num_attention_heads"), head = head_size(config);
  add_u32(meta, key("block_count"), config.count("num_hidden_layers"));
  add_u32(meta, key("context_length"), config.count("max_position_embeddings"));
  add_u32(meta, key("embedding_length"), config.count("hidden_size"));
  add_u32(meta, key("feed_forward_length"), config.count("intermediate_size"));
  add_u32(meta, key("attention.head_count"), heads);
  add_u32(meta, key("attention.head_count_kv"), config.count("num_key_value_heads", heads));
  add_f32(meta, key("attention.layer_norm_rms_epsilon"), config.number("rms_norm_eps"));
  add_u32(meta, key("attention.key_length"), head);
  add_u32(meta, key("attention.value_length"), head);
  add_u32(meta, key("vocab_size"), config.count("vocab_size"));
}

void add_rope_scaling(std::string_view name, const HfConfig& rope, Meta& meta) {
  const auto key = [&](std::string_view rest) { return fmt::format("{}.rope.scaling.{}", name, rest); };
  const std::string type = rope.string("rope_type", "default");
  if (type == "default" || type == "llama3") return;
  if (type != "linear" && type != "yarn")
    bad_input("{}: rope_type \"{}\" isn't supported; default, linear, yarn and llama3 are", rope.source(), type);
  add_string(meta, key("type"), type);
  add_f32(meta, key("factor"), rope.number("factor"));
  if (type == "linear") return;
  add_u32(meta, key("original_context_length"), rope.count("original_max_position_embeddings"));
  if (rope.has("beta_fast")) add_f32(meta, key("yarn_beta_fast"), rope.number("beta_fast"));
  if (rope.has("beta_slow")) add_f32(meta, key("yarn_beta_slow"), rope.number("beta_slow"));
  if (rope.has("attention_factor")) add_f32(meta, key("attn_factor"), rope.number("attention_factor"));
}

std::vector<MadeTensor> no_made_tensors(const HfConfig&) { return {}; }

std::vector<MadeTensor> llama3_rope_factors(const HfConfig& config) {
  const HfConfig rope = config.rope();
  if (rope.string("rope_type", "default") != "llama3") return {};
  // Wavelengths below the high-frequency bound keep their frequency, those above the low-frequency bound get it divided
  // by `factor`, and in between the two are blended: the reference computes this in float.
  const auto base = static_cast<float>(rope.number("rope_theta", 10000)),
             factor = static_cast<float>(rope.number("factor")),
             low = static_cast<float>(rope.number("low_freq_factor", 1)),
             high = static_cast<float>(rope.number("high_freq_factor", 4)),
             context = static_cast<float>(rope.number("original_max_position_embeddings"));
  if (!(base > 0) || !(factor > 0) || !(low > 0) || !(high > low) || !(context > 0))
    bad_input("{}: llama3 scaling wants positive numbers and high_freq_factor above low_freq_factor", rope.source());
  const int64_t head = head_size(config), half = head / 2;
  HostTensor out = HostTensor::allocate(DType::f32, {half});
  auto* to = reinterpret_cast<float*>(out.mutable_bytes().data());
  for (int64_t i = 0; i < half; ++i) {
    const float frequency = 1.0f / std::pow(base, static_cast<float>(2 * i) / static_cast<float>(head));
    const float length = static_cast<float>(2 * 3.14159265358979323846) / frequency;
    if (length < context / high) {
      to[i] = 1;
    } else if (length > context / low) {
      to[i] = factor;
    } else {
      const float smooth = (context / length - low) / (high - low);
      to[i] = 1.0f / ((1.0f - smooth) / factor + smooth);
    }
  }
  std::vector<MadeTensor> made;
  made.push_back({"rope_freqs.weight", std::move(out)});
  return made;
}

HostTensor halves_to_pairs(const HostTensor& from, int64_t heads) {
  const int64_t rows = from.sizes.at(0), head = rows / heads, half = head / 2;
  HostTensor out = HostTensor::allocate(from.type, from.sizes);
  const size_t stride = from.bytes.size() / static_cast<size_t>(rows);
  std::byte* to = out.mutable_bytes().data();
  for (int64_t h = 0; h < heads; ++h)
    for (int64_t j = 0; j < half; ++j)
      for (int64_t p = 0; p < 2; ++p)
        std::memcpy(to + static_cast<size_t>(h * head + 2 * j + p) * stride,
                    from.bytes.data() + static_cast<size_t>(h * head + p * half + j) * stride, stride);
  return out;
}

HostTensor to_f32(const HostTensor& from) {
  if (from.type == DType::f32) return from;
  HostTensor out = HostTensor::allocate(DType::f32, from.sizes);
  const std::vector<float> values = from.to_floats();
  std::memcpy(out.mutable_bytes().data(), values.data(), values.size() * sizeof(float));
  return out;
}

HostTensor minus_exp(const HostTensor& from) {
  std::vector<float> values = from.to_floats();
  for (float& x : values) x = static_cast<float>(-std::exp(double{x}));
  HostTensor out = HostTensor::allocate(DType::f32, from.sizes);
  std::memcpy(out.mutable_bytes().data(), values.data(), values.size() * sizeof(float));
  return out;
}

HostTensor plus_one(const HostTensor& from) {
  std::vector<float> values = from.to_floats();
  for (float& x : values) x += 1;
  HostTensor out = HostTensor::allocate(DType::f32, from.sizes);
  std::memcpy(out.mutable_bytes().data(), values.data(), values.size() * sizeof(float));
  return out;
}

}  // namespace consonant
