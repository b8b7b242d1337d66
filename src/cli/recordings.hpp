// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace consonant {

// A recording that a command was asked to read.
struct Recording {
  std::string path;                // "-": standard input
  std::filesystem::path relative;  // to the folder it was found in; its name if it was named itself
  std::string fault;               // why it can't be read, as far as its name tells
};

// A recording, and the files that come of it, one a format.
struct Result {
  std::filesystem::path path;
  std::string format;
};
struct Job {
  Recording recording;
  std::vector<Result> results;  // empty: standard output
};

// The recordings that `inputs` name, those of a folder by their names' endings, in the order of their names; with
// `recursive` those of its folders too. What doesn't exist or can't be read has a fault.
std::vector<Recording> find_recordings(const std::vector<std::string>& inputs, bool recursive);

// Where the results go. `out` is a folder if there is one of that name, if it ends in '/', if a folder or several
// inputs were named or if there are several formats; else a file. Folders are mirrored into it; two recordings whose
// names differ only in their ending keep it. Wrong usage if an output is an input or two outputs are one; failure if
// `out` can't be made or written.
std::vector<Job> plan_outputs(std::vector<Recording> recordings, const std::vector<std::string>& inputs,
                              const std::string& out, const std::vector<std::string>& formats);
bool is_folder_output(const std::vector<std::string>& inputs, const std::string& out,
                      const std::vector<std::string>& formats);

// Puts `text` in place whole: under a temporary name first. What is neither file nor folder (a pipe, a device) is
// written as it is.
void write_result(const std::filesystem::path& path, std::string_view text);

}  // namespace consonant
