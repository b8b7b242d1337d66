// SPDX-License-Identifier: Apache-2.0
#include "device/emu/block.hpp"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "base/error.hpp"

namespace consonant::GPU_BUILD::gpu {

constinit thread_local Block* current = nullptr;

namespace {

constexpr size_t stack_bytes = 256 * 1024;  // committed by the system only when touched
constexpr int most_threads = 1024;

// Ends a thread whose block has failed.
struct Abandoned {};

std::string_view file_name(const char* path) {
  const std::string_view all = path ? path : "?";
  return all.substr(all.rfind('/') + 1);
}

std::string to_string(Place place) { return fmt::format("{}:{}", file_name(place.file), place.line); }

}  // namespace

Block::Block() : threads_(most_threads), shuffling_(most_threads), ready_(most_threads), stack_(stack_bytes) {
  idle_.reserve(most_threads + 1);
}

std::string Block::where() const {
  return fmt::format("kernel {}, block ({}, {}, {}), thread {}", work_->kernel, at_.x, at_.y, at_.z, running_);
}

void Block::run(const Work& work, const Grid& at, int64_t shared_limit) {
  work_ = &work, at_ = at;
  count_ = work.threads, next_ = ended_ = syncing_ = 0;
  failed_ = false, error_ = nullptr;
  first_ready_ = count_ready_ = 0;
  for (int t = 0; t < count_; ++t) threads_[static_cast<size_t>(t)].state = State::unstarted;
  for (int w = 0; w < count_ / lane_width; ++w) shuffling_[static_cast<size_t>(w)] = 0;
  shared_.begin_block(work.dynamic_shared, shared_limit);
  current = this;
  leave(scheduler_);
  if (!failed_ && ended_ < count_) fail(std::make_exception_ptr(Error(Exit::failed, deadlock())));
  if (failed_) abandon();
  current = nullptr;
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

Block::Fiber Block::make_fiber() {
  return Fiber(std::allocator_arg, stack_, [this](Fiber&& previous) {
    *left_ = std::move(previous);
    run_threads();
    return Fiber();  // never reached: a fiber ends when the block's are destroyed
  });
}

// What a fiber does: threads that haven't begun, unless some have become ready in the meantime.
void Block::run_threads() {
  for (;;) {
    while (!failed_ && next_ < count_ && count_ready_ == 0) run_thread(next_++);
    idle_.emplace_back();
    leave(idle_.back());
  }
}

void Block::run_thread(int thread) {
  running_ = thread;
  threads_[static_cast<size_t>(thread)].state = State::runs;
  try {
    work_->body();
  } catch (const Abandoned&) {
    running_ = thread;
  } catch (const std::exception&) {
    fail(std::current_exception());
  }
  threads_[static_cast<size_t>(running_)].state = State::ended;
  ++ended_;
}

// Goes on with another thread, or with the scheduler if none can run.
void Block::leave(Fiber& self) {
  if (count_ready_ > 0) {
    const int next = ready_[first_ready_];
    first_ready_ = (first_ready_ + 1) % ready_.size(), --count_ready_;
    running_ = next;
    threads_[static_cast<size_t>(next)].state = State::runs;
    switch_to(std::move(threads_[static_cast<size_t>(next)].waiting), self);
  } else if (!failed_ && next_ < count_) {
    if (idle_.empty()) return switch_to(make_fiber(), self);
    Fiber next = std::move(idle_.back());
    idle_.pop_back();
    switch_to(std::move(next), self);
  } else {
    switch_to(std::move(scheduler_), self);
  }
}

void Block::switch_to(Fiber target, Fiber& self) {
  left_ = &self;
  Fiber previous = std::move(target).resume();
  *left_ = std::move(previous);
}

void Block::wait() {
  leave(threads_[static_cast<size_t>(running_)].waiting);
  if (failed_) throw Abandoned();
}

void Block::make_ready(int thread) { ready_[(first_ready_ + count_ready_++) % ready_.size()] = thread; }

void Block::fail(std::exception_ptr error) {
  failed_ = true, count_ready_ = 0;
  if (!error_) error_ = std::move(error);
}

// Lets the threads that wait end.
void Block::abandon() {
  for (int t = 0; t < next_; ++t) {
    Thread& thread = threads_[static_cast<size_t>(t)];
    if (!thread.waiting) continue;
    running_ = t;
    switch_to(std::move(thread.waiting), scheduler_);
  }
}

void Block::diverged(const Thread& other, int other_thread, const char* what, Place place) const {
  throw_error(Exit::failed, "{}: waits in {} at {}, but thread {} in the one at {}", where(), what, to_string(place),
              other_thread, to_string(other.place));
}

void Block::sync(Place place) {
  Thread& self = threads_[static_cast<size_t>(running_)];
  const int me = running_;
  self.place = place, self.state = State::syncs;
  if (++syncing_ < count_) return wait();
  for (int t = 0; t < count_; ++t) {
    const Thread& other = threads_[static_cast<size_t>(t)];
    if (other.place.line != place.line || file_name(other.place.file) != file_name(place.file))
      diverged(other, t, "sync()", place);
  }
  syncing_ = 0;
  for (int t = 0; t < count_; ++t)
    if (t != me) make_ready(t);
  self.state = State::runs;
}

uint32_t Block::shuffle(uint32_t value, int source, Place place) {
  Thread& self = threads_[static_cast<size_t>(running_)];
  const int me = running_, first = me / lane_width * lane_width;
  if (source < 0 || source >= lane_width)
    throw_error(Exit::failed, "{}: takes a value of lane {} of {} in the shuffle at {}", where(), source, lane_width,
                to_string(place));
  self.place = place, self.state = State::shuffles, self.value = value, self.source = source;
  int& arrived = shuffling_[static_cast<size_t>(me / lane_width)];
  if (++arrived < lane_width) {
    wait();
    return self.value;
  }
  arrived = 0;
  uint32_t given[lane_width];
  for (int i = 0; i < lane_width; ++i) given[i] = threads_[static_cast<size_t>(first + i)].value;
  for (int i = 0; i < lane_width; ++i) {
    Thread& lane = threads_[static_cast<size_t>(first + i)];
    if (lane.place.line != place.line || file_name(lane.place.file) != file_name(place.file))
      diverged(lane, first + i, "a shuffle", place);
    lane.value = given[lane.source];
    if (first + i != me) make_ready(first + i);
  }
  self.state = State::runs;
  return self.value;
}

// Who waits where, when nobody can go on.
std::string Block::deadlock() const {
  std::string text;
  int from = 0;
  const auto same = [&](const Thread& a, const Thread& b) {
    return a.state == b.state &&
           (a.state == State::ended || (a.place.line == b.place.line && a.place.file == b.place.file));
  };
  for (int t = 1; t <= count_; ++t) {
    const Thread& first = threads_[static_cast<size_t>(from)];
    if (t < count_ && same(first, threads_[static_cast<size_t>(t)])) continue;
    const std::string who =
        t - from == 1 ? fmt::format("thread {}", from) : fmt::format("threads {} to {}", from, t - 1);
    const std::string what = first.state == State::ended ? std::string("returned")
                             : first.state == State::syncs
                                 ? fmt::format("wait in sync() at {}", to_string(first.place))
                                 : fmt::format("wait in the shuffle at {}", to_string(first.place));
    if (text.size() < 400) text += fmt::format("{}{} {}", text.empty() ? "" : "; ", who, what);
    from = t;
  }
  return fmt::format("kernel {}, block ({}, {}, {}): its threads wait for each other: {}", work_->kernel, at_.x, at_.y,
                     at_.z, text);
}

}  // namespace consonant::GPU_BUILD::gpu
