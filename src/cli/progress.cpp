// SPDX-License-Identifier: Apache-2.0
#include "cli/progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/log.hpp"
#include "base/utf8.hpp"

namespace consonant {
namespace {

size_t terminal_width() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 8 ? size.ws_col : 80;
}

// The first `width` characters.
std::string_view cut(std::string_view text, size_t width) {
  size_t at = 0;
  for (size_t i = 0; i < width && at < text.size(); ++i) at += size_t(std::max(utf8_length(text.substr(at)), 1));
  return text.substr(0, at);
}

}  // namespace

Progress::Progress() : visible_(isatty(STDERR_FILENO) == 1 && log_level() >= LogLevel::normal) {}

void Progress::show(std::string_view line, bool now) {
  if (!visible_ || (shown_ && !now && seconds_since(last_) < 0.1)) return;
  shown_ = true;
  last_ = Clock::now();
  const std::string safe = sanitize_utf8(line);
  const std::string_view part = cut(safe, terminal_width() - 1);
  std::fprintf(stderr, "\r%.*s\x1b[K", int(part.size()), part.data());
  std::fflush(stderr);
}

void Progress::clear() {
  if (!shown_) return;
  shown_ = false;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
}

std::string clock_text(double seconds) {
  const int64_t s = std::isfinite(seconds) ? int64_t(std::clamp(std::round(seconds), 0.0, 1e9)) : 0;
  if (s >= 3600) return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
  return fmt::format("{}:{:02}", s / 60, s % 60);
}

}  // namespace consonant
