// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <csignal>

#include "base/error.hpp"
#include "cli/interrupt.hpp"
#include "cli/run.hpp"

// A file that is opened takes the lowest free descriptor: were a standard stream closed, messages would be written into
// a model. What takes its place refuses what the stream is for.
static void hold_standard_streams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0)
      _exit(int(consonant::Exit::failed));  // nowhere to say why
}

int main(int argc, char** argv) {
  hold_standard_streams();
  std::signal(SIGPIPE, SIG_IGN);  // a write that fails says so itself
  std::signal(SIGXFSZ, SIG_IGN);  // and so does one past the limit of a file's size
  consonant::Interrupts::install();
  consonant::World world{consonant::Output(STDOUT_FILENO), STDIN_FILENO};
  const int code = consonant::run({argv + 1, argv + argc}, world);
  // What a vendor's library does as the program ends may wait for the device that doesn't answer.
  if (code == int(consonant::Exit::stalled)) _exit(code);
  return code;
}
