// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/meta.hpp"

namespace consonant {

// As GGUF's tokenizer.ggml.token_type numbers them.
enum class TokenType : uint8_t { undefined = 0, normal, unknown, control, user_defined, unused, byte };
std::string_view name(TokenType type);

// Finds a token by its text: open addressing, at most half full, 8 bytes a slot. The strings stay where they are.
class TokenIndex {
 public:
  // Empty texts are left out. Returns the id of the first token whose text stood already, -1 if all differ.
  int32_t build(std::span<const std::string_view> tokens);
  int32_t find(std::string_view text) const;  // -1: no such token

 private:
  struct Slot {
    uint32_t tag = 0;
    int32_t id = -1;
  };
  std::span<const std::string_view> tokens_;
  std::vector<Slot> slots_;
  size_t mask_ = 0;
};

// The tokens of a model and what the metadata says of them. Views into `Meta`, which must outlive it (it holds the
// mapped file): a vocabulary of 262,144 tokens costs no copy of a string.
class Vocabulary {
 public:
  explicit Vocabulary(const Meta& meta);

  int32_t size() const { return static_cast<int32_t>(tokens_.size()); }
  std::string_view text(int32_t id) const { return tokens_[checked(id)]; }
  TokenType type(int32_t id) const { return types_[checked(id)]; }
  int32_t find(std::string_view text) const { return index_.find(text); }
  std::span<const std::string_view> texts() const { return tokens_; }
  size_t longest() const { return longest_; }            // bytes
  const std::string& source() const { return source_; }  // of the metadata, for messages

  // -1 where the model has none.
  int32_t bos = -1, eos = -1, eot = -1, eom = -1, unknown = -1, padding = -1;
  bool add_bos = false, add_eos = false;
  std::vector<int32_t> ends;  // every id that ends a generation, ascending

 private:
  size_t checked(int32_t id) const;
  void load_types(const Meta& meta);
  int32_t special(const Meta& meta, std::string_view key) const;
  void load_specials(const Meta& meta);
  void load_ends(const Meta& meta);

  std::string source_;
  std::span<const std::string_view> tokens_;
  std::vector<TokenType> types_;
  TokenIndex index_;
  size_t longest_ = 0;
  bool typed_ = false;  // the metadata has token types
};

}  // namespace consonant
