// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/download.hpp"

namespace consonant {

// hf:owner/repo[/file], or https://huggingface.co/owner/repo
struct HubName {
  std::string owner, repo, file;
};
HubName parse_hub_name(std::string_view name);

struct HubFile {
  std::string path;
  int64_t size = -1;
  std::string sha256, git_blob;  // the one or the other
};

// All files of a repository at a revision.
std::vector<HubFile> list_hub(const std::string& endpoint, const HubName& name, const std::string& revision,
                              const Transfer& transfer);

// Those of them that make a model: the file that was named; or the one GGUF file; or a Hugging Face or CTranslate2
// model's weights, in one kind only, with its configuration and vocabulary. Bad input if that isn't clear.
std::vector<HubFile> choose_files(const std::vector<HubFile>& files, const HubName& name);

std::string hub_url(const std::string& endpoint, const HubName& name, const std::string& revision,
                    const std::string& path);

}  // namespace consonant
