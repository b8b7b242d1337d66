// SPDX-License-Identifier: Apache-2.0
// From parsed GGUF files to a ModelFile: parts put together, tensors as views.
#include <charconv>
#include <optional>
#include <unordered_set>
#include <utility>

#include "base/error.hpp"
#include "formats/gguf.hpp"

namespace consonant {

namespace {

// NAME-00002-of-00005.gguf: the number and the count of a part, both from 1.
struct PartName {
  std::string prefix;
  int part, count;
};

std::optional<PartName> parse_part_name(const std::string& file_name) {
  constexpr std::string_view pattern = "-00001-of-00005.gguf";
  if (file_name.size() <= pattern.size()) return std::nullopt;
  const std::string_view tail = std::string_view(file_name).substr(file_name.size() - pattern.size());
  if (tail[0] != '-' || tail.substr(6, 4) != "-of-" || tail.substr(15) != ".gguf") return std::nullopt;
  PartName name{file_name.substr(0, file_name.size() - pattern.size()), 0, 0};
  const auto digits = [&](size_t at, int& value) {
    const auto [end, error] = std::from_chars(tail.data() + at, tail.data() + at + 5, value);
    return error == std::errc() && end == tail.data() + at + 5 && value > 0;
  };
  if (!digits(1, name.part) || !digits(10, name.count) || name.part > name.count) return std::nullopt;
  return name;
}

std::filesystem::path part_path(const std::filesystem::path& beside, const PartName& name, int part) {
  return beside.parent_path() / fmt::format("{}-{:05}-of-{:05}.gguf", name.prefix, part, name.count);
}

using Parts = std::vector<std::shared_ptr<GgufFile>>;

std::shared_ptr<GgufFile> open_part(const std::filesystem::path& path) {
  return std::make_shared<GgufFile>(parse_gguf(MappedFile::open(path)));
}

void check_part(const GgufFile& part, int64_t number, int64_t count) {
  const int64_t says_number = part.meta.integer("split.no"), says_count = part.meta.integer("split.count");
  if (says_number != number || says_count != count)
    bad_input("{}: has split.no {} and split.count {}, but its place among the parts wants {} and {}",
              part.file->name(), says_number, says_count, number, count);
}

Parts open_parts(const std::filesystem::path& path, std::vector<std::filesystem::path>& files) {
  Parts parts{open_part(path)};
  const int64_t count = parts[0]->meta.integer("split.count", 1);
  files = {path};
  if (count == 0 || count == 1) return parts;
  const auto name = parse_part_name(path.filename().string());
  if (!name)
    bad_input("{}: is one of {} parts, but isn't named like one: NAME-00001-of-{:05}.gguf", path.string(), count,
              count);
  if (name->count != count)
    bad_input("{}: is one of {} parts by split.count, but of {} by its name", path.string(), count, name->count);
  const std::shared_ptr<GgufFile> opened = parts[0];
  parts.clear();
  files.clear();
  int64_t tensors = 0;
  for (int i = 1; i <= name->count; ++i) {
    files.push_back(part_path(path, *name, i));
    if (i != name->part && !file_exists(files.back()))
      bad_input("{}: part {} of {} is missing: {}", path.string(), i, count, files.back().string());
    parts.push_back(i == name->part ? opened : open_part(files.back()));
    check_part(*parts.back(), i - 1, count);
    tensors += static_cast<int64_t>(parts.back()->tensors.size());
  }
  const int64_t expected = parts[0]->meta.integer("split.tensors.count");
  if (tensors != expected)
    bad_input("{}: {} parts hold {} tensors, should be {} (split.tensors.count)", path.string(), count, tensors,
              expected);
  return parts;
}

struct Place {
  std::shared_ptr<const MappedFile> file;
  std::span<const std::byte> bytes;
};

}  // namespace

ModelFile open_gguf(const std::filesystem::path& path) {
  ModelFile model;
  const Parts parts = open_parts(path, model.files);
  model.format = fmt::format("GGUF v{}", parts[0]->version);
  model.meta = std::shared_ptr<Meta>(parts[0], &parts[0]->meta);  // its strings live in the mapping
  std::unordered_set<std::string> seen;
  for (const auto& part : parts) {
    model.file_bytes += part->file->size();
    for (const GgufTensor& t : part->tensors) {
      const Place place{part->file, part->file->range(t.offset, t.bytes, t.name)};
      if (!seen.insert(t.name).second)
        bad_input("{}: tensor \"{}\" stands in an earlier part too", part->file->name(), t.name);
      model.tensors.push_back({t.name, t.type, t.sizes, t.bytes, [place, type = t.type, sizes = t.sizes] {
                                 return HostTensor{type, sizes, place.bytes, place.file};
                               }});
    }
  }
  model.release = [parts](std::span<const std::byte> part) {
    for (const auto& opened : parts)
      if (opened->file->holds(part)) opened->file->release(part);
  };
  return model;
}

}  // namespace consonant
