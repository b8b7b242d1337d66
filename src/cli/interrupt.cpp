// SPDX-License-Identifier: Apache-2.0
#include "cli/interrupt.hpp"

#include <fcntl.h>
#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "base/error.hpp"

namespace consonant {
namespace {

// Read by signal handlers: lock-free atomics only, and what was written before them.
std::atomic<const Interrupts::Cancels*> running{nullptr};
std::atomic<bool> deferred{false};
std::atomic<int> interrupts{0};
std::atomic<int> terminal{-1};
termios terminal_mode;
static_assert(std::atomic<const Interrupts::Cancels*>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

// Signals on their way from the handler to `wait_for_input`. A flag alone could be set between the look at it and the
// wait, which would then not end.
int kept[2] = {-1, -1};

void keep(int signal) {
  const char byte = char(signal);
  // A full pipe holds enough signals that wait to be seen.
  if (write(kept[1], &byte, 1) < 0) return;
}

int take_kept() {
  char byte;
  return read(kept[0], &byte, 1) == 1 ? byte : 0;
}

void restore_terminal() {
  if (const int fd = terminal.load(); fd >= 0) tcsetattr(fd, TCSANOW, &terminal_mode);
}

void on_interrupt(int signal) {
  const int error = errno;
  const int before = interrupts.fetch_add(1);
  const Interrupts::Cancels* const target = running.load();
  if (before > 0 || (!target && !deferred.load())) {
    restore_terminal();
    _exit(int(Exit::interrupted));
  }
  if (target)
    target->cancel();
  else
    keep(signal);
  errno = error;
}

void on_editing(int signal) {
  const int error = errno;
  keep(signal);
  errno = error;
}

// The signal takes its usual way once the handler has returned.
void on_end(int signal) {
  restore_terminal();
  std::signal(signal, SIG_DFL);
  raise(signal);
}

struct sigaction handled(void (*handler)(int), int flags) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigemptyset(&action.sa_mask);
  return action;
}

}  // namespace

void Interrupts::install() {
  if (kept[0] < 0 && pipe2(kept, O_CLOEXEC | O_NONBLOCK) != 0)
    throw_error(Exit::failed, "a pipe for signals can't be made: {}", std::strerror(errno));
  const struct sigaction interrupt = handled(on_interrupt, SA_RESTART), end = handled(on_end, 0);
  sigaction(SIGINT, &interrupt, nullptr);
  for (const int signal : {SIGTERM, SIGHUP, SIGQUIT}) {
    struct sigaction before;
    sigaction(signal, nullptr, &before);
    if (before.sa_handler != SIG_IGN) sigaction(signal, &end, nullptr);  // nohup stays in force
  }
}

void Interrupts::Cancels::begin() const { running = this; }
Interrupts::Cancels::~Cancels() { running = nullptr; }
Interrupts::Deferred::Deferred() { deferred = true; }
Interrupts::Deferred::~Deferred() { deferred = false; }

Interrupts::Editing::Editing() {
  const struct sigaction action = handled(on_editing, SA_RESTART);
  sigaction(SIGTSTP, &action, &stop_);
  sigaction(SIGWINCH, &action, &resize_);
}
Interrupts::Editing::~Editing() {
  sigaction(SIGTSTP, &stop_, nullptr);
  sigaction(SIGWINCH, &resize_, nullptr);
}

Interrupts::TerminalMode::TerminalMode(int fd) {
  if (tcgetattr(fd, &terminal_mode) == 0) terminal = fd;
}
Interrupts::TerminalMode::~TerminalMode() { terminal = -1; }

int Interrupts::wait_for_input(int fd) {
  while (true) {
    pollfd sources[2] = {{fd, POLLIN, 0}, {kept[0], POLLIN, 0}};
    if (poll(sources, 2, -1) < 0 && errno != EINTR)
      throw_error(Exit::failed, "waiting for input: {}", std::strerror(errno));
    // A signal goes before what was typed after it.
    if (const int signal = take_kept()) return signal;
    if (sources[0].revents != 0) return 0;
  }
}

int Interrupts::count() { return interrupts; }

void Interrupts::forget() {
  interrupts = 0;
  while (take_kept()) {
  }
}

}  // namespace consonant
