// SPDX-License-Identifier: Apache-2.0
#include "cli/interrupt.hpp"

#include <unistd.h>

#include <atomic>
#include <csignal>

#include "base/error.hpp"

namespace consonant {
namespace {

// Read by a signal handler: lock-free atomics only.
std::atomic<const Interrupts::Cancels*> running{nullptr};
std::atomic<bool> deferred{false};
std::atomic<int> interrupts{0};
static_assert(std::atomic<const Interrupts::Cancels*>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

void on_interrupt(int) {
  const int before = interrupts.fetch_add(1);
  const Interrupts::Cancels* const target = running.load();
  if (before > 0 || (!target && !deferred.load())) _exit(int(Exit::interrupted));
  if (target) target->cancel();
}

}  // namespace

void Interrupts::install() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  sigemptyset(&action.sa_mask);
  action.sa_flags = 0;  // no SA_RESTART: a read that waits for input returns
  sigaction(SIGINT, &action, nullptr);
}

void Interrupts::Cancels::begin() const { running = this; }
Interrupts::Cancels::~Cancels() { running = nullptr; }
Interrupts::Deferred::Deferred() { deferred = true; }
Interrupts::Deferred::~Deferred() { deferred = false; }
int Interrupts::count() { return interrupts; }
void Interrupts::forget() { interrupts = 0; }

}  // namespace consonant
