// SPDX-License-Identifier: Apache-2.0
#include "formats/hf_qwen3_tts_codec.hpp"

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "formats/hf_shards.hpp"
#include "formats/names/names.hpp"
#include "formats/names/qwen3_tts_codec.hpp"

namespace consonant {

namespace {

// A folder's tensors by name. Taking one leaves the others for check_rest.
class FolderTensors {
 public:
  explicit FolderTensors(const Shards& shards, std::string folder) : folder_(std::move(folder)) {
    for (const ShardTensor& t : shards.tensors)
      if (!tensors_.emplace(t.entry->name, t).second)
        bad_input("{}: tensor \"{}\" stands there twice", folder_, t.entry->name);
  }

  ShardTensor take(const std::string& name, size_t most_dimensions) {
    const auto at = tensors_.find(name);
    if (at == tensors_.end()) bad_input("{}: no tensor \"{}\"", folder_, name);
    const ShardTensor found = at->second;
    const SafetensorsEntry& e = *found.entry;
    if (!is_float(e.type) || e.sizes.empty() || e.sizes.size() > most_dimensions || element_count(e.sizes) == 0)
      bad_input("{}: tensor \"{}\" is {} {}, not numbers of up to {} dimensions", folder_, name,
                consonant::name(e.type), to_string(e.sizes), most_dimensions);
    tensors_.erase(at);
    return found;
  }

  bool has_any(std::string_view prefix) const {
    return std::any_of(tensors_.begin(), tensors_.end(), [&](const auto& t) { return t.first.starts_with(prefix); });
  }

  void check_rest() const {
    for (const auto& [name, tensor] : tensors_)
      if (!is_spare_codec_tensor(name)) bad_input("{}: tensor \"{}\": isn't one of Qwen3-TTS's codec", folder_, name);
  }

 private:
  std::string folder_;
  std::unordered_map<std::string, ShardTensor> tensors_;
};

StoredTensor plain(const CodecName& name, FolderTensors& tensors) {
  const ShardTensor source = tensors.take(name.hf, 3);
  const SafetensorsEntry& e = *source.entry;
  const DType type = e.sizes.size() == 1 || e.type == DType::f64 ? DType::f32 : e.type;
  return {name.gguf, type, e.sizes, checked_mul(element_count(e.sizes), info(type).block_bytes), [source, type] {
            const HostTensor stored = source.shard->tensor(*source.entry);
            return stored.type == type ? stored : to_f32(stored);
          }};
}

// Vectors: the sum of each one's members divided by their number.
StoredTensor codebook(const CodecName& name, FolderTensors& tensors, const std::string& folder) {
  const bool encoder = name.hf.starts_with("encoder.");
  const ShardTensor sums = tensors.take(name.hf + (encoder ? "embed_sum" : "embedding_sum"), 2);
  const ShardTensor members = tensors.take(name.hf + "cluster_usage", 1);
  const Sizes sizes = sums.entry->sizes;
  if (sizes.size() != 2 || members.entry->sizes != Sizes{sizes[0]})
    bad_input("{}: {} has sums {} and numbers of members {}", folder, name.hf, to_string(sizes),
              to_string(members.entry->sizes));
  const auto load = [sums, members, sizes] {
    const std::vector<float> sum = sums.shard->tensor(*sums.entry).to_floats(),
                             count = members.shard->tensor(*members.entry).to_floats();
    std::vector<float> vectors(sum.size());
    const auto dim = static_cast<size_t>(sizes[1]);
    for (size_t i = 0; i < sum.size(); ++i) vectors[i] = sum[i] / std::max(count[i / dim], 1e-5f);
    HostTensor t = HostTensor::allocate(DType::f32, sizes);
    std::memcpy(t.mutable_bytes().data(), vectors.data(), vectors.size() * sizeof(float));
    return t;
  };
  return {name.gguf, DType::f32, sizes, checked_mul(element_count(sizes), int64_t{sizeof(float)}), load};
}

}  // namespace

bool is_hf_qwen3_tts_codec(const HfConfig& config) {
  const Json* type = config.find("model_type");
  return type && *type == "qwen3_tts_tokenizer_12hz";
}

ModelFile open_hf_qwen3_tts_codec(const std::filesystem::path& folder, const HfConfig& config) {
  const HfConfig decoder = config.object("decoder_config"), encoder = config.object("encoder_config");
  encoder.require("use_conv_shortcut", false);
  encoder.require("use_causal_conv", true);
  encoder.require("num_residual_layers", 1);
  const Shards shards = open_shards(folder);
  ModelFile model;
  model.format = "Hugging Face folder";
  model.files = shards.paths;
  model.file_bytes = shards.bytes;
  model.meta = std::make_shared<Meta>();
  model.meta->source = folder.string();
  add_string(*model.meta, "general.architecture", "qwen3tts_tokenizer");
  add_string(*model.meta, "general.name", "qwen3-tts-tokenizer-12hz");
  add_qwen3_tts_codec_metadata(config, *model.meta);
  FolderTensors tensors(shards, folder.string());
  const bool encodes = tensors.has_any("encoder.");
  for (const CodecName& name : qwen3_tts_codec_names(decoder, encoder, decoder.count("num_quantizers"))) {
    if (!encodes && name.hf.starts_with("encoder.")) continue;
    model.tensors.push_back(name.codebook ? codebook(name, tensors, folder.string()) : plain(name, tensors));
  }
  tensors.check_rest();
  model.release = [files = shards.files](std::span<const std::byte> part) {
    for (const Shard& shard : files)
      if (shard->file()->holds(part)) shard->file()->release(part);
  };
  return model;
}

}  // namespace consonant
