// SPDX-License-Identifier: Apache-2.0
#include "formats/hf_qwen3_tts.hpp"

#include <algorithm>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "base/utf8.hpp"
#include "formats/hf_shards.hpp"
#include "formats/json.hpp"
#include "formats/mapped_file.hpp"
#include "formats/names/names.hpp"
#include "formats/names/qwen3_tts.hpp"

namespace consonant {

namespace {

constexpr std::string_view architecture = "qwen3tts";

std::string key(std::string_view rest) { return fmt::format("{}.{}", architecture, rest); }

HfConfig read_json(const std::filesystem::path& path) {
  return HfConfig(parse_json(MappedFile::open(path)->text(), path.string()), path.string());
}

class Reader {
 public:
  Reader(const std::filesystem::path& folder, const HfConfig& config)
      : folder_(folder),
        config_(config),
        talker_(config.object("talker_config")),
        predictor_(talker_.object("code_predictor_config")),
        shards_(open_shards(folder)) {}

  ModelFile read() {
    ModelFile model;
    model.format = "Hugging Face folder";
    model.files = shards_.paths;
    model.file_bytes = shards_.bytes;
    for (const ShardTensor& source : shards_.tensors) model.tensors.push_back(stored(source));
    model.meta = std::make_shared<Meta>();
    Meta& meta = *model.meta;
    meta.source = folder_.string();
    add_string(meta, "general.architecture", std::string(architecture));
    add_string(meta, "general.type", "model");
    const auto name = std::filesystem::weakly_canonical(folder_).filename().string();
    add_string(meta, "general.name", is_utf8(name) ? name : sanitize_utf8(name));
    add_talker(meta);
    add_predictor(meta);
    add_names(meta);
    add_sampling(meta);
    add_tokens(meta);
    complete_qwen3_tts(meta);
    model.release = [files = shards_.files](std::span<const std::byte> part) {
      for (const Shard& shard : files)
        if (shard->file()->holds(part)) shard->file()->release(part);
    };
    return model;
  }

 private:
  template <class... Args>
  [[noreturn]] static void fail(const ShardTensor& source, fmt::format_string<Args...> format, Args&&... args) {
    bad_input("{}: tensor \"{}\": {}", source.shard->file()->name(), source.entry->name,
              fmt::format(format, std::forward<Args>(args)...));
  }

  StoredTensor stored(const ShardTensor& source) {
    const SafetensorsEntry& entry = *source.entry;
    auto gguf = qwen3_tts_gguf_name(entry.name);
    if (!gguf) fail(source, "isn't one of {}", architecture);
    if (!is_float(entry.type)) fail(source, "type {} is no weight's", name(entry.type));
    if (entry.sizes.empty() || entry.sizes.size() > 3 ||
        std::find(entry.sizes.begin(), entry.sizes.end(), 0) != entry.sizes.end())
      fail(source, "is {}", to_string(entry.sizes));
    if (!names_.insert(*gguf).second) fail(source, "stands in two files");
    const bool widened = entry.sizes.size() == 1 || entry.type == DType::f64;
    const DType type = widened ? DType::f32 : entry.type;
    auto load = [source, widened] {
      HostTensor stored = source.shard->tensor(*source.entry);
      if (!widened) return stored;
      HostTensor wide = to_f32(stored);
      if (wide.bytes.data() != stored.bytes.data()) source.shard->file()->release(stored.bytes);
      return wide;
    };
    return {std::move(*gguf), type, entry.sizes, checked_mul(element_count(entry.sizes), info(type).block_bytes),
            std::move(load)};
  }

  static void add_ids(Meta& meta, std::string name, MetaInts ids) {
    meta.add(std::move(name), {MetaType::i32, true, std::move(ids)});
  }

  static void add_texts(Meta& meta, std::string name, const std::vector<std::string>& texts) {
    MetaStrings views;
    for (const std::string& text : texts) views.push_back(meta.keep(text));
    meta.add(std::move(name), {MetaType::string, true, std::move(views)});
  }

  static int64_t need_id(const HfConfig& config, std::string_view name) {
    const auto id = config.id(name);
    if (!id) bad_input("{}: \"{}\" is missing", config.source(), name);
    return *id;
  }

  void add_talker(Meta& meta) const {
    for (const HfConfig* part : {&talker_, &predictor_}) {
      part->require("hidden_act", "silu");
      part->require("attention_bias", false);
      part->require("use_sliding_window", false);
    }
    const auto u32 = [&](std::string_view to, std::string_view from) {
      add_u32(meta, key(fmt::format("talker.{}", to)), talker_.count(from));
    };
    u32("n_layers", "num_hidden_layers");
    u32("d_model", "hidden_size");
    u32("n_heads", "num_attention_heads");
    u32("n_kv_heads", "num_key_value_heads");
    u32("head_dim", "head_dim");
    u32("ff_dim", "intermediate_size");
    u32("vocab_size", "vocab_size");
    u32("text_vocab_size", "text_vocab_size");
    u32("text_hidden_size", "text_hidden_size");
    u32("n_code_groups", "num_code_groups");
    u32("max_pos", "max_position_embeddings");
    if (talker_.has("position_id_per_seconds")) u32("position_id_per_seconds", "position_id_per_seconds");
    add_f32(meta, key("talker.rope_theta"), talker_.rope().number("rope_theta"));
    add_f32(meta, key("talker.rms_norm_eps"), talker_.number("rms_norm_eps"));
    for (const char* id : {"codec_bos_id", "codec_eos_token_id", "codec_pad_id", "codec_think_id", "codec_nothink_id",
                           "codec_think_bos_id", "codec_think_eos_id"})
      add_u32(meta, key(fmt::format("talker.{}", id)), need_id(talker_, id));
  }

  // GGUF says neither the predictor's base nor its epsilon: they are the talker's.
  void add_predictor(Meta& meta) const {
    const auto u32 = [&](std::string_view to, std::string_view from) {
      add_u32(meta, key(fmt::format("code_pred.{}", to)), predictor_.count(from));
    };
    u32("n_layers", "num_hidden_layers");
    u32("d_model", "hidden_size");
    u32("n_heads", "num_attention_heads");
    u32("n_kv_heads", "num_key_value_heads");
    u32("n_code_groups", "num_code_groups");
    u32("vocab_size", "vocab_size");
    const auto equal = [&](std::string_view name, double own, double talkers) {
      if (own != talkers)
        bad_input("{}: \"{}\" is {}, the talker's {}: only equal ones are supported", predictor_.source(), name, own,
                  talkers);
    };
    equal("rms_norm_eps", predictor_.number("rms_norm_eps"), talker_.number("rms_norm_eps"));
    equal("rope_theta", predictor_.rope().number("rope_theta"), talker_.rope().number("rope_theta"));
  }

  // A table of names and ids, in order of the names.
  static std::pair<std::vector<std::string>, MetaInts> table(const HfConfig& config, std::string_view name) {
    std::pair<std::vector<std::string>, MetaInts> out;
    const HfConfig object = config.object(name);
    const Json* found = config.find(name);
    if (!found) return out;
    for (const auto& [text, id] : found->items()) {
      out.first.push_back(text);
      out.second.push_back(need_id(object, text));
    }
    return out;
  }

  void add_names(Meta& meta) const {
    add_string(meta, key("tts_model_type"), config_.string("tts_model_type", "base"));
    const auto [languages, language_ids] = table(talker_, "codec_language_id");
    const auto [speakers, speaker_ids] = table(talker_, "spk_id");
    const HfConfig dialects = talker_.object("spk_is_dialect");
    MetaInts dialect_ids;
    for (const std::string& speaker : speakers) {
      const Json* dialect = dialects.find(speaker);
      if (!dialect || *dialect == false) {
        dialect_ids.push_back(0);
        continue;
      }
      const auto at = std::find(languages.begin(), languages.end(), dialects.string(speaker, ""));
      if (at == languages.end())
        bad_input("{}: speaker \"{}\" speaks \"{}\", which \"codec_language_id\" doesn't have", dialects.source(),
                  speaker, dialects.string(speaker, ""));
      dialect_ids.push_back(language_ids[static_cast<size_t>(at - languages.begin())]);
    }
    if (!speakers.empty()) {
      add_texts(meta, key("spk_names"), speakers);
      add_ids(meta, key("spk_token_ids"), speaker_ids);
      add_ids(meta, key("spk_dialect_token_ids"), std::move(dialect_ids));
    }
    if (!languages.empty()) {
      add_texts(meta, key("codec_language_names"), languages);
      add_ids(meta, key("codec_language_ids"), language_ids);
    }
    for (const char* id :
         {"tts_bos_token_id", "tts_eos_token_id", "tts_pad_token_id", "im_start_token_id", "im_end_token_id"})
      add_u32(meta, key(id), need_id(config_, id));
    if (const auto id = config_.id("assistant_token_id")) add_u32(meta, key("assistant_token_id"), *id);
    if (config_.has("speaker_encoder_config")) {
      const HfConfig speaker = config_.object("speaker_encoder_config");
      add_u32(meta, key("speaker.enc_dim"), speaker.count("enc_dim"));
      add_u32(meta, key("speaker.sample_rate"), speaker.count("sample_rate", 24000));
    }
  }

  // GGUF has no place for these: a file without them means the releases' own.
  void add_sampling(Meta& meta) const {
    const auto path = folder_ / "generation_config.json";
    if (!file_exists(path)) return;
    const HfConfig generation = read_json(path);
    for (const char* name : {"repetition_penalty", "temperature", "top_p", "subtalker_temperature", "subtalker_top_p"})
      if (generation.has(name)) add_f32(meta, key(fmt::format("consonant.{}", name)), generation.number(name));
    for (const char* name : {"top_k", "subtalker_top_k"})
      if (generation.has(name)) add_u32(meta, key(fmt::format("consonant.{}", name)), *generation.id(name));
  }

  void add_tokens(Meta& meta) const {
    const auto path = folder_ / "vocab.json";
    const auto file = MappedFile::open(path);
    const Json vocab = parse_json(file->text(), path.string());
    if (!vocab.is_object() || vocab.empty()) bad_input("{}: is no object of tokens", path.string());
    if (static_cast<int64_t>(vocab.size()) > talker_.count("text_vocab_size"))
      bad_input("{}: has {} tokens, the model {}", path.string(), vocab.size(), talker_.count("text_vocab_size"));
    std::vector<std::string> texts(vocab.size());
    for (const auto& [text, id] : vocab.items()) {
      if (!id.is_number_unsigned() || id.get<uint64_t>() >= texts.size() || !texts[id.get<size_t>()].empty())
        bad_input("{}: the ids of its {} tokens aren't 0, 1, ...: \"{}\" has {}", path.string(), texts.size(), text,
                  id.dump());
      texts[id.get<size_t>()] = text;
    }
    add_texts(meta, "tokenizer.ggml.tokens", texts);
    add_texts(meta, "tokenizer.ggml.merges", merges());
  }

  std::vector<std::string> merges() const {
    const auto path = folder_ / "merges.txt";
    const auto file = MappedFile::open(path);
    std::vector<std::string> out;
    std::string_view text = file->text();
    for (bool first = true; !text.empty(); first = false) {
      const size_t end = std::min(text.find('\n'), text.size());
      std::string_view line = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (line.empty() || (first && line.starts_with("#version"))) continue;
      if (!is_utf8(line)) bad_input("{}: merge {} isn't UTF-8", path.string(), out.size());
      out.emplace_back(line);
    }
    return out;
  }

  const std::filesystem::path& folder_;
  const HfConfig& config_;
  HfConfig talker_, predictor_;
  Shards shards_;
  std::unordered_set<std::string> names_;
};

}  // namespace

bool is_hf_qwen3_tts(const HfConfig& config) {
  const Json *type = config.find("model_type"), *classes = config.find("architectures");
  return (type && *type == "qwen3_tts") || (classes && classes->is_array() && !classes->empty() &&
                                            classes->front() == "Qwen3TTSForConditionalGeneration");
}

ModelFile open_hf_qwen3_tts(const std::filesystem::path& folder, const HfConfig& config) {
  return Reader(folder, config).read();
}

void complete_qwen3_tts(Meta& meta) {
  if (meta.string("general.architecture", "") != architecture || !meta.has("tokenizer.ggml.tokens")) return;
  if (!meta.has("tokenizer.ggml.model")) add_string(meta, "tokenizer.ggml.model", "gpt2");
  if (!meta.has("tokenizer.ggml.pre")) add_string(meta, "tokenizer.ggml.pre", "qwen2");
}

}  // namespace consonant
