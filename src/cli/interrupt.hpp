// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>

namespace consonant {

// Ctrl-C. While something runs that can be cancelled the first one stops it and the second leaves the program at once;
// at any other time one leaves, unless it is deferred. Leaving is exit code 130, and like every end by a signal it
// gives the terminal back as it was.
class Interrupts {
 public:
  static void install();

  // While this lives, the first Ctrl-C calls `running.cancel()`, which a signal handler must be allowed to.
  class Cancels {
   public:
    template <class Running>
    explicit Cancels(Running& running)
        : running_(&running), cancel_([](void* r) noexcept { static_cast<Running*>(r)->cancel(); }) {
      begin();
    }
    ~Cancels();
    Cancels(const Cancels&) = delete;
    Cancels& operator=(const Cancels&) = delete;

    void cancel() const noexcept { cancel_(running_); }

   private:
    void begin() const;

    void* running_;
    void (*cancel_)(void*) noexcept;
  };

  // While this lives, the first Ctrl-C outside of an answer is kept for whoever waits for input: `wait_for_input`
  // returns it, whether it comes before the wait or during it, and whichever thread the system gives it to.
  class Deferred {
   public:
    Deferred();
    ~Deferred();
    Deferred(const Deferred&) = delete;
    Deferred& operator=(const Deferred&) = delete;
  };

  // While this lives, Ctrl-Z and a change of the window's size are kept in the same way.
  class Editing {
   public:
    Editing();
    ~Editing();
    Editing(const Editing&) = delete;
    Editing& operator=(const Editing&) = delete;

   private:
    struct sigaction stop_ {
    }, resize_{};
  };

  // While this lives, a signal that ends the program first sets the terminal `fd` to the mode that it has now.
  class TerminalMode {
   public:
    explicit TerminalMode(int fd);
    ~TerminalMode();
    TerminalMode(const TerminalMode&) = delete;
    TerminalMode& operator=(const TerminalMode&) = delete;
  };

  // Waits until `fd` can be read, and returns 0, or for a signal that is kept, and returns that.
  static int wait_for_input(int fd);

  static int count();  // since the last `forget`
  static void forget();
};

}  // namespace consonant
