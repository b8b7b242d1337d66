// SPDX-License-Identifier: Apache-2.0
#include "formats/hf_whisper.hpp"

#include <optional>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "formats/hf_shards.hpp"
#include "formats/names/whisper.hpp"
#include "formats/whisper/tensors.hpp"
#include "formats/whisper/vocabulary_files.hpp"

namespace consonant {

namespace {

constexpr std::string_view prefix = "model.", head = "proj_out.weight";

WhisperSizes sizes_of(const HfConfig& config) {
  config.require("activation_function", "gelu");
  config.require("scale_embedding", false);
  config.require("tie_word_embeddings", true);
  WhisperSizes s;
  s.width = config.count("d_model");
  s.vocabulary = config.count("vocab_size");
  s.mel_bins = config.count("num_mel_bins");
  s.feed_forward = config.count("encoder_ffn_dim");
  if (const int64_t decoder = config.count("decoder_ffn_dim"); decoder != s.feed_forward)
    bad_input("{}: \"decoder_ffn_dim\" is {} and \"encoder_ffn_dim\" {}: only equal ones are supported",
              config.source(), decoder, s.feed_forward);
  s.encoder = {config.count("encoder_layers"), config.count("encoder_attention_heads"),
               config.count("max_source_positions")};
  s.decoder = {config.count("decoder_layers"), config.count("decoder_attention_heads"),
               config.count("max_target_positions")};
  return s;
}

WhisperParts parts_of(const Shards& shards) {
  WhisperParts parts;
  for (const ShardTensor& source : shards.tensors) {
    const SafetensorsEntry& entry = *source.entry;
    std::string_view name = entry.name;
    if (name == head) continue;                                       // the embedding once more
    if (name.starts_with(prefix)) name.remove_prefix(prefix.size());  // absent where the network was saved without head
    const auto gguf = whisper_gguf_name(name, &WhisperName::hf);
    if (!gguf)
      bad_input("{}: tensor \"{}\": isn't one of whisper (WhisperForConditionalGeneration)",
                source.shard->file()->name(), entry.name);
    WhisperPart part{entry.name, entry.type, entry.sizes, [source] { return source.shard->tensor(*source.entry); },
                     source.shard->file()};
    if (!parts.emplace(*gguf, std::move(part)).second)
      bad_input("{}: tensor \"{}\": stands there twice", source.shard->file()->name(), entry.name);
  }
  return parts;
}

}  // namespace

bool is_hf_whisper(const HfConfig& config) {
  const Json *type = config.find("model_type"), *classes = config.find("architectures");
  return (type && *type == "whisper") ||
         (classes && classes->is_array() && !classes->empty() && classes->front() == "WhisperForConditionalGeneration");
}

ModelFile open_hf_whisper(const std::filesystem::path& folder, const HfConfig& config) {
  const WhisperSizes sizes = sizes_of(config);
  const Shards shards = open_shards(folder);
  ModelFile model;
  model.format = "Hugging Face folder";
  model.files = shards.paths;
  model.file_bytes = shards.bytes;
  model.tensors = whisper_tensors(sizes, parts_of(shards), folder.string(), [](std::string_view gguf) {
    return std::string(prefix) + whisper_own_name(gguf, &WhisperName::hf);
  });
  model.meta = std::make_shared<Meta>();
  add_whisper_folder(folder, sizes, *model.meta);
  model.release = [files = shards.files](std::span<const std::byte> part) {
    for (const Shard& shard : files)
      if (shard->file()->holds(part)) shard->file()->release(part);
  };
  return model;
}

}  // namespace consonant
