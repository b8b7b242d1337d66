// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace consonant {

// Lines that a user types: edited, with a history, on a terminal; as they come from anything else.
class LineReader {
 public:
  virtual ~LineReader() = default;

  // The next line without its newline; nothing at the end of the input. `interrupted` says that Ctrl-C came instead:
  // the line is empty then.
  virtual std::optional<std::string> next(bool& interrupted) = 0;

  // For standard input `fd`; the prompt is shown on a terminal only, on stderr.
  static std::unique_ptr<LineReader> open(int fd, const std::string& prompt);
};

}  // namespace consonant
