// SPDX-License-Identifier: Apache-2.0
#include "cli/digest.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "base/error.hpp"

namespace consonant {

std::string digest_of(const std::filesystem::path& path, Digest kind, const std::function<bool()>& going_on) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (!file) throw_error(Exit::failed, "{}: can't be read: {}", path.string(), std::strerror(errno));
  const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  bool good = context && EVP_DigestInit_ex(context.get(), kind == Digest::sha256 ? EVP_sha256() : EVP_sha1(), nullptr);
  if (kind == Digest::git_blob) {
    const std::string head = fmt::format("blob {}", std::filesystem::file_size(path));
    good = good && EVP_DigestUpdate(context.get(), head.c_str(), head.size() + 1);
  }
  std::vector<unsigned char> block(size_t{1} << 20);
  while (const size_t n = std::fread(block.data(), 1, block.size(), file.get())) {
    good = good && EVP_DigestUpdate(context.get(), block.data(), n);
    if (going_on && !going_on()) return "";
  }
  if (std::ferror(file.get())) throw_error(Exit::failed, "{}: can't be read: {}", path.string(), std::strerror(errno));
  unsigned char bytes[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  if (!good || !EVP_DigestFinal_ex(context.get(), bytes, &size))
    throw_error(Exit::failed, "{}: its digest can't be computed", path.string());
  std::string text;
  for (unsigned i = 0; i < size; ++i) text += fmt::format("{:02x}", bytes[i]);
  return text;
}

}  // namespace consonant
