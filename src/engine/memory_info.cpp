// SPDX-License-Identifier: Apache-2.0
#include "engine/memory_info.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

namespace consonant {

namespace {

// The value of "Key:   123 kB" in a file of /proc, in bytes; -1 if it isn't there.
int64_t kilobytes(const char* path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (line.compare(0, key.size(), key) == 0) return std::stoll(line.substr(key.size())) * 1024;
  return -1;
}

int64_t number_in(const char* path) {
  std::ifstream file(path);
  int64_t n = -1;
  return file >> n ? n : -1;  // "max" isn't a number: no limit
}

}  // namespace

int64_t available_memory() {
  int64_t available = kilobytes("/proc/meminfo", "MemAvailable:");
  const int64_t limit = number_in("/sys/fs/cgroup/memory.max"), used = number_in("/sys/fs/cgroup/memory.current");
  if (limit >= 0 && used >= 0)
    available =
        std::min(available < 0 ? std::numeric_limits<int64_t>::max() : available, std::max<int64_t>(0, limit - used));
  return available;
}

int64_t resident_memory() { return kilobytes("/proc/self/status", "VmRSS:"); }

int64_t peak_memory() { return kilobytes("/proc/self/status", "VmHWM:"); }

}  // namespace consonant
