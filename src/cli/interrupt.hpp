// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace consonant {

// Ctrl-C. While something runs that can be cancelled the first one stops it and the second leaves the program at once;
// at any other time one leaves, unless somebody waits for it with `Interrupts::Deferred`. Leaving is exit code 130.
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

  // While this lives, the first Ctrl-C only interrupts the system call that waits for input.
  class Deferred {
   public:
    Deferred();
    ~Deferred();
    Deferred(const Deferred&) = delete;
    Deferred& operator=(const Deferred&) = delete;
  };

  static int count();  // since the last `forget`
  static void forget();
};

}  // namespace consonant
