// SPDX-License-Identifier: Apache-2.0
#include "cli/interrupt.hpp"

#include <unistd.h>

#include <atomic>
#include <csignal>

#include "base/error.hpp"

namespace consonant {
namespace {

// Read by a signal handler: lock-free atomics only.
std::atomic<Session*> running{nullptr};
std::atomic<bool> deferred{false};
std::atomic<int> interrupts{0};
static_assert(std::atomic<Session*>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

void on_interrupt(int) {
  const int before = interrupts.fetch_add(1);
  Session* const session = running.load();
  if (before > 0 || (!session && !deferred.load())) _exit(int(Exit::interrupted));
  if (session) session->cancel();
}

}  // namespace

void Interrupts::install() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  sigemptyset(&action.sa_mask);
  action.sa_flags = 0;  // no SA_RESTART: a read that waits for input returns
  sigaction(SIGINT, &action, nullptr);
}

Interrupts::Cancels::Cancels(Session& session) { running = &session; }
Interrupts::Cancels::~Cancels() { running = nullptr; }
Interrupts::Deferred::Deferred() { deferred = true; }
Interrupts::Deferred::~Deferred() { deferred = false; }
int Interrupts::count() { return interrupts; }
void Interrupts::forget() { interrupts = 0; }

}  // namespace consonant
