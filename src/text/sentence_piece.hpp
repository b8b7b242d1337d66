// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "formats/meta.hpp"
#include "text/fragment_encoder.hpp"
#include "text/merge.hpp"
#include "text/vocabulary.hpp"

namespace consonant {

// SentencePiece's BPE (GGUF's tokenizer model "llama"): spaces become U+2581, characters merge into the token of the
// best score, and what remains without a token is written in byte tokens.
class SentencePiece : public FragmentEncoder {
 public:
  // `vocabulary` must outlive it.
  SentencePiece(const Meta& meta, const Vocabulary& vocabulary);

  void encode(std::string_view text, bool opens, std::vector<int32_t>& ids) const override;
  void decode(int32_t id, std::string& out) const override;
  bool adds_space() const override { return add_space_; }

 private:
  void load_scores(const Meta& meta);
  void load_bytes();
  void load_joins();
  int32_t mergeable(std::string_view text) const;
  size_t word_end(std::string_view marked, size_t from) const;
  void encode_word(std::string_view word, Merger& merger, bool& after_unknown, std::vector<int32_t>& ids) const;

  const Vocabulary& vocabulary_;
  bool add_space_;
  std::vector<uint32_t> priorities_;  // ascending as scores descend
  std::array<int32_t, 256> bytes_;    // token of each byte, -1: none
  std::array<bool, 256> joins_{};     // bytes after which some token goes on with a space
};

}  // namespace consonant
