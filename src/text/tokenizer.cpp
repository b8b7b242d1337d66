// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer.hpp"

#include <algorithm>
#include <limits>

#include "base/error.hpp"
#include "base/utf8.hpp"
#include "text/byte_bpe.hpp"
#include "text/pre_tokenizer.hpp"
#include "text/sentence_piece.hpp"
#include "text/special_tokens.hpp"

namespace consonant {

namespace {

// Whether BOS or EOS is put around a text: what the metadata says, else `fallback` where there is such a token.
bool adds(const Meta& meta, std::string_view which, int32_t id, bool fallback) {
  const std::string key = fmt::format("tokenizer.ggml.add_{}_token", which);
  const bool wanted = meta.boolean(key, fallback && id >= 0);
  if (wanted && id < 0)
    bad_input("{}: {} is true, and there is no tokenizer.ggml.{}_token_id", meta.source, key, which);
  return wanted;
}

}  // namespace

Tokenizer::Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Tokenizer Tokenizer::load(const Meta& meta) {
  constexpr std::string_view key = "tokenizer.ggml.model";
  const std::string_view model = meta.string(key);
  if (model != "gpt2" && model != "llama")
    bad_input("{}: {} is '{}': only gpt2 (byte-level BPE) and llama (SentencePiece BPE) are known", meta.source, key,
              sanitize_utf8(model));
  Tokenizer t;
  bool add_bos = true;
  if (model == "gpt2") {
    // Refused before the vocabulary is read: the commonest fault of such files.
    const PreTokenizerRule& rule = find_pre_tokenizer(meta);
    add_bos = rule.add_bos;
    t.vocabulary_ = std::make_unique<Vocabulary>(meta);
    t.encoder_ = std::make_unique<ByteBpe>(meta, *t.vocabulary_, rule);
  } else {
    t.vocabulary_ = std::make_unique<Vocabulary>(meta);
    t.encoder_ = std::make_unique<SentencePiece>(meta, *t.vocabulary_);
  }
  t.vocabulary_->add_bos = adds(meta, "bos", t.bos(), add_bos);
  t.vocabulary_->add_eos = adds(meta, "eos", t.eos(), false);
  t.special_ = std::make_unique<SpecialTokens>(*t.vocabulary_);
  return t;
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
  // Places in a text are kept in 32 bits, and a space may take three bytes.
  if (text.size() > std::numeric_limits<int32_t>::max() / 4u)
    bad_input("the text has {} bytes: at most {} can be tokenized at once", text.size(),
              std::numeric_limits<int32_t>::max() / 4u);
  if (const size_t bad = find_bad_utf8(text); bad != std::string_view::npos)
    bad_input("the text isn't UTF-8: byte {} (0x{:02X}) is none that can stand there", bad,
              static_cast<unsigned char>(text[bad]));
  std::vector<int32_t> ids;
  if (options.add_special && add_bos()) ids.push_back(bos());
  bool opens = true;
  for (size_t at = 0; at < text.size();) {
    const SpecialTokens::Match next = special_->find(text, at, options.parse_special);
    if (next.at > at) {
      encoder_->encode(text.substr(at, next.at - at), opens, ids);
      opens = false;
    }
    if (next.id >= 0) {
      ids.push_back(next.id);
      opens = true;
    }
    at = next.at + next.length;
  }
  if (options.add_special && add_eos()) ids.push_back(eos());
  return ids;
}

bool Tokenizer::is_special(int32_t id) const {
  return type(id) == TokenType::control || type(id) == TokenType::unknown;
}

bool Tokenizer::is_end(int32_t id) const { return std::binary_search(end_ids().begin(), end_ids().end(), id); }

void Tokenizer::append_bytes(int32_t id, std::string& out) const {
  if (is_special(id))
    out.append(token_text(id));
  else
    encoder_->decode(id, out);
}

std::string Tokenizer::bytes(int32_t id) const {
  std::string out;
  append_bytes(id, out);
  return out;
}

std::string Tokenizer::decode(std::span<const int32_t> ids, DecodeOptions options) const {
  std::string out;
  bool opens = encoder_->adds_space();
  for (const int32_t id : ids) {
    const bool special = is_special(id);
    const size_t start = out.size();
    if (!(special && options.skip_special)) append_bytes(id, out);
    if (special || type(id) == TokenType::user_defined) {
      opens = encoder_->adds_space();
    } else {
      if (opens && out.size() > start && out[start] == ' ') out.erase(start, 1);
      opens = false;
    }
  }
  return out;
}

}  // namespace consonant
