// SPDX-License-Identifier: Apache-2.0
#include "text/byte_bpe.hpp"

#include <bit>

#include "base/byte_level.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "base/utf8.hpp"
#include "text/normalize.hpp"

namespace consonant {

namespace {

uint64_t pair_of(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

// A Hugging Face folder states its normaliser; in a GGUF file it follows from the name of the pre-tokenizer.
bool wants_nfc(const Meta& meta, const PreTokenizerRule& rule) {
  constexpr std::string_view key = "tokenizer.consonant.normalizer";
  const std::string_view stated = meta.string(key, rule.nfc ? "nfc" : "none");
  if (stated != "nfc" && stated != "none")
    bad_input("{}: the tokenizer's normalizer is {}: only NFC or none is known for byte-level BPE", meta.source,
              sanitize_utf8(stated));
  return stated == "nfc";
}

}  // namespace

PairTable::PairTable(size_t pairs) : slots_(std::bit_ceil(pairs + pairs / 3 + 2)), mask_(slots_.size() - 1) {}

size_t PairTable::slot_of(uint64_t pair) const {
  uint64_t h = pair * 0x9E3779B97F4A7C15u;
  h = (h ^ h >> 32) * 0x9E3779B97F4A7C15u;
  size_t at = (h >> 32) & mask_;
  while (slots_[at].pair != pair && slots_[at].pair != ~uint64_t{0}) at = (at + 1) & mask_;
  return at;
}

void PairTable::add(int32_t left, int32_t right, Merge merge) {
  Slot& slot = slots_[slot_of(pair_of(left, right))];
  if (slot.merge.id < 0) slot = {pair_of(left, right), merge};
}

Merge PairTable::find(int32_t left, int32_t right) const { return slots_[slot_of(pair_of(left, right))].merge; }

struct ByteBpe::Scratch {
  Merger merger;
  std::string chars;                // of a word, in the byte-level alphabet
  std::array<int, 256> left_out{};  // how often each byte without a token was met
  int left_out_total = 0;
};

ByteBpe::ByteBpe(const Meta& meta, const Vocabulary& vocabulary, const PreTokenizerRule& rule)
    : vocabulary_(vocabulary),
      nfc_(wants_nfc(meta, rule)),
      whole_words_(meta.boolean("tokenizer.consonant.ignore_merges", rule.whole_words)),
      splitter_(rule) {
  load_bytes();
  load_merges(meta);
}

// Published vocabularies lack some bytes: those that UTF-8 never has, and rare control characters. One that can't write
// plain ASCII is damaged.
void ByteBpe::load_bytes() {
  std::string text;
  for (int b = 0; b < 256; ++b) {
    text.clear();
    append_utf8(text, byte_to_char(static_cast<uint8_t>(b)));
    const int32_t id = bytes_[static_cast<size_t>(b)] = vocabulary_.find(text);
    if (id < 0 && ((b >= ' ' && b <= '~') || b == '\n'))
      bad_input("{}: tokenizer.ggml.tokens: no token for the byte 0x{:02X} ('{}' in byte-level BPE)",
                vocabulary_.source(), b, text);
  }
}

void ByteBpe::load_merges(const Meta& meta) {
  constexpr std::string_view key = "tokenizer.ggml.merges";
  const MetaStrings& merges = meta.strings(key);
  pairs_ = PairTable(merges.size());
  std::string merged;
  int32_t id = -1;
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const std::string_view merge = merges[rank];
    const auto refuse = [&](std::string_view why) {
      bad_input("{}: {}: merge {} ('{}'): {}", vocabulary_.source(), key, rank, sanitize_utf8(merge), why);
    };
    const size_t space = merge.find(' ', 1);
    if (space == std::string_view::npos || space + 1 == merge.size()) refuse("two tokens with a space between wanted");
    const std::string_view left = merge.substr(0, space), right = merge.substr(space + 1);
    const int32_t left_id = vocabulary_.find(left), right_id = vocabulary_.find(right);
    if (left_id < 0) refuse("its first part is no token");
    if (right_id < 0) refuse("its second part is no token");
    merged.assign(left).append(right);
    // Trained vocabularies number what merges make in the merges' order: the next id is the likely one.
    if (++id >= vocabulary_.size() || vocabulary_.text(id) != merged) id = vocabulary_.find(merged);
    if (id < 0) refuse("what it makes is no token");
    pairs_.add(left_id, right_id, {static_cast<uint32_t>(rank), id});
  }
}

void ByteBpe::encode(std::string_view text, bool, std::vector<int32_t>& ids) const {
  std::string normal;
  if (nfc_) text = normalize_nfc(text, normal);
  Scratch scratch;
  for (const std::string_view word : splitter_.split(text)) encode_word(word, scratch, ids);
  if (scratch.left_out_total == 0) return;
  std::string which;
  for (size_t b = 0; b < 256; ++b)
    if (scratch.left_out[b] > 0) which += fmt::format("{}0x{:02X}", which.empty() ? "" : ", ", b);
  log_warning("{} bytes of the text have no token in this vocabulary and are left out: {}", scratch.left_out_total,
              which);
}

void ByteBpe::encode_word(std::string_view word, Scratch& scratch, std::vector<int32_t>& ids) const {
  if (whole_words_ && word.size() <= vocabulary_.longest()) {
    scratch.chars.clear();
    append_chars_of(word, scratch.chars);
    const int32_t id = vocabulary_.find(scratch.chars);
    if (id >= 0 && vocabulary_.type(id) == TokenType::normal) {
      ids.push_back(id);
      return;
    }
  }
  scratch.merger.clear();
  for (size_t i = 0; i < word.size(); ++i) {
    const auto byte = static_cast<uint8_t>(word[i]);
    // A byte without a token is left out, and its neighbours come together.
    if (bytes_[byte] >= 0) {
      scratch.merger.add(static_cast<uint32_t>(i), 1, bytes_[byte]);
    } else {
      ++scratch.left_out[byte];
      ++scratch.left_out_total;
    }
  }
  scratch.merger.run([this](const Symbol& left, const Symbol& right) { return pairs_.find(left.id, right.id); });
  scratch.merger.each([&](const Symbol& symbol) { ids.push_back(symbol.id); });
}

void ByteBpe::decode(int32_t id, std::string& out) const {
  const std::string_view text = vocabulary_.text(id);
  if (vocabulary_.type(id) == TokenType::user_defined)
    out.append(text);
  else if (vocabulary_.type(id) != TokenType::unused)
    append_bytes_of(text, out);
}

}  // namespace consonant
