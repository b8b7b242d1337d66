// SPDX-License-Identifier: Apache-2.0
#include "device/emu/block_runner.hpp"

#include <fmt/format.h>

#include <cstring>
#include <mutex>
#include <utility>

#include "base/error.hpp"

namespace consonant::GPU_BUILD::gpu {

constinit thread_local Block* current = nullptr;

namespace {

constexpr int most_threads = 1024;

// Ends a thread whose block has failed.
struct Abandoned {};

std::string to_string(Place place) {
  const std::string_view all = place.file;
  return fmt::format("{}:{}", all.substr(all.rfind('/') + 1), place.line);
}

bool same(Place a, Place b) { return a.line == b.line && (a.file == b.file || std::strcmp(a.file, b.file) == 0); }

struct Kept {
  std::mutex mutex;
  std::vector<std::unique_ptr<BlockRunner>> blocks;
};

Kept& kept() {
  static Kept all;
  return all;
}

}  // namespace

std::unique_ptr<BlockRunner> take_block() {
  {
    const std::lock_guard lock(kept().mutex);
    if (!kept().blocks.empty()) {
      auto block = std::move(kept().blocks.back());
      kept().blocks.pop_back();
      return block;
    }
  }
  return std::make_unique<BlockRunner>();
}

void give_block(std::unique_ptr<BlockRunner> block) {
  const std::lock_guard lock(kept().mutex);
  kept().blocks.push_back(std::move(block));
}

std::string element(const char* name, uintptr_t begin, uintptr_t at, int64_t bytes) {
  const auto from = static_cast<int64_t>(at - begin);
  const std::string which =
      from % bytes == 0 ? fmt::format("element {} of {} (", from / bytes, name) : fmt::format("{} (", name);
  return fmt::format("{}bytes {} to {})", which, from, from + bytes - 1);
}

BlockRunner::BlockRunner() : threads_(most_threads), shuffling_(most_threads), ready_(most_threads) {
  idle_.reserve(most_threads + 1);
}

BlockRunner::~BlockRunner() {
  stopping_ = true;
  while (!idle_.empty()) {
    Fiber fiber = std::move(idle_.back());
    idle_.pop_back();
    switch_.to(std::move(fiber), scheduler_);
  }
}

std::string Block::where_block() const {
  return fmt::format("kernel {}, block ({}, {}, {})", work_->kernel, at_.x, at_.y, at_.z);
}
std::string Block::where() const { return fmt::format("{}, thread {}", where_block(), turn_.thread); }

void BlockRunner::run(const Work& work, int64_t number, const Rules& rules) {
  const Grid& g = work.grid;
  work_ = &work, at_ = {number % g.x, number / g.x % g.y, number / g.x / g.y};
  count_ = work.threads, begun_ = ended_ = syncing_ = 0;
  failed_ = false, error_ = nullptr;
  first_ready_ = count_ready_ = 0;
  for (int w = 0; w < count_ / lane_width; ++w) shuffling_[static_cast<size_t>(w)] = 0;
  turn_.checks = rules.checks, turn_.between_blocks = rules.checks && g.x * g.y * g.z > 1;
  turn_.launch = rules.launch, turn_.block = static_cast<uint32_t>(number);
  shared_.begin_block(work.dynamic_shared, rules.shared_bytes);
  current = this;
  switch_.to(next(), scheduler_);
  if (!failed_ && ended_ < count_)
    fail(std::make_exception_ptr(
        Error(Exit::failed, fmt::format("{}: its threads wait for each other: {}", where_block(), waiting()))));
  if (failed_) abandon();
  current = nullptr;
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

// What a fiber does: threads that haven't begun, unless some have become ready in the meantime.
Fiber BlockRunner::serve() {
  for (;;) {
    while (!failed_ && begun_ < count_ && count_ready_ == 0) run_thread(begun_++);
    Fiber target = next();
    idle_.emplace_back();
    switch_.to(std::move(target), idle_.back());
    if (stopping_) return std::move(scheduler_);
  }
}

void BlockRunner::run_thread(int number) {
  turn_.thread = number;
  thread(number).state = State::runs;
  try {
    work_->body();
  } catch (const Abandoned&) {  // its block's error is known
  } catch (const std::exception&) {
    fail(std::current_exception());
  }
  thread(turn_.thread).state = State::ended;
  ++ended_;
}

// Who goes on: a thread, or the scheduler if none can.
Fiber BlockRunner::next() {
  if (count_ready_ > 0) {
    turn_.thread = ready_[first_ready_];
    first_ready_ = (first_ready_ + 1) % ready_.size(), --count_ready_;
    thread(turn_.thread).state = State::runs;
    return std::move(thread(turn_.thread).waiting);
  }
  if (failed_ || begun_ == count_) return std::move(scheduler_);
  if (idle_.empty()) return switch_.make([this] { return serve(); });
  Fiber fiber = std::move(idle_.back());
  idle_.pop_back();
  return fiber;
}

void BlockRunner::wait() {
  Thread& self = thread(turn_.thread);
  switch_.to(next(), self.waiting);
  if (failed_) throw Abandoned();
}

void BlockRunner::make_ready(int number) { ready_[(first_ready_ + count_ready_++) % ready_.size()] = number; }

void BlockRunner::fail(std::exception_ptr error) {
  failed_ = true, count_ready_ = 0;
  if (!error_) error_ = std::move(error);
}

// Lets the threads that wait end.
void BlockRunner::abandon() {
  for (int t = 0; t < begun_; ++t) {
    if (!thread(t).waiting) continue;
    turn_.thread = t;
    switch_.to(std::move(thread(t).waiting), scheduler_);
  }
}

// Whether these threads wait at one place.
bool BlockRunner::together(int first, int count) const {
  const Place place = threads_[static_cast<size_t>(first)].place;
  for (int t = first + 1; t < first + count; ++t)
    if (!same(threads_[static_cast<size_t>(t)].place, place)) return false;
  return true;
}

void BlockRunner::sync(Place place) {
  const int me = turn_.thread;
  thread(me).place = place, thread(me).state = State::syncs;
  if (++syncing_ < count_) return wait();
  if (!together(0, count_))
    throw_error(Exit::failed, "{}: its threads are at different places in sync(): {}", where_block(), waiting());
  syncing_ = 0;
  turn_.synced = ++turn_.now;
  for (int t = 0; t < count_; ++t)
    if (t != me) make_ready(t);
  thread(me).state = State::runs;
}

uint32_t BlockRunner::shuffle(uint32_t value, int source, Place place) {
  const int me = turn_.thread, warp = turn_.warp(), first = warp * lane_width;
  Thread& self = thread(me);
  if (source < 0 || source >= lane_width)
    throw_error(Exit::failed, "{}: takes the value of lane {} of {} in the shuffle at {}", where(), source, lane_width,
                to_string(place));
  self.place = place, self.state = State::shuffles, self.value = value, self.source = source;
  int& arrived = shuffling_[static_cast<size_t>(warp)];
  if (++arrived < lane_width) {
    wait();
    return self.value;
  }
  if (!together(first, lane_width))
    throw_error(Exit::failed, "{}: lanes of warp {} are at different places in a shuffle: {}", where_block(), warp,
                waiting());
  arrived = 0;
  turn_.warp_synced[static_cast<size_t>(warp)] = ++turn_.now;
  uint32_t given[lane_width];
  for (int i = 0; i < lane_width; ++i) given[i] = thread(first + i).value;
  for (int i = 0; i < lane_width; ++i) {
    thread(first + i).value = given[thread(first + i).source];
    if (first + i != me) make_ready(first + i);
  }
  self.state = State::runs;
  return self.value;
}

// "threads 0 to 31 wait in sync() at x.cpp:7; threads 32 to 63 returned"
std::string BlockRunner::waiting() const {
  const auto alike = [](const Thread& a, const Thread& b) {
    return a.state == b.state && (a.state == State::ended || same(a.place, b.place));
  };
  std::string text;
  for (int from = 0, to; from < begun_ && text.size() < 400; from = to) {
    const Thread& first = threads_[static_cast<size_t>(from)];
    for (to = from + 1; to < begun_ && alike(first, threads_[static_cast<size_t>(to)]);) ++to;
    if (!text.empty()) text += "; ";
    text += to == from + 1 ? fmt::format("thread {} ", from) : fmt::format("threads {} to {} ", from, to - 1);
    if (first.state == State::ended)
      text += "returned";
    else
      text += fmt::format("in {} at {}", first.state == State::syncs ? "sync()" : "a shuffle", to_string(first.place));
  }
  return text;
}

}  // namespace consonant::GPU_BUILD::gpu
