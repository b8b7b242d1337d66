// SPDX-License-Identifier: Apache-2.0
// Gives a fuzz target its saved inputs, one after the other, without libFuzzer: replay_x FOLDER|FILE...
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> inputs_of(int count, char** names) {
  std::vector<fs::path> files;
  for (int i = 0; i < count; ++i) {
    const fs::path path = names[i];
    if (!fs::is_directory(path)) {
      files.push_back(path);
      continue;
    }
    for (const fs::directory_entry& entry : fs::directory_iterator(path))
      if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

int replay(int count, char** names) {
  const std::vector<fs::path> files = inputs_of(count, names);
  if (files.empty()) {
    std::fprintf(stderr, "replay: no saved input%s%s\n", count ? " in " : "", count ? names[0] : "");
    return 1;
  }
  LLVMFuzzerTestOneInput(nullptr, 0);
  for (const fs::path& path : files) {
    std::printf("%s\n", path.c_str());  // flushed before the run: after a crash the last name is the culprit's
    std::fflush(stdout);
    std::ifstream file(path, std::ios::binary);
    if (!file) {
      std::fprintf(stderr, "replay: can't read %s\n", path.c_str());
      return 1;
    }
    const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  }
  std::printf("%zu inputs and the empty one replayed\n", files.size());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return replay(argc - 1, argv + 1);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "replay: %s\n", error.what());
    return 1;
  }
}
