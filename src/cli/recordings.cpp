// SPDX-License-Identifier: Apache-2.0
#include "cli/recordings.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <set>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "cli/output.hpp"

namespace consonant {
namespace {

namespace fs = std::filesystem;

// What libsndfile reads, and what an ffmpeg executable usually does besides.
constexpr std::string_view endings[] = {
    ".3gp", ".aac", ".ac3", ".aif", ".aifc", ".aiff", ".amr", ".au",  ".avi",  ".caf",  ".flac", ".m4a", ".m4b",
    ".m4v", ".mka", ".mkv", ".mov", ".mp2",  ".mp3",  ".mp4", ".mpg", ".oga",  ".ogg",  ".opus", ".ra",  ".rf64",
    ".sd2", ".snd", ".sph", ".spx", ".ts",   ".voc",  ".w64", ".wav", ".weba", ".webm", ".wma",  ".wmv", ".wv"};

bool is_recording(const fs::path& path) {
  std::string ending = path.extension().string();
  for (char& c : ending)
    if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
  return std::find(std::begin(endings), std::end(endings), ending) != std::end(endings);
}

// Folders behind symbolic links are left alone: they may lead in a circle.
void scan(const fs::path& folder, const fs::path& relative, bool recursive, std::vector<Recording>& found) {
  std::error_code error;
  std::vector<fs::directory_entry> entries;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) entries.push_back(*at);
  if (error) {
    found.push_back({folder.string(), relative, "can't be read: " + error.message()});
    return;
  }
  std::sort(entries.begin(), entries.end());
  for (const fs::directory_entry& entry : entries) {
    const fs::path name = entry.path().filename();
    if (name.string().starts_with(".")) continue;
    if (entry.is_directory(error) && !error) {
      if (recursive && !entry.is_symlink(error)) scan(entry.path(), relative / name, recursive, found);
    } else if (is_recording(name) && entry.is_regular_file(error)) {
      found.push_back({entry.path().string(), relative / name, ""});
    }
  }
}

std::string stem_of(const Recording& recording, bool keep_ending) {
  fs::path path = recording.relative;
  return keep_ending ? path.string() : path.replace_extension().string();
}

void check_writable(const fs::path& folder, const fs::path& target) {
  std::error_code error;
  if (!fs::is_directory(folder, error))
    throw_error(Exit::failed, "{}: can't be written: there is no folder {}", target.string(), folder.string());
  if (access(folder.c_str(), W_OK | X_OK) != 0)
    throw_error(Exit::failed, "{}: can't be written: {}: {}", target.string(), folder.string(), std::strerror(errno));
}

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error && !fs::is_directory(folder))
    throw_error(Exit::failed, "{}: can't be made a folder: {}", folder.string(), error.message());
}

fs::path canonical(const fs::path& path) {
  std::error_code error;
  fs::path result = fs::weakly_canonical(path, error);
  return error ? path : result;
}

void check_distinct(const std::vector<Job>& jobs) {
  std::set<fs::path> inputs;
  for (const Job& job : jobs)
    if (job.recording.path != "-") inputs.insert(canonical(job.recording.path));
  std::map<fs::path, std::string> seen;
  for (const Job& job : jobs)
    for (const Result& result : job.results) {
      const std::string output = result.path.string();
      const fs::path real = canonical(output);
      if (inputs.contains(real)) bad_usage("{}: is an input; a result isn't written over it", output);
      const auto [other, fresh] = seen.emplace(real, job.recording.path);
      if (!fresh) bad_usage("{} and {} would both be written to {}", other->second, job.recording.path, output);
    }
}

}  // namespace

std::vector<Recording> find_recordings(const std::vector<std::string>& inputs, bool recursive) {
  std::vector<Recording> found;
  for (const std::string& input : inputs) {
    std::error_code error;
    const fs::file_status status = input == "-" ? fs::file_status() : fs::status(input, error);
    if (input == "-") {
      found.push_back({input, "stdin", ""});
    } else if (!fs::exists(status)) {
      found.push_back({input, fs::path(input).filename(), error ? error.message() : "no such file or folder"});
    } else if (!fs::is_directory(status)) {
      found.push_back({input, fs::path(input).filename(), ""});
    } else {
      const size_t before = found.size();
      scan(input, "", recursive, found);
      if (found.size() == before)
        log_warning("{}: there is no recording in this folder{}", input,
                    recursive ? "" : " itself (--recursive looks into its folders too)");
    }
  }
  if (std::count_if(found.begin(), found.end(), [](const Recording& r) { return r.path == "-"; }) > 1)
    bad_usage("-: standard input can be read once only");
  return found;
}

bool is_folder_output(const std::vector<std::string>& inputs, const std::string& out,
                      const std::vector<std::string>& formats) {
  std::error_code error;
  return fs::is_directory(out, error) || out.ends_with('/') || inputs.size() > 1 || formats.size() > 1 ||
         (inputs.size() == 1 && fs::is_directory(inputs[0], error));
}

std::vector<Job> plan_outputs(std::vector<Recording> recordings, const std::vector<std::string>& inputs,
                              const std::string& out, const std::vector<std::string>& formats) {
  std::vector<Job> jobs;
  if (!is_folder_output(inputs, out, formats)) {
    for (Recording& r : recordings) jobs.push_back({std::move(r), {{out, formats[0]}}});
    const fs::path parent = fs::path(out).parent_path();
    std::error_code error;
    const fs::file_status status = fs::status(out, error);
    if (!fs::exists(status) || fs::is_regular_file(status)) check_writable(parent.empty() ? "." : parent, out);
    check_distinct(jobs);
    return jobs;
  }
  make_folder(out);
  check_writable(out, out);
  std::set<fs::path> seen;  // named twice, or with the folder that they lie in
  std::erase_if(recordings,
                [&](const Recording& r) { return r.path != "-" && !seen.insert(canonical(r.path)).second; });
  std::map<std::string, int> stems;
  for (const Recording& r : recordings) ++stems[stem_of(r, false)];
  for (Recording& r : recordings) {
    const std::string stem = stem_of(r, stems[stem_of(r, false)] > 1);
    Job job;
    for (const std::string& format : formats) job.results.push_back({fs::path(out) / (stem + "." + format), format});
    job.recording = std::move(r);
    jobs.push_back(std::move(job));
  }
  check_distinct(jobs);
  return jobs;
}

void write_result(const fs::path& path, std::string_view text) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) throw_error(Exit::failed, "{}: can't be written: is a folder", path.string());
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0) throw_error(Exit::failed, "{}: can't be written: {}", path.string(), std::strerror(errno));
    try {
      Output(fd).write(text);
    } catch (const Error& e) {
      close(fd);
      throw_error(Exit::failed, "{}: {}", path.string(), e.what());
    }
    if (close(fd) != 0) throw_error(Exit::failed, "{}: can't be written: {}", path.string(), std::strerror(errno));
    return;
  }
  if (path.has_parent_path()) make_folder(path.parent_path());
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

}  // namespace consonant
