// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <optional>

#include "base/error.hpp"
#include "base/log.hpp"
#include "cli/commands.hpp"
#include "cli/digest.hpp"
#include "cli/hub.hpp"
#include "cli/interrupt.hpp"
#include "cli/models.hpp"
#include "cli/options.hpp"
#include "cli/progress.hpp"
#include "formats/json.hpp"

namespace consonant {
namespace {

namespace fs = std::filesystem;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

struct Fetched {
  fs::path path;
  int64_t bytes = 0;
  std::string sha256;
};

struct Pull {
  std::string source, hash, revision;
  std::optional<std::string> out;
  double timeout = 60;
  std::optional<double> deadline;
  int retries = 5;
  bool force = false, list = false, json = false;

  int run(World& world);

 private:
  Fetched fetch(Wanted wanted, const std::string& label);
  fs::path pull_url(const std::string& url, const fs::path& place);
  fs::path pull_hub(const HubName& name, const fs::path& place);
  fs::path pull_folder(const HubName& name, const std::vector<HubFile>& files, const fs::path& place);
  fs::path pull_source();
  fs::path target(const fs::path& place) const;
  Wanted wanted(const HubName& name, const HubFile& file, const fs::path& to) const;
  int print_list(World& world) const;

  Transfer transfer_;
  Progress progress_;
  std::string endpoint_;
  std::vector<Fetched> fetched_;
};

// Is it there already, and right? Without a digest to compare with, being there has to do.
bool is_right(const Wanted& wanted) {
  std::error_code error;
  if (!fs::is_regular_file(wanted.target, error)) return false;
  if (wanted.size >= 0 && int64_t(fs::file_size(wanted.target)) != wanted.size) return false;
  if (!wanted.sha256.empty()) return digest_of(wanted.target, Digest::sha256) == wanted.sha256;
  return wanted.git_blob.empty() || digest_of(wanted.target, Digest::git_blob) == wanted.git_blob;
}

Fetched Pull::fetch(Wanted wanted, const std::string& label) {
  const Clock::time_point begin = Clock::now();
  int64_t first = -1;
  transfer_.progress = [&](int64_t done, int64_t all) {
    if (first < 0) first = done;
    const double wall = seconds_since(begin), speed = wall > 0 ? double(done - first) / wall : 0;
    std::string line = fmt::format("{}  {:.1f}", label, double(done) / 1e6);
    line += all >= 0 ? fmt::format(" of {:.1f} MB", double(all) / 1e6) : " MB";
    if (speed > 0) line += fmt::format("  {:.1f} MB/s", speed / 1e6);
    if (speed > 0 && all >= done) line += fmt::format("  {} left", clock_text(double(all - done) / speed));
    progress_.show(line);
  };
  progress_.show(label, true);
  if (!force && is_right(wanted)) {
    log_verbose("{}: is there already", wanted.target.string());
    fetched_.push_back(
        {wanted.target, int64_t(fs::file_size(wanted.target)), json ? digest_of(wanted.target, Digest::sha256) : ""});
  } else {
    const std::string sha256 = download(wanted, transfer_);
    log_verbose("{}: SHA-256 {}", wanted.target.string(), sha256);
    fetched_.push_back({wanted.target, int64_t(fs::file_size(wanted.target)), sha256});
  }
  progress_.clear();
  return fetched_.back();
}

// `place` below the models' folder, or what -o says.
fs::path Pull::target(const fs::path& place) const {
  if (!out) return models_folder() / place;
  std::error_code error;
  return fs::is_directory(*out, error) || out->ends_with('/') ? fs::path(*out) / place.filename() : fs::path(*out);
}

fs::path Pull::pull_url(const std::string& url, const fs::path& place) {
  Wanted w{url, target(place), -1, hash, ""};
  return fetch(w, w.target.filename().string()).path;
}

Wanted Pull::wanted(const HubName& name, const HubFile& file, const fs::path& to) const {
  Wanted w{hub_url(endpoint_, name, revision, file.path), to, file.size, file.sha256, file.git_blob};
  if (hash.empty()) return w;
  if (!w.sha256.empty() && w.sha256 != hash) bad_input("{}: its SHA-256 is {}, --hash wants {}", w.url, w.sha256, hash);
  w.sha256 = hash;
  return w;
}

// A fresh folder gets its name when all of it is there; one that exists already is brought up to date file by file.
fs::path Pull::pull_folder(const HubName& name, const std::vector<HubFile>& files, const fs::path& place) {
  const fs::path folder = target(place);
  std::error_code error;
  const bool fresh = !fs::exists(folder, error);
  fs::path growing = folder;
  if (fresh) growing += ".part";
  const size_t first = fetched_.size();
  for (size_t i = 0; i < files.size(); ++i)
    fetch(wanted(name, files[i], growing / files[i].path),
          fmt::format("[{}/{}] {}", i + 1, files.size(), files[i].path));
  if (!fresh) return folder;
  fs::rename(growing, folder, error);
  if (error) throw_error(Exit::failed, "{}: can't be put in place: {}", folder.string(), error.message());
  for (size_t i = first; i < fetched_.size(); ++i) fetched_[i].path = folder / files[i - first].path;
  return folder;
}

fs::path Pull::pull_hub(const HubName& name, const fs::path& place) {
  progress_.show("hf:" + name.owner + "/" + name.repo, true);
  const std::vector<HubFile> files = choose_files(list_hub(endpoint_, name, revision, transfer_), name);
  if (files.size() > 1) {
    if (!hash.empty())
      bad_usage("--hash: is of one file, but {}/{} has {} to fetch", name.owner, name.repo, files.size());
    return pull_folder(name, files, place);
  }
  const fs::path to =
      place.has_extension() && place.extension() == fs::path(files[0].path).extension() ? place : place / files[0].path;
  const Wanted w = wanted(name, files[0], target(to));
  return fetch(w, w.target.filename().string()).path;
}

fs::path Pull::pull_source() {
  const bool fixed = !revision.empty();
  if (!fixed) revision = "main";
  if (const CatalogueEntry* entry = find_in_catalogue(source)) {
    if (hash.empty()) hash = entry->sha256;
    if (!fixed && !entry->revision.empty()) revision = entry->revision;
    if (entry->source.starts_with("hf:")) return pull_hub(parse_hub_name(entry->source), entry->place);
    return pull_url(entry->source, entry->place);
  }
  std::string url = source;
  constexpr std::string_view page = "https://huggingface.co/";
  if (url.starts_with(page) && std::count(url.begin(), url.end(), '/') == 4) url = "hf:" + url.substr(page.size());
  if (url.starts_with("hf:")) {
    const HubName name = parse_hub_name(url);
    const fs::path place = hub_place(name.owner, name.repo);
    return pull_hub(name, name.file.empty() ? place : place / fs::path(name.file).filename());
  }
  if (!url.starts_with("https://") && !url.starts_with("http://"))
    bad_usage("{}: is not a URL, hf:owner/repo or a name of the catalogue (consonant pull --list)", source);
  if (fixed) bad_usage("--revision: is for hf:owner/repo, a URL says all itself");
  if (const size_t blob = url.find("/blob/"); url.starts_with(page) && blob != url.npos)
    url.replace(blob, 6, "/resolve/");  // the page that shows a file, and the file
  std::string path = url.substr(0, url.find_first_of("?#"));
  path = path.substr(path.find("//") + 2);
  const size_t slash = path.rfind('/');
  const std::string file = slash == path.npos ? "" : path.substr(slash + 1);
  if (!out && (file.empty() || file == "." || file == ".."))
    bad_usage("{}: names no file; say where it goes: -o FILE", source);
  return pull_url(url, file.empty() ? "model" : file);
}

int Pull::print_list(World& world) const {
  std::string text;
  for (const CatalogueEntry& entry : catalogue())
    text += fmt::format("{:<24}{:>6.0f} MB  {}\n", entry.name, double(entry.bytes) / 1e6, entry.what);
  world.out.write(text);
  return 0;
}

int Pull::run(World& world) {
  if (list) return print_list(world);
  if (source.empty()) bad_usage("pull: what? A URL, hf:owner/repo, or a name of the catalogue (consonant pull --list)");
  if (!hash.empty() && (hash.size() != 64 || hash.find_first_not_of("0123456789abcdefABCDEF") != hash.npos))
    bad_usage("--hash {}: has to be a SHA-256, 64 hexadecimal digits", hash);
  std::transform(hash.begin(), hash.end(), hash.begin(),
                 [](char c) { return c >= 'A' && c <= 'F' ? char(c + 32) : c; });
  if (!std::isfinite(timeout) || timeout <= 0) bad_usage("--timeout {}: has to be more than 0", timeout);
  if (deadline && !(*deadline > 0 && std::isfinite(*deadline)))
    bad_usage("--deadline {}: has to be above 0", *deadline);
  endpoint_ = environment("HF_ENDPOINT");
  if (endpoint_.empty()) endpoint_ = "https://huggingface.co";
  while (endpoint_.ends_with('/')) endpoint_.pop_back();
  transfer_.stall = timeout;
  transfer_.retries = retries;
  if (deadline) transfer_.deadline = Deadline::after(deadline_left(world, *deadline));
  if (source.starts_with("hf:") || find_in_catalogue(source)) transfer_.token = environment("HF_TOKEN");
  transfer_.certificates = environment("SSL_CERT_FILE");
  transfer_.cancelled = [] { return Interrupts::count() > 0; };
  const Interrupts::Deferred deferred;  // so that one Ctrl-C is a message and a second one leaves
  const fs::path path = pull_source();
  if (!json) {
    world.out.line(path.string());
    return 0;
  }
  nlohmann::ordered_json document{{"path", path.string()}, {"files", nlohmann::ordered_json::array()}};
  for (const Fetched& f : fetched_)
    document["files"].push_back({{"path", f.path.string()}, {"bytes", f.bytes}, {"sha256", f.sha256}});
  world.out.line(document.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  return 0;
}

}  // namespace

Action add_pull(CLI::App& program) {
  CLI::App& app = add_command(program, "pull", "Fetch a model, checked, and print where it lies",
                              "consonant pull whisper-base.en\n"
                              "  consonant pull hf:Qwen/Qwen3-0.6B\n"
                              "  consonant pull https://example.org/model.gguf --hash SHA256");
  auto command = std::make_shared<Pull>();
  app.add_option("SOURCE", command->source, "A URL, hf:owner/repo, hf:owner/repo/file, or a name of the catalogue");
  app.add_flag("--list", command->list, "Print the catalogue");
  app.add_option("--hash", command->hash, "The SHA-256 that the file must have");
  app.add_option("--revision", command->revision, "Branch, tag or commit of hf:owner/repo; default: main");
  app.add_option("-o,--output", command->out,
                 "File or folder to put it; default: the cache, where -m finds it by name");
  app.add_flag("--force", command->force, "Fetch it though it is there");
  app.add_option("--timeout", command->timeout, "Seconds without a byte after which a connection is given up")
      ->capture_default_str();
  app.add_option("--retries", command->retries, "Tries after the first, when a connection fails or a server is busy")
      ->check(whole_number(0, 1000))
      ->capture_default_str();
  app.add_option("--deadline", command->deadline, "Stop after so many seconds (exit 1); what has come is kept");
  app.add_flag("--json", command->json, "One JSON document: path, and each file with its size and SHA-256");
  return [command](World& world) { return command->run(world); };
}

}  // namespace consonant
