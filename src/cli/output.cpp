// SPDX-License-Identifier: Apache-2.0
#include "cli/output.hpp"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace consonant {

Output::Output(int fd) : fd_(fd), terminal_(isatty(fd) == 1) {}

void Output::write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd_, text.data(), text.size());
    if (n >= 0) {
      text.remove_prefix(size_t(n));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {  // a shared descriptor that another program made non-blocking
      pollfd p{fd_, POLLOUT, 0};
      if (poll(&p, 1, -1) < 0 && errno != EINTR)
        throw_error(Exit::failed, "waiting for the output: {}", std::strerror(errno));
    } else if (errno == EPIPE) {
      throw OutputClosed();
    } else if (errno != EINTR) {
      throw_error(Exit::failed, "writing the result: {}", std::strerror(errno));
    }
  }
}

void Output::line(std::string_view text) {
  std::string whole(text);
  whole += '\n';
  write(whole);
}

}  // namespace consonant
