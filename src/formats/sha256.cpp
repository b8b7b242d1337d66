// SPDX-License-Identifier: Apache-2.0
#include "formats/sha256.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <fstream>
#include <memory>

#include "base/error.hpp"

namespace consonant {

std::string sha256_of_files(const std::vector<std::filesystem::path>& files) {
  const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> digest(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  const auto need = [](bool good) {
    if (!good) throw_error(Exit::failed, "SHA-256 can't be had from OpenSSL");
  };
  need(digest && EVP_DigestInit_ex(digest.get(), EVP_sha256(), nullptr) == 1);
  std::vector<char> block(size_t{1} << 20);
  for (const auto& path : files) {
    std::ifstream file(path, std::ios::binary);
    if (!file) bad_input("{}: can't be read", path.string());
    while (file.read(block.data(), static_cast<std::streamsize>(block.size())), file.gcount() > 0)
      need(EVP_DigestUpdate(digest.get(), block.data(), static_cast<size_t>(file.gcount())) == 1);
    if (file.bad()) bad_input("{}: can't be read to its end", path.string());
  }
  unsigned char bytes[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  need(EVP_DigestFinal_ex(digest.get(), bytes, &size) == 1);
  std::string text;
  for (unsigned i = 0; i < size; ++i) text += fmt::format("{:02x}", bytes[i]);
  return text;
}

}  // namespace consonant
