// SPDX-License-Identifier: Apache-2.0
#include "formats/whisper/vocabulary_files.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/utf8.hpp"
#include "formats/hf_tokenizer.hpp"
#include "formats/mapped_file.hpp"

namespace consonant {

namespace {

HfConfig read_json(const std::filesystem::path& path) {
  return HfConfig(parse_json(MappedFile::open(path)->text(), path.string()), path.string());
}

HfConfig read_optional(const std::filesystem::path& path) {
  return file_exists(path) ? read_json(path) : HfConfig(Json::object(), path.string());
}

// Lines without their ends.
std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

class Reader {
 public:
  Reader(const std::filesystem::path& folder, int64_t size) : folder_(folder), size_(size) {}

  std::optional<WhisperTokens> read() {
    if (file_exists(folder_ / "tokenizer.json")) {
      read_tokenizer(read_json(folder_ / "tokenizer.json"));
    } else if (file_exists(folder_ / "vocab.json")) {
      read_vocab();
    } else if (file_exists(folder_ / "vocabulary.json") || file_exists(folder_ / "vocabulary.txt")) {
      read_list();
    } else {
      return std::nullopt;
    }
    return std::move(out_);
  }

 private:
  void place(const std::string& source, std::string text, uint64_t id) {
    if (id >= static_cast<uint64_t>(size_))
      bad_input("{}: token \"{}\" has id {}, but the model has {} tokens", source, text, id, size_);
    if (!is_utf8(text)) bad_input("{}: token {} isn't UTF-8", source, id);
    std::string& held = out_.texts[static_cast<size_t>(id)];
    if (!held.empty() && held != text) bad_input("{}: id {} stands for \"{}\" and for \"{}\"", source, id, held, text);
    held = std::move(text);
  }

  void place_all(const std::string& source, const Json& vocab) {
    for (const auto& [text, id] : vocab.items()) {
      if (!id.is_number_unsigned()) bad_input("{}: token \"{}\" has no whole number as its id", source, text);
      place(source, text, id.get<uint64_t>());
    }
  }

  // By the size of the model, which its tensors have confirmed.
  void make_room() { out_.texts.resize(static_cast<size_t>(size_)); }

  void add_merge(const std::string& source, std::string_view left, std::string_view right) {
    const auto wrong = [](std::string_view part) { return part.empty() || part.find(' ') != part.npos; };
    if (wrong(left) || wrong(right))
      bad_input("{}: merge {} isn't two parts with a space between", source, out_.merges.size());
    out_.merges.push_back(fmt::format("{} {}", left, right));
  }

  void add_merge(const std::string& source, std::string_view line) {
    const size_t space = line.find(' ');
    add_merge(source, line.substr(0, space), space == line.npos ? "" : line.substr(space + 1));
  }

  void read_tokenizer(const HfConfig& file) {
    const HfConfig model = file.object("model");
    if (const std::string type = model.string("type", "BPE"); type != "BPE")
      bad_input("{}: the tokenizer is of kind \"{}\", Whisper's is BPE", file.source(), type);
    const Json* vocab = model.find("vocab");
    if (!vocab || !vocab->is_object() || vocab->empty())
      bad_input("{}: \"model\": \"vocab\" is missing or no object", file.source());
    make_room();
    place_all(file.source(), *vocab);
    if (const Json* added = file.find("added_tokens")) {
      if (!added->is_array()) bad_input("{}: \"added_tokens\" is no list", file.source());
      for (const Json& entry : *added) add_token(HfConfig(entry, file.source() + ": \"added_tokens\""));
    }
    const Json* merges = model.find("merges");
    if (!merges || !merges->is_array()) bad_input("{}: \"model\": \"merges\" is missing or no list", file.source());
    for (const Json& merge : *merges) {
      if (merge.is_string())
        add_merge(file.source(), merge.get_ref<const std::string&>());
      else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string())
        add_merge(file.source(), merge[0].get_ref<const std::string&>(), merge[1].get_ref<const std::string&>());
      else
        add_merge(file.source(), "");
    }
    out_.has_merges = true;
    if (recognise_pre_tokenizer(file, false, false).pre != "gpt-2")
      log_warning("{}: splits text in another way than Whisper; prompts may be tokenized differently", file.source());
  }

  void add_token(const HfConfig& token) {
    const auto id = token.id("id");
    if (!id) bad_input("{}: a token without \"id\"", token.source());
    place(token.source(), token.string("content", ""), static_cast<uint64_t>(*id));
  }

  void read_vocab() {
    make_room();
    for (const char* name : {"vocab.json", "added_tokens.json"}) {
      const auto path = folder_ / name;
      if (file_exists(path)) place_all(path.string(), parse_json(MappedFile::open(path)->text(), path.string()));
    }
    const HfConfig settings = read_optional(folder_ / "tokenizer_config.json");
    const HfConfig added = settings.object("added_tokens_decoder");
    if (const Json* tokens = settings.find("added_tokens_decoder"))
      for (const auto& [number, token] : tokens->items()) {
        uint64_t id = 0;
        const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), id);
        if (error != std::errc() || end != number.data() + number.size())
          bad_input("{}: \"{}\" is no token id", added.source(), number);
        place(added.source(), HfConfig(token, added.source()).string("content", ""), id);
      }
    const auto path = folder_ / "merges.txt";
    const auto file = MappedFile::open(path);
    for (const std::string_view line : lines_of(file->text()))
      if (!line.empty() && !line.starts_with("#version")) add_merge(path.string(), line);
    out_.has_merges = true;
  }

  void read_list() {
    make_room();
    if (const auto path = folder_ / "vocabulary.json"; file_exists(path)) {
      const Json list = parse_json(MappedFile::open(path)->text(), path.string());
      if (!list.is_array()) bad_input("{}: is no list of tokens", path.string());
      for (size_t i = 0; i < list.size(); ++i) {
        if (!list[i].is_string()) bad_input("{}: token {} is no string", path.string(), i);
        place(path.string(), list[i].get<std::string>(), i);
      }
      return;
    }
    const auto path = folder_ / "vocabulary.txt";
    const auto file = MappedFile::open(path);
    const auto lines = lines_of(file->text());
    for (size_t i = 0; i < lines.size(); ++i) place(path.string(), std::string(lines[i]), i);
  }

  const std::filesystem::path& folder_;
  int64_t size_;
  WhisperTokens out_;
};

// A list of token ids; nothing if it isn't stated.
std::optional<MetaInts> ids_of(const HfConfig& file, std::string_view key) {
  const Json* list = file.find(key);
  if (!list) return std::nullopt;
  if (!list->is_array()) bad_input("{}: \"{}\" is no list", file.source(), key);
  MetaInts out;
  for (const Json& id : *list) {
    if (!id.is_number_unsigned()) bad_input("{}: \"{}\" holds {}, which is no token id", file.source(), key, id.dump());
    out.push_back(static_cast<int64_t>(std::min<uint64_t>(id.get<uint64_t>(), INT64_MAX)));
  }
  return out;
}

MetaInts heads_of(const HfConfig& file) {
  const Json* list = file.find("alignment_heads");
  MetaInts out;
  if (!list) return out;
  const auto whole = [](const Json& x) { return x.is_number_unsigned() && x.get<uint64_t>() < INT32_MAX; };
  for (const Json& pair : list->is_array() ? *list : Json::array({*list})) {
    if (!pair.is_array() || pair.size() != 2 || !whole(pair[0]) || !whole(pair[1]))
      bad_input("{}: \"alignment_heads\" isn't a list of pairs of layer and head", file.source());
    for (const Json& x : pair) out.push_back(x.get<int64_t>());
  }
  return out;
}

// Later files of Hugging Face keep the lists in generation_config.json; CTranslate2 has names of its own.
WhisperLists lists_of(const HfConfig& config, const HfConfig& generation) {
  WhisperLists lists;
  lists.alignment_heads = heads_of(generation.has("alignment_heads") ? generation : config);
  const auto first = [&](std::string_view hf, std::string_view ct2, bool& has, MetaInts& out) {
    for (const auto& [file, key] : {std::pair(&generation, hf), std::pair(&config, hf), std::pair(&config, ct2)})
      if (auto ids = ids_of(*file, key); ids && !has) out = std::move(*ids), has = true;
  };
  first("suppress_tokens", "suppress_ids", lists.has_suppressed, lists.suppressed);
  first("begin_suppress_tokens", "suppress_ids_begin", lists.has_suppressed_at_begin, lists.suppressed_at_begin);
  return lists;
}

std::string name_of(const std::filesystem::path& folder) {
  const auto name = std::filesystem::weakly_canonical(folder).filename().string();
  return sanitize_utf8(name);
}

}  // namespace

std::optional<WhisperTokens> read_whisper_tokens(const std::filesystem::path& folder, int64_t size) {
  return Reader(folder, size).read();
}

void add_whisper_folder(const std::filesystem::path& folder, const WhisperSizes& sizes, Meta& meta) {
  constexpr int32_t gpt2_words = 50256;  // the words of the English-only vocabulary are GPT-2's
  const HfConfig config = read_json(folder / "config.json"),
                 generation = read_optional(folder / "generation_config.json");
  add_whisper_metadata(sizes, name_of(folder), folder.string(), meta);
  WhisperLists lists = lists_of(config, generation);
  auto tokens = read_whisper_tokens(folder, sizes.vocabulary);
  if (!tokens) {
    add_whisper_lists(std::move(lists), sizes, {}, nullptr, meta);
    const auto start = config.id("decoder_start_token_id"), end = config.id("eos_token_id");
    if (start) add_u32(meta, "tokenizer.ggml.bos_token_id", *start);
    if (end) add_u32(meta, "tokenizer.ggml.eos_token_id", *end);
    return;
  }
  const WhisperControls controls =
      whisper_controls(std::vector<std::string_view>(tokens->texts.begin(), tokens->texts.end()), folder.string());
  // The ids of languages that config.json of an English-only model states are wrong in published files.
  tokens->multilingual = generation.boolean("is_multilingual", controls.end != gpt2_words);
  add_whisper_lists(std::move(lists), sizes, tokens->texts, &controls, meta);
  add_whisper_tokenizer(std::move(*tokens), controls, meta);
}

}  // namespace consonant
