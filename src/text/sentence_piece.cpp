// SPDX-License-Identifier: Apache-2.0
#include "text/sentence_piece.hpp"

#include <cmath>
#include <cstring>

#include "base/error.hpp"
#include "base/utf8.hpp"

namespace consonant {

namespace {

constexpr std::string_view space_mark = "\xE2\x96\x81";  // U+2581

// A float's order as unsigned integers, turned round: the highest score has the lowest number.
uint32_t priority_of(float score) {
  score += 0.0f;  // -0 is 0
  uint32_t bits;
  std::memcpy(&bits, &score, 4);
  const uint32_t ascending = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
  return ~ascending;
}

// The byte that "<0x0A>" names, or -1.
int named_byte(std::string_view text) {
  const auto digit = [](char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
  };
  if (text.size() != 6 || text.substr(0, 3) != "<0x" || text[5] != '>') return -1;
  const int high = digit(text[3]), low = digit(text[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

// Whether well-formed UTF-8 can hold the byte.
bool in_utf8(int byte) { return byte != 0xC0 && byte != 0xC1 && byte < 0xF5; }

}  // namespace

SentencePiece::SentencePiece(const Meta& meta, const Vocabulary& vocabulary)
    : vocabulary_(vocabulary), add_space_(meta.boolean("tokenizer.ggml.add_space_prefix", true)) {
  load_scores(meta);
  load_bytes();
  load_joins();
}

void SentencePiece::load_scores(const Meta& meta) {
  constexpr std::string_view key = "tokenizer.ggml.scores";
  const MetaFloats& scores = meta.numbers(key);
  if (scores.size() != vocabulary_.texts().size())
    bad_input("{}: {}: {} values for {} tokens", vocabulary_.source(), key, scores.size(), vocabulary_.size());
  priorities_.reserve(scores.size());
  for (size_t i = 0; i < scores.size(); ++i) {
    if (std::isnan(scores[i])) bad_input("{}: {}: the score of token {} is not a number", vocabulary_.source(), key, i);
    priorities_.push_back(priority_of(static_cast<float>(scores[i])));
  }
}

void SentencePiece::load_bytes() {
  bytes_.fill(-1);
  for (int32_t id = 0; id < vocabulary_.size(); ++id) {
    if (vocabulary_.type(id) != TokenType::byte) continue;
    const int byte = named_byte(vocabulary_.text(id));
    if (byte < 0)
      bad_input("{}: token {} ('{}') is of type byte: a name such as <0x0A> wanted", vocabulary_.source(), id,
                vocabulary_.text(id));
    bytes_[static_cast<size_t>(byte)] = id;
  }
  if (vocabulary_.unknown >= 0) return;
  for (int b = 0; b < 256; ++b)
    if (in_utf8(b) && bytes_[static_cast<size_t>(b)] < 0)
      bad_input("{}: tokenizer.ggml.tokens: no byte token <0x{:02X}> and no unknown token to stand for it",
                vocabulary_.source(), b);
}

// The id of a token that text may merge into, or -1. Those that stand for something else than their text are no such.
int32_t SentencePiece::mergeable(std::string_view text) const {
  if (text.size() > vocabulary_.longest()) return -1;
  const int32_t id = vocabulary_.find(text);
  if (id < 0) return -1;
  const TokenType type = vocabulary_.type(id);
  return type == TokenType::normal || type == TokenType::user_defined || type == TokenType::undefined ? id : -1;
}

// No merge crosses a space where no token holds one after such a byte, so text can be cut there: short words merge much
// faster than one long text, and into the same tokens.
void SentencePiece::load_joins() {
  for (const std::string_view text : vocabulary_.texts())
    for (size_t at = 0; (at = text.find(space_mark, at + 1)) != std::string_view::npos;)
      joins_[static_cast<uint8_t>(text[at - 1])] = true;
}

size_t SentencePiece::word_end(std::string_view marked, size_t from) const {
  for (size_t at = from; (at = marked.find(space_mark, at + 1)) != std::string_view::npos;)
    if (!joins_[static_cast<uint8_t>(marked[at - 1])]) return at;
  return marked.size();
}

void SentencePiece::encode(std::string_view text, bool opens, std::vector<int32_t>& ids) const {
  if (text.empty()) return;
  std::string marked;
  marked.reserve(text.size() + text.size() / 2);
  if (opens && add_space_) marked.append(space_mark);
  for (const char c : text) c == ' ' ? marked.append(space_mark) : marked.append(1, c);
  Merger merger;
  bool after_unknown = false;
  for (size_t at = 0; at < marked.size();) {
    const size_t end = word_end(marked, at);
    encode_word(std::string_view(marked).substr(at, end - at), merger, after_unknown, ids);
    at = end;
  }
}

void SentencePiece::encode_word(std::string_view word, Merger& merger, bool& after_unknown,
                                std::vector<int32_t>& ids) const {
  merger.clear();
  for (size_t at = 0; at < word.size();) {
    const auto length = static_cast<size_t>(utf8_length(word.substr(at)));
    merger.add(static_cast<uint32_t>(at), static_cast<uint32_t>(length), mergeable(word.substr(at, length)));
    at += length;
  }
  merger.run([&](const Symbol& left, const Symbol& right) {
    const int32_t id = mergeable(word.substr(left.start, left.length + right.length));
    return id < 0 ? Merge{} : Merge{priorities_[static_cast<size_t>(id)], id};
  });
  merger.each([&](const Symbol& symbol) {
    bool unknown = false;
    if (symbol.id >= 0) {
      ids.push_back(symbol.id);
    } else {
      const std::string_view bytes = word.substr(symbol.start, symbol.length);
      for (const char c : bytes) unknown |= bytes_[static_cast<uint8_t>(c)] < 0;
      if (!unknown)
        for (const char c : bytes) ids.push_back(bytes_[static_cast<uint8_t>(c)]);
      else if (!after_unknown)  // neighbours without a token share one unknown token
        ids.push_back(vocabulary_.unknown);
    }
    after_unknown = unknown;
  });
}

void SentencePiece::decode(int32_t id, std::string& out) const {
  const std::string_view text = vocabulary_.text(id);
  switch (vocabulary_.type(id)) {
    case TokenType::byte:
      out.push_back(static_cast<char>(named_byte(text)));
      return;
    case TokenType::user_defined:
      out.append(text);
      return;
    case TokenType::unused:
      return;
    default:
      break;
  }
  size_t from = 0;
  for (size_t at; (at = text.find(space_mark, from)) != std::string_view::npos; from = at + space_mark.size())
    out.append(text.substr(from, at - from)).push_back(' ');
  out.append(text.substr(from));
}

}  // namespace consonant
