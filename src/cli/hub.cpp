// SPDX-License-Identifier: Apache-2.0
#include "cli/hub.hpp"

#include <algorithm>
#include <set>

#include "base/error.hpp"
#include "formats/json.hpp"

namespace consonant {
namespace {

constexpr int most_pages = 50;

bool is_name(std::string_view text) {
  if (text.empty() || text == "." || text == "..") return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.';
  });
}

// A path below a folder, as a stranger's list may give it.
bool is_inside(std::string_view path) {
  if (path.empty() || path.find('\\') != path.npos || path.find('\0') != path.npos) return false;
  for (size_t at = 0; at <= path.size();) {
    const size_t slash = std::min(path.find('/', at), path.size());
    const std::string_view part = path.substr(at, slash - at);
    if (part.empty() || part == "." || part == "..") return false;
    at = slash + 1;
  }
  return true;
}

bool is_hex(std::string_view text, size_t length) {
  return text.size() == length && text.find_first_not_of("0123456789abcdef") == text.npos;
}

HubFile read_entry(const Json& entry, const std::string& source) {
  HubFile file;
  file.path = entry.at("path").get<std::string>();
  file.size = entry.at("size").get<int64_t>();
  if (entry.contains("lfs") && entry["lfs"].is_object()) {
    file.sha256 = entry["lfs"].at("oid").get<std::string>();
    file.size = entry["lfs"].at("size").get<int64_t>();
  } else {
    file.git_blob = entry.at("oid").get<std::string>();
  }
  if (!is_inside(file.path)) bad_input("{}: '{}' is not a path inside the repository", source, file.path);
  if (file.size < 0 || !(is_hex(file.sha256, 64) || is_hex(file.git_blob, 40)))
    bad_input("{}: {}: no size and digest", source, file.path);
  return file;
}

bool matches_shard(std::string_view name, std::string_view first, std::string_view ending) {
  if (!name.starts_with(first) || !name.ends_with(ending)) return false;
  if (name.size() == first.size() + ending.size()) return true;
  const std::string_view middle =
      name.substr(first.size(), name.size() - first.size() - ending.size());  // -00001-of-00002
  return middle.starts_with("-") && middle.find("-of-") != middle.npos &&
         middle.find_first_not_of("-of0123456789") == middle.npos;
}

bool is_description(std::string_view path) {
  static const std::set<std::string, std::less<>> plain = {"merges.txt",      "vocab.txt",    "vocabulary.txt",
                                                           "tokenizer.model", "spiece.model", "chat_template.jinja"};
  if (path.find('/') != path.npos) return false;
  return plain.contains(path) || (path.ends_with(".json") && !path.ends_with(".index.json"));
}

std::vector<HubFile> with_descriptions(const std::vector<HubFile>& files, std::vector<HubFile> weights,
                                       std::string_view index) {
  for (const HubFile& file : files)
    if (is_description(file.path) || (weights.size() > 1 && file.path == index)) weights.push_back(file);
  return weights;
}

}  // namespace

HubName parse_hub_name(std::string_view text) {
  std::string_view rest = text.starts_with("hf:") ? text.substr(3) : text;
  const auto next = [&] {
    const size_t slash = std::min(rest.find('/'), rest.size());
    const std::string part(rest.substr(0, slash));
    rest.remove_prefix(std::min(slash + 1, rest.size()));
    return part;
  };
  HubName name{next(), next(), ""};
  name.file = rest;
  if (!is_name(name.owner) || !is_name(name.repo) || (!name.file.empty() && !is_inside(name.file)))
    bad_usage("{}: wanted is hf:owner/repo or hf:owner/repo/file", text);
  return name;
}

std::vector<HubFile> list_hub(const std::string& endpoint, const HubName& name, const std::string& revision,
                              const Transfer& transfer) {
  std::string url =
      fmt::format("{}/api/models/{}/{}/tree/{}?recursive=true", endpoint, name.owner, name.repo, escape_path(revision));
  std::vector<HubFile> files;
  for (int page = 0; !url.empty(); ++page) {
    if (page == most_pages)
      bad_input("{}/{}: the list of its files has more than {} pages", name.owner, name.repo, page);
    const Answer answer = fetch_text(url, transfer);
    const Json json = parse_json(answer.body, url);
    try {
      for (const Json& entry : json)
        if (entry.at("type") == "file") files.push_back(read_entry(entry, url));
    } catch (const Json::exception& error) {
      bad_input("{}: not a list of files: {}", url, error.what());
    }
    if (!answer.next.empty() && !answer.next.starts_with(endpoint + "/"))
      bad_input("{}: its list of files goes on elsewhere: {}", url, answer.next);
    url = answer.next;
  }
  return files;
}

std::vector<HubFile> choose_files(const std::vector<HubFile>& files, const HubName& name) {
  const std::string repo = name.owner + "/" + name.repo;
  const auto find = [&](auto wanted) {
    std::vector<HubFile> found;
    std::copy_if(files.begin(), files.end(), std::back_inserter(found), wanted);
    return found;
  };
  if (!name.file.empty()) {
    std::vector<HubFile> found = find([&](const HubFile& f) { return f.path == name.file; });
    if (found.empty()) bad_input("hf:{}: has no file {}", repo, name.file);
    return found;
  }
  std::vector<HubFile> weights = find([](const HubFile& f) { return matches_shard(f.path, "model", ".safetensors"); });
  // Both may be there, whole and in parts.
  if (std::any_of(weights.begin(), weights.end(), [](const HubFile& f) { return f.path == "model.safetensors"; }))
    std::erase_if(weights, [](const HubFile& f) { return f.path != "model.safetensors"; });
  if (!weights.empty()) return with_descriptions(files, std::move(weights), "model.safetensors.index.json");
  weights = find([](const HubFile& f) { return f.path == "model.bin"; });  // CTranslate2
  if (!weights.empty()) return with_descriptions(files, std::move(weights), "");
  weights = find([](const HubFile& f) { return f.path.ends_with(".gguf") || f.path.ends_with(".bin"); });
  if (weights.size() == 1) return weights;
  if (weights.empty()) bad_input("hf:{}: holds no model: no GGUF file, no model.safetensors, no model.bin", repo);
  std::string list;
  for (const HubFile& f : weights) list += fmt::format("\n  hf:{}/{}  {:.0f} MB", repo, f.path, double(f.size) / 1e6);
  bad_input("hf:{}: holds several models; say which:{}", repo, list);
}

std::string hub_url(const std::string& endpoint, const HubName& name, const std::string& revision,
                    const std::string& path) {
  return fmt::format("{}/{}/{}/resolve/{}/{}", endpoint, name.owner, name.repo, escape_path(revision),
                     escape_path(path));
}

}  // namespace consonant
