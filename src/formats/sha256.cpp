// SPDX-License-Identifier: Apache-2.0
#include "formats/sha256.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <fstream>

#include "base/error.hpp"

namespace consonant {

namespace {

void need(bool good) {
  if (!good) throw_error(Exit::failed, "SHA-256 can't be had from OpenSSL");
}

EVP_MD_CTX* context(void* state) { return static_cast<EVP_MD_CTX*>(state); }

}  // namespace

Sha256::Sha256() : state_(EVP_MD_CTX_new(), [](void* state) { EVP_MD_CTX_free(context(state)); }) {
  need(state_ && EVP_DigestInit_ex(context(state_.get()), EVP_sha256(), nullptr) == 1);
}

void Sha256::add(std::span<const std::byte> bytes) {
  need(EVP_DigestUpdate(context(state_.get()), bytes.data(), bytes.size()) == 1);
}

Sha256::Digest Sha256::finish() {
  Digest digest;
  unsigned size = 0;
  need(EVP_DigestFinal_ex(context(state_.get()), reinterpret_cast<unsigned char*>(digest.data()), &size) == 1);
  need(size == digest.size());
  return digest;
}

std::string hexadecimal(const Sha256::Digest& digest) {
  std::string text;
  for (const std::byte b : digest) text += fmt::format("{:02x}", std::to_integer<unsigned>(b));
  return text;
}

std::string sha256_of_files(const std::vector<std::filesystem::path>& files) {
  Sha256 sum;
  std::vector<char> block(size_t{1} << 20);
  for (const auto& path : files) {
    std::ifstream file(path, std::ios::binary);
    if (!file) bad_input("{}: can't be read", path.string());
    while (file.read(block.data(), static_cast<std::streamsize>(block.size())), file.gcount() > 0)
      sum.add(std::as_bytes(std::span(block.data(), static_cast<size_t>(file.gcount()))));
    if (file.bad()) bad_input("{}: can't be read to its end", path.string());
  }
  return hexadecimal(sum.finish());
}

}  // namespace consonant
