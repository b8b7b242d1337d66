// SPDX-License-Identifier: Apache-2.0
#include "cli/files.hpp"

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <memory>

#include "base/error.hpp"
#include "base/utf8.hpp"

namespace consonant {

std::string read_file(const std::string& path) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (!file) bad_input("{}: {}", path, std::strerror(errno));
  std::string text;
  char buffer[1 << 16];
  while (const size_t n = std::fread(buffer, 1, sizeof buffer, file.get())) text.append(buffer, n);
  if (std::ferror(file.get())) bad_input("{}: {}", path, std::strerror(errno));
  return text;
}

void require_utf8(std::string_view text, std::string_view source) {
  const size_t bad = find_bad_utf8(text);
  if (bad != std::string_view::npos)
    bad_input("{}: byte {} (0x{:02x}) is not UTF-8", source, bad, static_cast<unsigned char>(text[bad]));
}

std::string read_text(const std::string& path) {
  std::string text = read_file(path);
  require_utf8(text, path);
  return text;
}

std::vector<int32_t> parse_tokens(std::string_view text, std::string_view source) {
  constexpr std::string_view separators = " \t\r\n,[]";
  std::vector<int32_t> tokens;
  size_t at = 0;
  while ((at = text.find_first_not_of(separators, at)) != std::string_view::npos) {
    const size_t end = std::min(text.find_first_of(separators, at), text.size());
    const std::string_view word = text.substr(at, end - at);
    int32_t token = 0;
    const auto [rest, error] = std::from_chars(word.data(), word.data() + word.size(), token);
    if (error != std::errc() || rest != word.data() + word.size() || token < 0)
      bad_input("{}: '{}' at byte {} is not a token id", source, sanitize_utf8(word), at);
    tokens.push_back(token);
    at = end;
  }
  return tokens;
}

}  // namespace consonant
