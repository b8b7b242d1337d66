// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <csignal>

#include "cli/interrupt.hpp"
#include "cli/run.hpp"

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a write that fails says so itself
  consonant::Interrupts::install();
  consonant::World world{consonant::Output(STDOUT_FILENO), STDIN_FILENO};
  return consonant::run({argv + 1, argv + argc}, world);
}
