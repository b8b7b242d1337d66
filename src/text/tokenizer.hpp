// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/meta.hpp"
#include "text/vocabulary.hpp"

namespace consonant {

struct EncodeOptions {
  bool parse_special = true;  // control tokens written out in the text ("<|im_end|>") are those tokens, else plain text
  bool add_special = false;   // BOS before and EOS after, as the model wants
};

struct DecodeOptions {
  bool skip_special = false;  // control and unknown tokens leave no text
};

// Text to token ids and back, as a model's metadata (tokenizer.ggml.*) describes it. Unchanging after `load`: any
// number of threads may use one.
class Tokenizer {
 public:
  // `meta` must outlive the tokenizer and stay as it is: a large vocabulary remains where the file has it. Bad input
  // for anything in it that can't be right, and for a way of splitting that isn't known.
  static Tokenizer load(const Meta& meta);

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  // Bad input if `text` isn't UTF-8: says at which byte.
  std::vector<int32_t> encode(std::string_view text, EncodeOptions options = EncodeOptions()) const;

  // The bytes that the ids stand for; whole characters only if the ids make such. Bad input for an id that isn't one.
  std::string decode(std::span<const int32_t> ids, DecodeOptions options = DecodeOptions()) const;
  std::string bytes(int32_t id) const;  // of one token
  void append_bytes(int32_t id, std::string& out) const;

  int32_t size() const { return vocabulary_->size(); }
  std::string_view token_text(int32_t id) const { return vocabulary_->text(id); }  // as the vocabulary writes it
  TokenType type(int32_t id) const { return vocabulary_->type(id); }
  bool is_special(int32_t id) const;                                               // control or unknown
  int32_t find(std::string_view token) const { return vocabulary_->find(token); }  // by `token_text`; -1: none

  // -1 where the model has none.
  int32_t bos() const { return vocabulary_->bos; }
  int32_t eos() const { return vocabulary_->eos; }
  int32_t eot() const { return vocabulary_->eot; }  // end of a turn
  int32_t unknown() const { return vocabulary_->unknown; }
  int32_t padding() const { return vocabulary_->padding; }
  bool add_bos() const { return vocabulary_->add_bos; }
  bool add_eos() const { return vocabulary_->add_eos; }

  // Every id that ends a generation, ascending.
  const std::vector<int32_t>& end_ids() const { return vocabulary_->ends; }
  bool is_end(int32_t id) const;

 private:
  Tokenizer();
  std::unique_ptr<Vocabulary> vocabulary_;
  std::unique_ptr<class SpecialTokens> special_;
  std::unique_ptr<class FragmentEncoder> encoder_;
};

}  // namespace consonant
