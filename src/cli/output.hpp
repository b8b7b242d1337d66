// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "base/error.hpp"

namespace consonant {

// The reader of our output has gone (`consonant ... | head`): nothing to report, nothing left to do.
struct OutputClosed : Error {
  OutputClosed() : Error(Exit::failed, "the output was closed by its reader") {}
};

// Where results go: a file descriptor. Every write is complete when it returns or it throws: a full disk must not look
// like success.
class Output {
 public:
  explicit Output(int fd);

  void write(std::string_view text);
  void line(std::string_view text);  // and a newline, in one write
  bool terminal() const { return terminal_; }

 private:
  int fd_;
  bool terminal_;
};

}  // namespace consonant
