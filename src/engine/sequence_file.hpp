// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "engine/runner.hpp"
#include "formats/model_file.hpp"

namespace consonant {

// A sequence as a file: the tokens that it has read, its pages of the cache and its slots of state, to go on from
// without reading them again. The file, in little-endian order:
//   "CNSNTSEQ", uint32 version 1, uint32 size of the header
//   the header, JSON: "model" (its fingerprint), "kv" (the cache's type), "tokens"
//   each part of Runner::parts, as it lies in memory
//   32 bytes: SHA-256 of all that precedes
// The file appears under its name once it is whole.
void save_sequence(const std::filesystem::path& path, Runner& runner, int sequence, std::span<const int32_t> tokens,
                   const std::string& model);

// Puts what was saved in place of what the sequence holds, and returns the tokens. Bad input that says why, before
// anything is changed, for a file that is damaged or cut short, of another model or another type of cache, or longer
// than the context.
std::vector<int32_t> restore_sequence(const std::filesystem::path& path, Runner& runner, int sequence,
                                      const std::string& model);

// Tells a model from others without reading all of it: of its files' sizes and of parts spread over each, and of what
// was set in its metadata.
std::string fingerprint(const ModelFile& file, const std::vector<std::string>& overrides);

}  // namespace consonant
