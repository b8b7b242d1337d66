// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace consonant {

// SHA-256 of the files' bytes, one after the other, in lower-case hexadecimal (FIPS 180-4).
std::string sha256_of_files(const std::vector<std::filesystem::path>& files);

}  // namespace consonant
