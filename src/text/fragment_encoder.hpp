// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace consonant {

// One family of tokenizers: what it does with text that holds no special tokens, and what its tokens stand for.
class FragmentEncoder {
 public:
  virtual ~FragmentEncoder() = default;

  // Appends the ids of `text`, which is UTF-8. `opens`: it stands at the start or after a special token.
  virtual void encode(std::string_view text, bool opens, std::vector<int32_t>& ids) const = 0;

  // Appends the bytes of a token that isn't special.
  virtual void decode(int32_t id, std::string& out) const = 0;

  // Encoding puts a space before text that opens, and decoding takes it away again.
  virtual bool adds_space() const { return false; }
};

}  // namespace consonant
