// SPDX-License-Identifier: Apache-2.0
#include "formats/hf_folder.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/checked.hpp"
#include "base/utf8.hpp"
#include "formats/hf_qwen3_tts.hpp"
#include "formats/hf_qwen3_tts_codec.hpp"
#include "formats/hf_shards.hpp"
#include "formats/hf_tokenizer.hpp"
#include "formats/hf_whisper.hpp"
#include "formats/names/names.hpp"

namespace consonant {

namespace {

// Buffers that older exports store: the engine computes them.
bool is_buffer(std::string_view name) {
  return name.ends_with(".rotary_emb.inv_freq") || name.ends_with(".rotary_emb.cos_cached") ||
         name.ends_with(".rotary_emb.sin_cached") || name.ends_with(".masked_bias");
}

// The number of the layer in "model.layers.7..." or "backbone.layers.7...", or -1.
int64_t layer_of(std::string_view name) {
  for (const std::string_view head : {"model.layers.", "backbone.layers."}) {
    if (!name.starts_with(head)) continue;
    int64_t number = -1;
    std::from_chars(name.data() + head.size(), name.data() + name.size(), number);
    return number;
  }
  return -1;
}

class FolderReader {
 public:
  FolderReader(const std::filesystem::path& folder, const HfConfig& config, const Architecture& architecture)
      : folder_(folder), config_(config), architecture_(architecture), shards_(open_shards(folder)) {
    layers_ = layer_count(config);
    tied_ = config.boolean("tie_word_embeddings", architecture.tied_by_default);
    heads_ = config.count("num_attention_heads");
    kv_heads_ = config.count("num_key_value_heads", heads_);
  }

  ModelFile read() {
    ModelFile model;
    model.format = "Hugging Face folder";
    model.files = shards_.paths;
    model.file_bytes = shards_.bytes;
    add_tensors(model);
    check_embedding(model);
    model.meta = std::make_shared<Meta>();
    model.meta->source = folder_.string();
    add_metadata(*model.meta);
    add_tokenizer(TokenizerFiles::read(folder_), config_, *model.meta);
    model.release = [files = shards_.files](std::span<const std::byte> part) {
      for (const Shard& shard : files)
        if (shard->file()->holds(part)) shard->file()->release(part);
    };
    return model;
  }

 private:
  struct Placed {
    int64_t layer;
    size_t rule;
    StoredTensor tensor;
  };

  using Experts = std::map<int64_t, ShardTensor>;  // by their number

  template <class... Args>
  [[noreturn]] void fail(const ShardTensor& source, fmt::format_string<Args...> format, Args&&... args) const {
    bad_input("{}: tensor \"{}\": {}", source.shard->file()->name(), source.entry->name,
              fmt::format(format, std::forward<Args>(args)...));
  }

  void add_metadata(Meta& meta) const {
    add_string(meta, "general.architecture", std::string(architecture_.name));
    add_string(meta, "general.type", "model");
    const auto name = std::filesystem::weakly_canonical(folder_).filename().string();
    add_string(meta, "general.name", is_utf8(name) ? name : sanitize_utf8(name));
    architecture_.metadata(config_, meta);
  }

  void add_tensors(ModelFile& model) {
    std::vector<Placed> placed;
    std::map<std::pair<int64_t, size_t>, Experts> stacks;  // by layer and rule
    for (const ShardTensor& source : shards_.tensors) {
      const std::string& name = source.entry->name;
      if (is_buffer(name) || layer_of(name) >= layers_ || name.starts_with("mtp.")) continue;  // further tokens' heads
      bool known = false;
      for (size_t rule = 0; rule < architecture_.tensors.size() && !known; ++rule) {
        const auto match = match_name(architecture_.tensors[rule].hf, name);
        if (!match) continue;
        known = true;
        if (tied_ && architecture_.tensors[rule].gguf == "output.weight") continue;
        if (match->expert >= 0)
          add_expert(stacks[{match->layer, rule}], source, match->expert);
        else
          placed.push_back({match->layer, rule, stored(source, architecture_.tensors[rule], match->layer)});
      }
      if (!known) fail(source, "isn't one of {} ({})", architecture_.name, architecture_.classes.front());
    }
    for (const auto& [place, experts] : stacks)
      placed.push_back({place.first, place.second, stacked(experts, architecture_.tensors[place.second], place.first)});
    std::sort(placed.begin(), placed.end(),
              [](const Placed& a, const Placed& b) { return std::tie(a.layer, a.rule) < std::tie(b.layer, b.rule); });
    for (MadeTensor& made : architecture_.make(config_)) {
      const HostTensor& t = made.tensor;
      model.tensors.push_back({made.name, t.type, t.sizes, static_cast<int64_t>(t.bytes.size()), [t] { return t; }});
    }
    for (Placed& p : placed) model.tensors.push_back(std::move(p.tensor));
  }

  int64_t heads_for(const ShardTensor& source, Change change) const {
    const int64_t heads = change == Change::rope_rows_q ? heads_ : kv_heads_, rows = source.entry->sizes[0];
    if (rows % (2 * heads) != 0) fail(source, "{} rows can't be {} heads of an even size", rows, heads);
    return heads;
  }

  // The sizes that a tensor has after a change of Mamba-2's kinds; its own after others.
  Sizes changed_sizes(const ShardTensor& source, Change change) const {
    const Sizes& sizes = source.entry->sizes;
    const auto need = [&](bool fits, std::string_view wanted) {
      if (!fits) fail(source, "is {}, should be {}", to_string(sizes), wanted);
    };
    switch (change) {
      case Change::squeeze:
        need(sizes.size() == 3 && sizes[1] == 1, "[channel, 1, kernel]");
        return {sizes[0], sizes[2]};
      case Change::column:
      case Change::minus_exp_column:
        need(sizes.size() == 1, "of one dimension");
        return {sizes[0], 1};
      case Change::group_rows: {
        const int64_t groups = config_.count("n_groups");
        need(sizes.size() == 1 && sizes[0] % groups == 0, "of one dimension, a multiple of \"n_groups\"");
        return {groups, sizes[0] / groups};
      }
      default:
        return sizes;
    }
  }

  void check_sizes(const ShardTensor& source) const {
    const SafetensorsEntry& entry = *source.entry;
    if (!is_float(entry.type)) fail(source, "type {} is no weight's", name(entry.type));
    if (entry.sizes.empty() || entry.sizes.size() > 4) fail(source, "has {} dimensions", entry.sizes.size());
    for (const int64_t size : entry.sizes)
      if (size == 0) fail(source, "a dimension of zero in {}", to_string(entry.sizes));
  }

  static std::string gguf_name(const TensorName& rule, int64_t layer) {
    std::string gguf(rule.gguf);
    if (const size_t hole = gguf.find("{}"); hole != gguf.npos) gguf.replace(hole, 2, std::to_string(layer));
    return gguf;
  }

  void add_expert(Experts& experts, const ShardTensor& source, int64_t expert) const {
    check_sizes(source);
    if (source.entry->sizes.size() != 2) fail(source, "has {} dimensions, not two", source.entry->sizes.size());
    if (!experts.emplace(expert, source).second) fail(source, "stands in two files");
    const SafetensorsEntry &one = *experts.begin()->second.entry, &other = *source.entry;
    if (one.sizes != other.sizes || one.type != other.type)
      fail(source, "is {} {}, but that of expert {} is {} {}", name(other.type), to_string(other.sizes),
           experts.begin()->first, name(one.type), to_string(one.sizes));
  }

  // The matrices of a layer's experts as one tensor.
  StoredTensor stacked(const Experts& experts, const TensorName& rule, int64_t layer) const {
    std::vector<ShardTensor> sources;
    for (const auto& [number, source] : experts) {
      if (number != static_cast<int64_t>(sources.size()))
        fail(source, "is there, but not that of expert {}", sources.size());
      sources.push_back(source);
    }
    const SafetensorsEntry& entry = *sources[0].entry;
    const DType type = entry.type == DType::f64 ? DType::f32 : entry.type;
    const Sizes sizes = {static_cast<int64_t>(sources.size()), entry.sizes[0], entry.sizes[1]};
    auto load = [sources, type, sizes] {
      HostTensor all = HostTensor::allocate(type, sizes);
      std::byte* to = all.mutable_bytes().data();
      for (const ShardTensor& source : sources) {
        const HostTensor stored = source.shard->tensor(*source.entry);
        const HostTensor one = stored.type == type ? stored : to_f32(stored);
        to = std::copy(one.bytes.begin(), one.bytes.end(), to);
        source.shard->file()->release(stored.bytes);  // a copy: the pages that it came from needn't stay
      }
      return all;
    };
    return {gguf_name(rule, layer), type, sizes, checked_mul(element_count(sizes), info(type).block_bytes),
            std::move(load)};
  }

  StoredTensor stored(const ShardTensor& source, const TensorName& rule, int64_t layer) {
    const SafetensorsEntry& entry = *source.entry;
    check_sizes(source);
    std::string gguf = gguf_name(rule, layer);
    if (!names_.insert(gguf).second) fail(source, "stands in two files");
    const Sizes sizes = changed_sizes(source, rule.change);
    const bool widened = entry.sizes.size() == 1 || rule.change == Change::plus_one || rule.change == Change::squeeze ||
                         entry.type == DType::f64;
    const DType type = widened ? DType::f32 : entry.type;
    const int64_t heads =
        rule.change == Change::rope_rows_q || rule.change == Change::rope_rows_k ? heads_for(source, rule.change) : 0;
    auto load = [source, change = rule.change, widened, heads, sizes] {
      const HostTensor stored = source.shard->tensor(*source.entry);
      HostTensor t = change == Change::plus_one           ? plus_one(stored)
                     : change == Change::minus_exp_column ? minus_exp(stored)
                     : heads > 0                          ? halves_to_pairs(stored, heads)
                                                          : stored;
      if (widened) t = to_f32(t);
      t.sizes = sizes;
      // A converted tensor is a copy: the pages that it came from needn't stay.
      if (t.bytes.data() != stored.bytes.data()) source.shard->file()->release(stored.bytes);
      return t;
    };
    return {std::move(gguf), type, sizes, checked_mul(element_count(entry.sizes), info(type).block_bytes),
            std::move(load)};
  }

  // Before anything is sized by the vocabulary that config.json states.
  void check_embedding(const ModelFile& model) const {
    const StoredTensor* embedding = model.find("token_embd.weight");
    const std::string_view name = architecture_.tensors.front().hf;  // every architecture begins with it
    if (!embedding) bad_input("{}: no tensor \"{}\"", folder_.string(), name);
    const int64_t vocabulary = config_.count("vocab_size"), width = config_.count("hidden_size");
    if (embedding->sizes != Sizes{vocabulary, width})
      bad_input("{}: {} is {}, but config.json says \"vocab_size\" {} and \"hidden_size\" {}", folder_.string(), name,
                to_string(embedding->sizes), vocabulary, width);
    if (!tied_ && !model.find("output.weight"))
      bad_input("{}: no tensor \"lm_head.weight\", and \"tie_word_embeddings\" isn't true", folder_.string());
  }

  const std::filesystem::path& folder_;
  const HfConfig& config_;
  const Architecture& architecture_;
  Shards shards_;
  int64_t layers_ = 0, heads_ = 0, kv_heads_ = 0;
  bool tied_ = false;
  std::unordered_set<std::string> names_;
};

const Architecture& architecture_of(const HfConfig& config) {
  const Json* classes = config.find("architectures");
  if (!classes || !classes->is_array() || classes->empty() || !classes->front().is_string())
    bad_input("{}: \"architectures\" doesn't name a class", config.source());
  const std::string& name = classes->front().get_ref<const std::string&>();
  const Architecture* found = find_architecture(name);
  if (!found)
    bad_input("{}: architecture {} isn't supported; known are {}", config.source(), name, known_architectures());
  return found->variant ? *found->variant(config) : *found;
}

}  // namespace

bool is_hf_folder(const std::filesystem::path& folder) { return file_exists(folder / "config.json"); }

ModelFile open_hf_folder(const std::filesystem::path& folder) {
  const auto path = folder / "config.json";
  const HfConfig config(parse_json(MappedFile::open(path)->text(), path.string()), path.string());
  if (is_hf_whisper(config)) return open_hf_whisper(folder, config);
  if (is_hf_qwen3_tts(config)) return open_hf_qwen3_tts(folder, config);
  if (is_hf_qwen3_tts_codec(config)) return open_hf_qwen3_tts_codec(folder, config);
  return FolderReader(folder, config, architecture_of(config)).read();
}

}  // namespace consonant
