// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace consonant {

// A model that `pull` knows by name.
struct CatalogueEntry {
  std::string name;
  std::string source;  // URL, or hf:owner/repo[/file]
  std::string place;   // file or folder under `models_folder`
  std::string revision = "main";
  std::string sha256;  // of a single file; empty: what the hub says
  int64_t bytes = -1;  // about, of a folder
  std::string what;    // for people: what it is and its licence
};

const std::vector<CatalogueEntry>& catalogue();
const CatalogueEntry* find_in_catalogue(std::string_view name);

// Where models are pulled to: $XDG_CACHE_HOME/consonant/models, or ~/.cache/consonant/models.
std::filesystem::path models_folder();

// What `-m` names: a path that exists, else something in `models_folder` by its catalogue name, its file name (with or
// without the ending), or owner/repo[/file] with or without "hf:". What is found nowhere stays as it is, for the loader
// to complain about; a name of the catalogue that hasn't been pulled is bad input that says how to get it.
std::string resolve_model(const std::string& name);

// Where `pull` puts hf:owner/repo[/file], below `models_folder`.
std::filesystem::path hub_place(std::string_view owner, std::string_view repo);

}  // namespace consonant
