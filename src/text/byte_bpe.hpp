// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "formats/meta.hpp"
#include "text/fragment_encoder.hpp"
#include "text/merge.hpp"
#include "text/pre_tokenizer.hpp"
#include "text/vocabulary.hpp"

namespace consonant {

// Which two tokens merge, at what rank and into what: open addressing by both ids, 16 bytes a slot, at most three
// quarters full.
class PairTable {
 public:
  explicit PairTable(size_t pairs = 0);
  void add(int32_t left, int32_t right, Merge merge);  // the first of equal pairs counts
  Merge find(int32_t left, int32_t right) const;

 private:
  struct Slot {
    uint64_t pair = ~uint64_t{0};  // no pair: ids aren't negative
    Merge merge;
  };
  size_t slot_of(uint64_t pair) const;

  std::vector<Slot> slots_;
  size_t mask_;
};

// Byte-level BPE (GGUF's tokenizer model "gpt2"): text is cut into words, and within each word bytes merge by rank.
class ByteBpe : public FragmentEncoder {
 public:
  // `vocabulary` must outlive it.
  ByteBpe(const Meta& meta, const Vocabulary& vocabulary, const PreTokenizerRule& rule);

  void encode(std::string_view text, bool opens, std::vector<int32_t>& ids) const override;
  void decode(int32_t id, std::string& out) const override;

 private:
  struct Scratch;
  void load_bytes();
  void load_merges(const Meta& meta);
  void encode_word(std::string_view word, Scratch& scratch, std::vector<int32_t>& ids) const;

  const Vocabulary& vocabulary_;
  bool nfc_, whole_words_;
  Splitter splitter_;
  std::array<int32_t, 256> bytes_;  // token of each byte, -1: none
  PairTable pairs_;
};

}  // namespace consonant
