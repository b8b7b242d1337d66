// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "consonant/engine.hpp"

namespace consonant {

// Ctrl-C. While an answer is being generated the first one stops it and the second leaves the program at once; at any
// other time one leaves, unless somebody waits for it with `Interrupts::deferred`. Leaving is exit code 130.
class Interrupts {
 public:
  static void install();

  // While this lives, the first Ctrl-C cancels `session`.
  class Cancels {
   public:
    explicit Cancels(Session& session);
    ~Cancels();
    Cancels(const Cancels&) = delete;
    Cancels& operator=(const Cancels&) = delete;
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
