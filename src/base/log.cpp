// SPDX-License-Identifier: Apache-2.0
#include "base/log.hpp"

#include <atomic>
#include <cstdio>
#include <string>

namespace consonant {

namespace {
std::atomic<LogLevel> level{LogLevel::normal};
}

void set_log_level(LogLevel new_level) { level = new_level; }
LogLevel log_level() { return level; }

void log_line(std::string_view line) {
  std::string whole(line);
  whole += '\n';
  std::fwrite(whole.data(), 1, whole.size(), stderr);
}

}  // namespace consonant
