// SPDX-License-Identifier: Apache-2.0
#include "formats/hf_tokenizer.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/utf8.hpp"
#include "formats/mapped_file.hpp"

namespace consonant {

namespace {

enum TokenType : int64_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };

constexpr std::string_view space_mark = "\xE2\x96\x81";  // U+2581, a space in SentencePiece's vocabularies

HfConfig read_json(const std::filesystem::path& path) {
  return HfConfig(parse_json(MappedFile::open(path)->text(), path.string()), path.string());
}

HfConfig read_optional(const std::filesystem::path& path) {
  return file_exists(path) ? read_json(path) : HfConfig(Json::object(), path.string());
}

struct Token {
  std::string text;
  int64_t type = unused;
};

std::string replace_all(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size()) text.replace(at, from.size(), to);
  return text;
}

// Added tokens that aren't marked special but have the shape of control tokens count as such, as in published GGUF
// files.
bool looks_special(std::string_view text) {
  return (text.starts_with("<|") && text.ends_with("|>")) ||
         (text.starts_with("<\xEF\xBD\x9C") && text.ends_with("\xEF\xBD\x9C>")) || text == "<pad>" ||
         text == "<mask>" || text == "<2mass>" || text == "[@BOS@]" ||
         (text.starts_with("<unused") && text.ends_with(">"));
}

bool is_byte_name(std::string_view text) {
  const auto hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'F'); };
  return text.size() == 6 && text.starts_with("<0x") && hex(text[3]) && hex(text[4]) && text[5] == '>';
}

class Builder {
 public:
  Builder(const TokenizerFiles& files, const HfConfig& config, Meta& meta)
      : config_(config),
        meta_(meta),
        tokenizer_(files.tokenizer),
        model_(tokenizer_.object("model")),
        settings_(files.settings),
        generation_(files.generation),
        chat_template_(files.chat_template) {}

  void run() {
    check_model();
    read_vocabulary();
    read_added();
    read_post_processor();
    add_model_keys();
    add_token_keys();
    if (byte_level_)
      add_merges();
    else
      add_scores();
    add_special_ids();
    add_chat_templates();
  }

 private:
  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    bad_input("{}: {}", tokenizer_.source(), fmt::format(format, std::forward<Args>(args)...));
  }

  static bool has_byte_level(const Json* definition) {
    if (!definition || !definition->is_object()) return false;
    if (definition->value("type", Json()) == "ByteLevel") return true;
    for (const char* parts : {"pretokenizers", "decoders"})
      if (const auto at = definition->find(parts); at != definition->end() && at->is_array())
        for (const Json& part : *at)
          if (has_byte_level(&part)) return true;
    return false;
  }

  void check_model() {
    const std::string type = model_.string("type", "BPE");
    if (type != "BPE") fail("the tokenizer is of kind \"{}\"; only BPE is supported", type);
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
      if (!model_.string(key, "").empty()) fail("\"{}\" isn't supported", key);
    byte_level_ = has_byte_level(tokenizer_.find("pre_tokenizer"));
    if (!byte_level_ && !model_.boolean("byte_fallback", false))
      fail("the tokenizer is neither byte-level BPE nor BPE with byte fallback");
  }

  void place(int64_t id, std::string text, int64_t type) {
    Token& token = tokens_[static_cast<size_t>(id)];
    if (token.type != unused && token.text != text)
      fail("id {} stands for \"{}\" and for \"{}\"", id, token.text, text);
    token = {std::move(text), type};
  }

  void read_vocabulary() {
    const int64_t size = config_.count("vocab_size");
    const Json* vocab = model_.find("vocab");
    if (!vocab || !vocab->is_object() || vocab->empty()) fail("\"model\": \"vocab\" is missing or no object");
    tokens_.resize(static_cast<size_t>(size));
    const std::string unknown_text = model_.string("unk_token", "");
    for (const auto& [text, id] : vocab->items()) {
      if (!id.is_number_unsigned()) fail("token \"{}\" has no whole number as its id", text);
      if (id.get<uint64_t>() >= static_cast<uint64_t>(size))
        fail("token \"{}\" has id {}, but \"vocab_size\" in config.json is {}", text, id.get<uint64_t>(), size);
      int64_t type = normal;
      if (!byte_level_ && is_byte_name(text)) type = byte;
      if (!byte_level_ && text == unknown_text) type = unknown;
      place(id.get<int64_t>(), text, type);
      ids_.emplace(text, id.get<int64_t>());
    }
  }

  void read_added() {
    const Json* added = tokenizer_.find("added_tokens");
    if (!added) return;
    if (!added->is_array()) fail("\"added_tokens\" is no list");
    for (const Json& entry : *added) {
      const HfConfig token(entry, tokenizer_.source() + ": \"added_tokens\"");
      const std::string text = token.string("content", "");
      const auto id = token.id("id");
      if (text.empty() || !id) fail("an added token without \"content\" or \"id\"");
      if (*id >= static_cast<int64_t>(tokens_.size())) {  // for parts of a larger model: images, sound
        log_verbose("{}: added token \"{}\" has id {}, past the vocabulary of {}: left out", tokenizer_.source(), text,
                    *id, tokens_.size());
        continue;
      }
      Token& held = tokens_[static_cast<size_t>(*id)];
      if (held.type != unused && held.text != text)
        fail("id {} stands for \"{}\" and for \"{}\"", *id, held.text, text);
      ids_.emplace(text, *id);
      if (held.type == unknown) continue;
      const bool special = token.boolean("special", false) || looks_special(text);
      held = {special ? text : replace_all(text, space_mark, " "), special ? control : user_defined};
    }
  }

  std::optional<int64_t> find_id(const std::string& text) const {
    const auto at = ids_.find(text);
    return at == ids_.end() ? std::nullopt : std::optional(at->second);
  }

  // What a template puts before and after the text: there it stands whether begin and end tokens are added.
  void read_template(const HfConfig& processor) {
    const Json* single = processor.find("single");
    if (!single || !single->is_array()) return;
    std::vector<std::string> before, after;
    bool text_seen = false;
    for (const Json& piece : *single) {
      const HfConfig p(piece, processor.source());
      if (p.has("Sequence")) text_seen = true;
      if (p.has("SpecialToken")) (text_seen ? after : before).push_back(p.object("SpecialToken").string("id", ""));
    }
    adds_bos_ = !before.empty();
    adds_eos_ = !after.empty();
    if (before.size() > 1 || after.size() > 1)
      log_warning("{}: puts {} tokens before and {} after a text; only one each can be told", tokenizer_.source(),
                  before.size(), after.size());
    if (adds_bos_) template_bos_ = before.front();
    if (adds_eos_) template_eos_ = after.back();
  }

  void read_post_processor() {
    if (const Json* definition = tokenizer_.find("post_processor")) {
      const HfConfig processor(*definition, tokenizer_.source() + ": \"post_processor\"");
      if (processor.string("type", "") == "TemplateProcessing") read_template(processor);
      const Json* parts = processor.find("processors");
      if (parts && parts->is_array())
        for (const Json& part : *parts)
          if (const HfConfig p(part, processor.source()); p.string("type", "") == "TemplateProcessing")
            read_template(p);
    }
    adds_bos_ = settings_.boolean("add_bos_token", adds_bos_);
    adds_eos_ = settings_.boolean("add_eos_token", adds_eos_);
  }

  void add_model_keys() {
    const bool ignore_merges = model_.boolean("ignore_merges", false);
    add_string(meta_, "tokenizer.ggml.model", byte_level_ ? "gpt2" : "llama");
    if (!byte_level_) {
      add_string(meta_, "tokenizer.ggml.pre", "default");
      add_bool(meta_, "tokenizer.ggml.add_space_prefix", adds_space());
      return;
    }
    const PreTokenizer found = recognise_pre_tokenizer(tokenizer_, ignore_merges, adds_bos_);
    if (!found.pre.empty()) {
      add_string(meta_, "tokenizer.ggml.pre", found.pre);
    } else {
      const Json* definition = tokenizer_.find("pre_tokenizer");
      add_string(meta_, "tokenizer.consonant.pre_tokenizer",
                 (definition ? *definition : Json()).dump(-1, ' ', false, Json::error_handler_t::replace));
    }
    add_string(meta_, "tokenizer.consonant.normalizer", found.normalizer);
    add_bool(meta_, "tokenizer.consonant.ignore_merges", ignore_merges);
  }

  // Whether a space is put before the text: by a normaliser that prepends the mark, or by Metaspace.
  bool adds_space() const {
    const auto prepends = [](const Json& part) {
      if (!part.is_object()) return false;
      const Json type = part.value("type", Json());
      if (type == "Prepend") return true;
      if (type == "Metaspace") return part.value("prepend_scheme", Json("always")) != "never";
      return false;
    };
    for (const auto& [key, list] :
         {std::pair("normalizer", "normalizers"), std::pair("pre_tokenizer", "pretokenizers")}) {
      const Json* definition = tokenizer_.find(key);
      if (!definition) continue;
      if (prepends(*definition)) return true;
      if (const auto parts = definition->find(list); parts != definition->end() && parts->is_array())
        if (std::any_of(parts->begin(), parts->end(), prepends)) return true;
    }
    return false;
  }

  void add_token_keys() {
    MetaStrings texts;
    MetaInts types;
    for (size_t i = 0; i < tokens_.size(); ++i) {
      if (tokens_[i].type == unused) tokens_[i].text = fmt::format("[PAD{}]", i);
      texts.push_back(meta_.keep(std::move(tokens_[i].text)));
      types.push_back(tokens_[i].type);
    }
    meta_.add("tokenizer.ggml.tokens", {MetaType::string, true, std::move(texts)});
    meta_.add("tokenizer.ggml.token_type", {MetaType::i32, true, std::move(types)});
  }

  // Each merge as its two parts: ["a", "b"] or, in older files, "a b".
  std::vector<std::pair<std::string, std::string>> merges() const {
    const Json* list = model_.find("merges");
    if (!list || !list->is_array()) fail("\"model\": \"merges\" is missing or no list");
    std::vector<std::pair<std::string, std::string>> out;
    for (const Json& merge : *list) {
      if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
        out.emplace_back(merge[0].get<std::string>(), merge[1].get<std::string>());
        continue;
      }
      const std::string text = merge.is_string() ? merge.get<std::string>() : "";
      const size_t space = text.find(' ');
      if (space == 0 || space == text.npos || space + 1 == text.size())
        fail("merge {} is neither a pair of strings nor two parts with a space between", out.size());
      out.emplace_back(text.substr(0, space), text.substr(space + 1));
    }
    return out;
  }

  void add_merges() {
    MetaStrings out;
    for (auto& [left, right] : merges()) {
      if (left.empty() || right.empty() || left.find(' ') != left.npos || right.find(' ') != right.npos)
        fail("merge {} has an empty part or one with a space", out.size());
      out.push_back(meta_.keep(left + ' ' + right));
    }
    meta_.add("tokenizer.ggml.merges", {MetaType::string, true, std::move(out)});
  }

  // SentencePiece merges by the score of the result, tokenizer.json by the rank of the pair. The order of the first
  // rank of each result gives scores that agree, if all pairs of one result stand together (in files made from
  // SentencePiece models they do). What no pair makes comes after, in the order of ids.
  void add_scores() {
    MetaFloats scores(tokens_.size(), 0.0);
    std::vector<bool> scored(tokens_.size(), false);
    int64_t next = 0, last = -1;
    bool apart = false;
    for (const auto& [left, right] : merges()) {
      const auto id = find_id(left + right);
      if (!id) fail("the merge of \"{}\" and \"{}\" makes no token", left, right);
      apart |= scored[static_cast<size_t>(*id)] && *id != last;
      last = *id;
      if (scored[static_cast<size_t>(*id)]) continue;
      scored[static_cast<size_t>(*id)] = true;
      scores[static_cast<size_t>(*id)] = -static_cast<double>(next++);
    }
    if (apart) log_warning("{}: its order of merges can't be told exactly by scores", tokenizer_.source());
    const MetaInts& types = meta_.integers("tokenizer.ggml.token_type");
    for (size_t i = 0; i < scores.size(); ++i) {
      if (types[i] == normal && !scored[i]) scores[i] = -static_cast<double>(next++);
      if (types[i] == unused) scores[i] = -10000;
      if (types[i] == user_defined) scores[i] = -1000;
    }
    meta_.add("tokenizer.ggml.scores", {MetaType::f32, true, std::move(scores)});
  }

  // The id of the token that tokenizer_config.json names, else of config.json.
  std::optional<int64_t> special_id(const std::string& kind) const {
    const std::string key = kind + "_token";
    const Json* named = settings_.find(key);
    if (named && named->is_object()) {
      const auto content = named->find("content");
      named = content == named->end() ? nullptr : &*content;
    }
    if (named && named->is_string())
      if (const auto id = find_id(named->get<std::string>())) return id;
    return config_.id(key + "_id");
  }

  void add_id(const char* key, std::optional<int64_t> id) {
    if (!id) return;
    if (*id >= static_cast<int64_t>(tokens_.size()))
      bad_input("{}: {} would be {}, past the vocabulary of {}", meta_.source, key, *id, tokens_.size());
    add_u32(meta_, key, *id);
  }

  void add_special_ids() {
    auto bos = special_id("bos"), eos = special_id("eos");
    if (!bos && adds_bos_) bos = find_id(template_bos_);
    if (!eos && adds_eos_) eos = find_id(template_eos_);
    add_id("tokenizer.ggml.bos_token_id", bos);
    add_id("tokenizer.ggml.eos_token_id", eos);
    add_id("tokenizer.ggml.unknown_token_id", special_id("unk"));
    add_id("tokenizer.ggml.padding_token_id", special_id("pad"));
    add_more_ends(eos);
    add_bool(meta_, "tokenizer.ggml.add_bos_token", adds_bos_);
    add_bool(meta_, "tokenizer.ggml.add_eos_token", adds_eos_);
  }

  // generation_config.json may list several tokens that end an answer; GGUF has two more keys for such.
  void add_more_ends(std::optional<int64_t> eos) {
    std::vector<int64_t> ends;
    for (const HfConfig* file : std::array<const HfConfig*, 2>{&generation_, &config_}) {
      const Json* list = file->find("eos_token_id");
      if (!list) continue;
      for (const Json& id : list->is_array() ? *list : Json::array({*list}))
        if (id.is_number_unsigned() && id.get<uint64_t>() < tokens_.size() && id != eos.value_or(-1) &&
            std::find(ends.begin(), ends.end(), id.get<int64_t>()) == ends.end())
          ends.push_back(id.get<int64_t>());
    }
    if (!ends.empty()) add_id("tokenizer.ggml.eot_token_id", ends[0]);
    if (ends.size() > 1) add_id("tokenizer.ggml.eom_token_id", ends[1]);
    if (ends.size() > 2) log_warning("{}: {} tokens end an answer; GGUF can name three", meta_.source, ends.size() + 1);
  }

  void add_chat_templates() {
    if (chat_template_) return add_template("", *chat_template_);
    const Json* found = settings_.find("chat_template");
    if (!found) return;
    if (found->is_string()) return add_template("", found->get<std::string>());
    if (!found->is_array()) bad_input("{}: \"chat_template\" is neither a string nor a list", settings_.source());
    for (const Json& entry : *found) {
      const HfConfig named(entry, settings_.source() + ": \"chat_template\"");
      const std::string name = named.string("name", "");
      add_template(name == "default" ? "" : "." + name, named.string("template", ""));
    }
  }

  void add_template(const std::string& suffix, std::string text) {
    if (!is_utf8(text)) bad_input("{}: the chat template isn't UTF-8", meta_.source);
    add_string(meta_, "tokenizer.chat_template" + suffix, std::move(text));
  }

  const HfConfig& config_;
  Meta& meta_;
  const HfConfig& tokenizer_;
  const HfConfig model_;
  const HfConfig& settings_;
  const HfConfig& generation_;
  const std::optional<std::string>& chat_template_;
  bool byte_level_ = false, adds_bos_ = false, adds_eos_ = false;
  std::string template_bos_, template_eos_;
  std::vector<Token> tokens_;  // by id
  std::unordered_map<std::string, int64_t> ids_;
};

}  // namespace

TokenizerFiles TokenizerFiles::read(const std::filesystem::path& folder) {
  TokenizerFiles files{read_json(folder / "tokenizer.json"), read_optional(folder / "tokenizer_config.json"),
                       read_optional(folder / "generation_config.json"), std::nullopt};
  const auto chat_template = folder / "chat_template.jinja";
  if (file_exists(chat_template)) files.chat_template = std::string(MappedFile::open(chat_template)->text());
  return files;
}

void add_tokenizer(const TokenizerFiles& files, const HfConfig& config, Meta& meta) {
  Builder(files, config, meta).run();
}

}  // namespace consonant
