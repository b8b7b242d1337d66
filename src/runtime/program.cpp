// SPDX-License-Identifier: Apache-2.0
#include "runtime/program.hpp"

#include <algorithm>
#include <cstring>

#include "base/checked.hpp"

namespace consonant {

Program::Program(Plan plan) : plan_(std::move(plan)), arena_(plan_.arena_bytes) {
  arena_.prefer_huge_pages();
  for (const auto& wave : plan_.waves) {
    auto& steps = waves_.emplace_back();
    for (const PlannedNode& planned : wave) steps.push_back({&planned, {}, {}, {}, {}});
  }
}

View Program::resolve(const Place& place) const {
  View view = place.view;
  if (place.in_arena) view.data = arena_.data() + place.offset;
  if (view.shape.axis() == Axis::token) view.shape = view.shape.with_lead(tokens_, Axis::token);
  if (view.shape.axis() == Axis::wanted) view.shape = view.shape.with_lead(wanted_, Axis::wanted);
  return view;
}

void Program::feed_named(const Batch& batch, const std::string& name, const View& capacity, const View& to) const {
  for (const NamedNumbers& given : batch.more) {
    if (given.name != name) continue;
    const int64_t room = capacity.shape.count() * info(capacity.type).block_bytes;
    if (static_cast<int64_t>(given.bytes.size()) > room)
      throw_error(Exit::failed, "{} bytes for the input {} {}", given.bytes.size(), name, to_string(capacity.shape));
    std::copy(given.bytes.begin(), given.bytes.end(), to.data);
    return;
  }
  throw_error(Exit::failed, "a graph asks for the input '{}', which the batch doesn't have", name);
}

void Program::feed(const Batch& batch) {
  const auto tokens = static_cast<int64_t>(batch.tokens.size()), wanted = static_cast<int64_t>(batch.wanted.size());
  const bool resized = tokens != tokens_ || wanted != wanted_;
  tokens_ = wanted_ = -1;  // a batch that is refused halfway leaves no sizes behind that the views don't have
  for (const auto& [name, place] : plan_.inputs) {
    const View view = resolve(place);
    const auto fill = [&](const std::vector<int32_t>& from) {
      if (static_cast<int64_t>(from.size()) > place.view.shape.count())
        throw_error(Exit::failed, "{} numbers for the input {} {}", from.size(), name, to_string(place.view.shape));
      std::copy(from.begin(), from.end(), view.as<int32_t>());
    };
    if (name == "tokens")
      fill(batch.tokens);
    else if (name == "pos")
      fill(batch.positions);
    else if (name == "seq")
      fill(batch.sequences);
    else if (name == "wanted")
      fill(batch.wanted);
    else if (name == "pages") {
      const int64_t per_row = batch.pages_per_sequence,
                    rows = per_row ? static_cast<int64_t>(batch.pages.size()) / per_row : 0;
      if (rows > view.shape[0] || per_row > view.shape[1])
        throw_error(Exit::failed, "{} x {} pages for the input {}", rows, per_row, to_string(view.shape));
      for (int64_t r = 0; r < rows; ++r) std::copy_n(batch.pages.begin() + r * per_row, per_row, view.row<int32_t>(r));
    } else {
      feed_named(batch, name, place.view, view);
    }
  }
  tokens_ = tokens, wanted_ = wanted;
  if (!resized) return;
  for (auto& wave : waves_)
    for (Step& step : wave) {
      step.in.clear(), step.out.clear();
      for (const Place& place : step.planned->in) step.in.push_back(resolve(place));
      for (const Place& place : step.planned->out) step.out.push_back(resolve(place));
      step.args = {step.planned->node.get(), step.in, step.out};
    }
}

void Program::run(const Batch& batch, ThreadPool& pool) {
  if (batch.tokens.size() != batch.positions.size() || batch.tokens.size() != batch.sequences.size())
    throw_error(Exit::failed, "a batch of {} tokens, {} positions and {} sequence numbers", batch.tokens.size(),
                batch.positions.size(), batch.sequences.size());
  feed(batch);
  scratch_.resize(std::max(scratch_.size(), static_cast<size_t>(pool.threads())));
  for (auto& wave : waves_) run_wave(wave, pool);
}

void Program::run_wave(std::vector<Step>& wave, ThreadPool& pool) {
  int64_t chunks = 0, scratch = 0;
  for (Step& step : wave) {
    step.work = step.planned->kernel->work(step.args);
    chunks += step.work.chunks;
    scratch = std::max(scratch, step.work.scratch);
  }
  for (Buffer& buffer : scratch_)
    if (buffer.size() < scratch) buffer = Buffer(round_up(scratch, 4096));
  pool.run(chunks, [&](int64_t chunk, int thread) {
    for (const Step& step : wave) {
      if (chunk < step.work.chunks) {
        step.planned->kernel->run(step.args, chunk, scratch_[static_cast<size_t>(thread)].data());
        return;
      }
      chunk -= step.work.chunks;
    }
  });
}

}  // namespace consonant
