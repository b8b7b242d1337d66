// SPDX-License-Identifier: Apache-2.0
#include "text/normalize.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <vector>

#include "base/error.hpp"
#include "base/utf8.hpp"

namespace consonant {

namespace {

int combining_class(utf8proc_int32_t c) { return utf8proc_get_property(c)->combining_class; }

// Marks that follow a base are sorted by their class, equals in the order of the text. The library's own sort exchanges
// neighbours, which takes quadratic time on a text that is one long run of marks.
void order_marks(std::vector<utf8proc_int32_t>& text) {
  for (size_t i = 0; i < text.size();) {
    if (combining_class(text[i]) == 0) {
      ++i;
      continue;
    }
    size_t end = i + 1;
    while (end < text.size() && combining_class(text[end]) != 0) ++end;
    std::stable_sort(text.begin() + static_cast<std::ptrdiff_t>(i), text.begin() + static_cast<std::ptrdiff_t>(end),
                     [](auto a, auto b) { return combining_class(a) < combining_class(b); });
    i = end;
  }
}

}  // namespace

std::string_view normalize_nfc(std::string_view text, std::string& storage) {
  // Everything below U+0300 is in form C already and never changes: its lead bytes lie below 0xCC.
  if (std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0xCC; })) return text;
  std::vector<utf8proc_int32_t> points;
  points.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    utf8proc_int32_t parts[32];  // the longest canonical decomposition has four
    int boundary = 0;
    const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(utf8_next(text, at)), parts, 32,
                                               UTF8PROC_DECOMPOSE, &boundary);
    if (count < 0 || count > 32) throw_error(Exit::failed, "normal form C: {}", utf8proc_errmsg(count));
    points.insert(points.end(), parts, parts + count);
  }
  order_marks(points);
  const auto length = utf8proc_normalize_utf32(points.data(), static_cast<utf8proc_ssize_t>(points.size()),
                                               static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
  if (length < 0) throw_error(Exit::failed, "normal form C: {}", utf8proc_errmsg(length));
  storage.clear();
  storage.reserve(text.size());
  for (utf8proc_ssize_t i = 0; i < length; ++i)
    append_utf8(storage, static_cast<char32_t>(points[static_cast<size_t>(i)]));
  return storage;
}

}  // namespace consonant
