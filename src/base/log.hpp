// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace consonant {

// quiet: nothing but errors. normal: warnings and what a user must know. verbose: how things go (`-v`).
enum class LogLevel { quiet, normal, verbose };

void set_log_level(LogLevel level);
LogLevel log_level();

// One line to stderr, whole even when several threads write.
void log_line(std::string_view line);

template <class... Args>
void log_verbose(fmt::format_string<Args...> format, Args&&... args) {
  if (log_level() >= LogLevel::verbose) log_line(fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
void log_warning(fmt::format_string<Args...> format, Args&&... args) {
  if (log_level() >= LogLevel::normal) log_line("warning: " + fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace consonant
