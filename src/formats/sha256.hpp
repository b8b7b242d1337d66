// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace consonant {

// SHA-256 (FIPS 180-4) of what is given part by part.
class Sha256 {
 public:
  using Digest = std::array<std::byte, 32>;

  Sha256();
  void add(std::span<const std::byte> bytes);
  void add(std::string_view text) { add(std::as_bytes(std::span(text))); }
  Digest finish();  // once, after all parts

 private:
  std::unique_ptr<void, void (*)(void*)> state_;  // OpenSSL's
};

std::string hexadecimal(const Sha256::Digest& digest);  // in lower case

// Of the files' bytes, one after the other, in hexadecimal.
std::string sha256_of_files(const std::vector<std::filesystem::path>& files);

}  // namespace consonant
