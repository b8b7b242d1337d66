// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "formats/meta.hpp"

namespace consonant {

// How a published family of byte-level BPE tokenizers prepares its text, under the name that `tokenizer.ggml.pre` has.
struct PreTokenizerRule {
  std::string_view name;
  std::vector<std::string_view> patterns;  // applied in order, each within the pieces that the one before left
  bool nfc = false;                        // the text is brought to Unicode's normal form C first
  bool whole_words = false;                // a word that is a token is taken whole, whatever the merges say
  bool add_bos = false;                    // if the metadata doesn't say
};

const std::vector<PreTokenizerRule>& pre_tokenizer_rules();

// The rule that `tokenizer.ggml.pre` names. Bad input for an unknown or a missing name: says what was found, the names
// that are known, and how to state one.
const PreTokenizerRule& find_pre_tokenizer(const Meta& meta);

// Cuts text into the words within which BPE merges. Nothing is lost: the pieces, joined, are the text.
class Splitter {
 public:
  explicit Splitter(const PreTokenizerRule& rule);
  ~Splitter();
  Splitter(Splitter&&) noexcept;
  Splitter& operator=(Splitter&&) noexcept;

  // `text` must be UTF-8. Views into `text`, in order, none empty.
  std::vector<std::string_view> split(std::string_view text) const;

 private:
  struct Pattern;
  std::vector<std::unique_ptr<Pattern>> patterns_;
};

}  // namespace consonant
