// SPDX-License-Identifier: Apache-2.0
#pragma once

// A flow of control with a stack of its own. The sanitizers are told of every switch, or they'd take one stack for
// another.
#include <boost/context/fiber.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>
#include <cstddef>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#define CONSONANT_ASAN
#elif defined(__SANITIZE_THREAD__)
#define CONSONANT_TSAN
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CONSONANT_ASAN
#elif __has_feature(thread_sanitizer)
#define CONSONANT_TSAN
#endif
#endif
#ifdef CONSONANT_ASAN
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef CONSONANT_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace consonant::GPU_BUILD::gpu {

// One that can be resumed, once; a default one can't.
struct Fiber {
  boost::context::fiber context;
  const void* stack = nullptr;  // for the sanitizers
  size_t stack_bytes = 0;
  void* thread = nullptr;

  explicit operator bool() const { return static_cast<bool>(context); }
};

// Switches between fibers of one thread of the host, keeping the one that is left.
class Switch {
 public:
  // A fiber that calls fn() until it returns a fiber to go on with, and ends.
  template <class F>
  Fiber make(const F& fn) {
    Fiber made;
    const boost::context::stack_context stack = stacks_.allocate();
    made.stack_bytes = stack.size, made.stack = static_cast<const std::byte*>(stack.sp) - stack.size;
    made.context = boost::context::fiber(std::allocator_arg, boost::context::preallocated(stack.sp, stack.size, stack),
                                         stacks_, [this, fn](boost::context::fiber&& previous) {
                                           arrive(std::move(previous), nullptr);
                                           Fiber next = fn();
                                           depart(next, nullptr);
                                           return std::move(next.context);
                                         });
#ifdef CONSONANT_TSAN
    made.thread = __tsan_create_fiber(0);
#endif
    return made;
  }

  // Goes on with `target`, until somebody resumes `self`.
  void to(Fiber target, Fiber& self) {
    left_ = &self;
    void* fake_stack = nullptr;
    depart(target, &fake_stack);
    arrive(std::move(target.context).resume(), fake_stack);
  }

 private:
  void depart([[maybe_unused]] const Fiber& target, [[maybe_unused]] void** fake_stack) {
#ifdef CONSONANT_ASAN
    __sanitizer_start_switch_fiber(fake_stack, target.stack, target.stack_bytes);
#endif
#ifdef CONSONANT_TSAN
    if (fake_stack) left_->thread = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(target.thread, 0);
#endif
  }
  void arrive(boost::context::fiber previous, [[maybe_unused]] void* fake_stack) {
#ifdef CONSONANT_ASAN
    const void* stack = nullptr;
    size_t bytes = 0;
    __sanitizer_finish_switch_fiber(fake_stack, &stack, &bytes);
    if (left_) left_->stack = stack, left_->stack_bytes = bytes;
#endif
    if (left_) left_->context = std::move(previous);
  }

  // Committed by the system only when touched.
  boost::context::protected_fixedsize_stack stacks_{256 * 1024};
  Fiber* left_ = nullptr;  // where the fiber that is left is kept
};

}  // namespace consonant::GPU_BUILD::gpu
