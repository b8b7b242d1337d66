// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/mapped_file.hpp"
#include "tensor/host_tensor.hpp"

namespace consonant {

// A tensor as a safetensors header declares it.
struct SafetensorsEntry {
  std::string name;
  DType type;
  Sizes sizes;
  int64_t offset;  // from the start of the file
  int64_t bytes;
};

// A safetensors file: 8 bytes of header length, a JSON header, then the tensors without gap or overlap. Everything the
// header says is checked when the file is opened; tensors are views into the mapping.
class SafetensorsFile {
 public:
  static SafetensorsFile open(const std::filesystem::path& path) { return SafetensorsFile(MappedFile::open(path)); }
  explicit SafetensorsFile(std::shared_ptr<const MappedFile> file);

  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const std::vector<SafetensorsEntry>& entries() const { return entries_; }  // in the order of their data
  const SafetensorsEntry* find(std::string_view name) const;

  // A view into the file; a copy if the data isn't aligned to its elements, which the format allows. Bad input if
  // there is no such tensor.
  HostTensor tensor(std::string_view name) const;
  HostTensor tensor(const SafetensorsEntry& entry) const;

  const std::shared_ptr<const MappedFile>& file() const { return file_; }

 private:
  std::shared_ptr<const MappedFile> file_;
  std::map<std::string, std::string> metadata_;
  std::vector<SafetensorsEntry> entries_;
  std::unordered_map<std::string, size_t> index_;
};

struct NamedTensor {
  std::string name;
  HostTensor tensor;
};

// Writes to a temporary name beside `path`, then renames: a reader sees the old file or the whole new one. Wider
// elements come first so that each tensor is aligned. Quantised types have no place in the format and are refused.
void write_safetensors(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace consonant
