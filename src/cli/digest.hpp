// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace consonant {

// SHA-256 of a file, or SHA-1 of it as Git names a blob ("blob SIZE\0" before the bytes), in lower-case hexadecimal.
// `going_on` is asked now and then; the digest is empty if it says no.
enum class Digest { sha256, git_blob };
std::string digest_of(const std::filesystem::path& path, Digest kind, const std::function<bool()>& going_on = {});

}  // namespace consonant
