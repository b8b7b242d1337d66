// SPDX-License-Identifier: Apache-2.0
#include "formats/hf_shards.hpp"

#include <set>
#include <string>

#include "base/error.hpp"
#include "formats/hf_config.hpp"
#include "formats/json.hpp"

namespace consonant {

namespace {

Shard add_shard(Shards& shards, const std::filesystem::path& path) {
  auto shard = std::make_shared<const SafetensorsFile>(SafetensorsFile::open(path));
  shards.files.push_back(shard);
  shards.paths.push_back(path);
  shards.bytes += shard->file()->size();
  return shard;
}

}  // namespace

Shards open_shards(const std::filesystem::path& folder) {
  Shards shards;
  const auto whole = folder / "model.safetensors", index_path = folder / "model.safetensors.index.json";
  if (file_exists(whole)) {
    const Shard shard = add_shard(shards, whole);
    for (const SafetensorsEntry& e : shard->entries()) shards.tensors.push_back({shard, &e});
    return shards;
  }
  if (!file_exists(index_path))
    bad_input("{}: has neither model.safetensors nor model.safetensors.index.json", folder.string());
  const HfConfig index(parse_json(MappedFile::open(index_path)->text(), index_path.string()), index_path.string());
  const Json* map = index.find("weight_map");
  if (!map || !map->is_object()) bad_input("{}: \"weight_map\" is missing or no object", index_path.string());
  std::set<std::string> names;
  for (const auto& [tensor, file] : map->items()) {
    if (!file.is_string()) bad_input("{}: the file of \"{}\" is no string", index_path.string(), tensor);
    const std::string name = file.get<std::string>();
    // A name with a folder in it could point anywhere on the machine.
    if (name.empty() || std::filesystem::path(name).filename() != name || name == "..")
      bad_input("{}: \"{}\" is no name of a file in this folder", index_path.string(), name);
    names.insert(name);
  }
  for (const std::string& name : names) {
    if (!file_exists(folder / name)) bad_input("{}: names {}, which is missing", index_path.string(), name);
    const Shard shard = add_shard(shards, folder / name);
    for (const SafetensorsEntry& e : shard->entries()) {
      const auto at = map->find(e.name);
      if (at != map->end() && *at == name) shards.tensors.push_back({shard, &e});
    }
  }
  std::set<std::string_view> found;
  for (const ShardTensor& s : shards.tensors) found.insert(s.entry->name);
  for (const auto& [tensor, file] : map->items())
    if (!found.count(tensor))
      bad_input("{}: {} should hold \"{}\", but doesn't", index_path.string(), file.get<std::string>(), tensor);
  return shards;
}

}  // namespace consonant
