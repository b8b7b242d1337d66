// SPDX-License-Identifier: Apache-2.0
#include "runtime/program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/checked.hpp"
#include "base/clock.hpp"
#include "device/spin.hpp"

namespace consonant {

namespace {

// Steps of up to so many tokens are captured once their sizes come again: those of a prompt seldom do.
constexpr int64_t captured_tokens = 64;

}  // namespace

Program::Program(Plan plan, std::shared_ptr<Buffer> arena)
    : plan_(std::move(plan)), device_(plan_.device.accelerator.get()), arena_(std::move(arena)) {
  if (!arena_ || arena_->size() < plan_.arena_bytes) {
    arena_ = std::make_shared<Buffer>(plan_.arena_bytes, device_);
    arena_->prefer_huge_pages();
  }
  for (const auto& wave : plan_.waves) {
    auto& steps = waves_.emplace_back();
    for (const PlannedNode& planned : wave) steps.push_back({&planned, {}, {}, {}, {}});
  }
  if (!device_) return;
  spinning_ = find_spinning(*device_);
  staging_ = PinnedBuffer(plan_.input_bytes, *device_);
  std::memset(staging_.data(), 0, static_cast<size_t>(staging_.size()));
  fetched_outputs_.resize(plan_.outputs.size());
  fetched_taps_.resize(plan_.taps.size());
}

Program::~Program() {
  if (device_) device_->name_nodes(nullptr, nullptr);
}

View Program::resolve(const Place& place) const {
  View view = place.view;
  if (place.in_arena) view.data = arena_->data() + place.offset;
  if (view.shape.axis() == Axis::token) view.shape = view.shape.with_lead(tokens_, Axis::token);
  if (view.shape.axis() == Axis::wanted) view.shape = view.shape.with_lead(wanted_, Axis::wanted);
  return view;
}

View Program::output(size_t index) const {
  return device_ ? fetch(plan_.outputs[index], fetched_outputs_[index]) : resolve(plan_.outputs[index]);
}

View Program::tap(size_t index) const {
  return device_ ? fetch(plan_.taps[index].place, fetched_taps_[index]) : resolve(plan_.taps[index].place);
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
    View view = resolve(place);
    if (device_) view.data = staging_.data() + place.offset;
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
    else if (name == "slots")
      fill(batch.slots);
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
  if (resized) set_views();
}

void Program::set_views() {
  for (auto& wave : waves_)
    for (Step& step : wave) {
      step.in.clear(), step.out.clear();
      for (const Place& place : step.planned->in) step.in.push_back(resolve(place));
      for (const Place& place : step.planned->out) step.out.push_back(resolve(place));
      step.args = {step.planned->node.get(), step.in, step.out};
    }
}

void Program::begin(const Batch& batch) {
  if (batch.tokens.size() != batch.positions.size() || batch.tokens.size() != batch.sequences.size())
    throw_error(Exit::failed, "a batch of {} tokens, {} positions and {} sequence numbers", batch.tokens.size(),
                batch.positions.size(), batch.sequences.size());
  if (device_) {
    if (waited_ < runs_) device_->wait();  // the inputs of the last step may be on their way still
    waited_ = runs_++;
    device_->name_nodes(this, [](const void* program, uint32_t number) {
      return static_cast<const Program*>(program)->describe(number);
    });
  }
  feed(batch);
}

void Program::run(const Batch& batch, ThreadPool& pool) {
  begin(batch);
  if (device_) return run_queued();
  for (auto& wave : waves_) run_wave(wave, pool);
}

void Program::run_observed(const Batch& batch, ThreadPool& pool, const Observer& seen) {
  begin(batch);
  if (device_) device_->upload(arena_->data(), staging_.data(), plan_.input_bytes);
  uint32_t number = 0;
  for (auto& wave : waves_)
    for (Step& step : wave) {
      if (!device_) {
        run_wave({&step, 1}, pool);
        seen(*step.planned, step.out);
        continue;
      }
      launch_node(step, ++number);
      std::vector<PinnedBuffer> copies;
      std::vector<View> outputs;
      for (const View& out : step.out) {
        copies.emplace_back(extent(out), *device_);
        device_->download(copies.back().data(), out.data, extent(out));
        outputs.push_back(out);
        outputs.back().data = copies.back().data();
      }
      device_->wait();
      if (!seen(*step.planned, outputs)) continue;
      for (size_t i = 0; i < outputs.size(); ++i)
        device_->upload(step.out[i].data, outputs[i].data, extent(outputs[i]));
      device_->wait();
    }
  if (device_) waited_ = runs_;
}

void Program::run_wave(std::span<Step> wave, ThreadPool& pool) {
  scratch_.resize(std::max(scratch_.size(), static_cast<size_t>(pool.threads())));
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

// ---- on an accelerator

void Program::run_queued() {
  Launches& known = launches_[{tokens_, wanted_}];
  if (known.captured) return device_->launch(*known.captured);
  if (tokens_ > captured_tokens || known.times++ == 0) return launch_nodes();
  device_->begin_capture();
  try {
    launch_nodes();
  } catch (...) {
    device_->drop_capture();
    throw;
  }
  known.captured = device_->end_capture();
  device_->launch(*known.captured);
}

void Program::launch_nodes() {
  device_->upload(arena_->data(), staging_.data(), plan_.input_bytes);
  uint32_t number = 0;
  for (auto& wave : waves_)
    for (Step& step : wave) launch_node(step, ++number);
}

void Program::launch_node(Step& step, uint32_t number) {
  device_->at_node(number);
  if (spinning_) spinning_->spin_before(step.planned->node->name);
  step.planned->gpu_kernel->launch(step.args, *device_, arena_->data() + step.planned->scratch.offset);
  device_->at_node(0);
}

std::vector<Program::KernelTime> Program::time_kernels(const Batch& batch) {
  if (!device_) throw_error(Exit::failed, "kernels are timed on accelerators");
  begin(batch);
  launch_nodes();
  device_->wait();
  std::vector<KernelTime> times;
  std::vector<std::vector<Step*>> kinds;
  for (auto& wave : waves_)
    for (Step& step : wave) {
      const std::string name = signature(step);
      const auto found = std::find_if(times.begin(), times.end(), [&](const KernelTime& t) { return t.name == name; });
      const auto at = static_cast<size_t>(found - times.begin());
      if (found == times.end()) {
        times.push_back({name, 0, 0, 0}), kinds.emplace_back();
        for (size_t i = 0; i < step.in.size(); ++i)
          if (step.planned->node->inputs[i].node->op == op_weight) times.back().weight_bytes += extent(step.in[i]);
      }
      ++times[at].nodes, kinds[at].push_back(&step);
    }
  for (size_t i = 0; i < kinds.size(); ++i) times[i].seconds = time_launches(kinds[i]);
  waited_ = runs_;
  return times;
}

// Of one of them.
double Program::time_launches(std::span<Step* const> steps) {
  constexpr size_t least = 40;
  size_t launches = 0;
  device_->begin_capture();
  try {
    for (; launches < least; launches += steps.size())
      for (Step* step : steps) launch_node(*step, 0);
  } catch (...) {
    device_->drop_capture();
    throw;
  }
  const std::unique_ptr<Captured> work = device_->end_capture();
  double best = std::numeric_limits<double>::max();
  for (int i = 0; i < 3; ++i) {
    const auto start = Clock::now();
    device_->launch(*work);
    device_->wait();
    best = std::min(best, seconds_since(start));
  }
  return best / static_cast<double>(launches);
}

std::string Program::signature(const Step& step) {
  std::string text(step.planned->gpu_kernel->name);
  for (const View& in : step.in) text += fmt::format(" {}{}", name(in.type), to_string(in.shape));
  text += " ->";
  for (const View& out : step.out) text += fmt::format(" {}{}", name(out.type), to_string(out.shape));
  return text;
}

std::string Program::describe(uint32_t number) const {
  const uint32_t which = number;
  for (const auto& wave : waves_) {
    if (number > wave.size()) {
      number -= static_cast<uint32_t>(wave.size());
      continue;
    }
    const Step& step = wave[number - 1];
    const Node& node = *step.planned->node;
    size_t nodes = 0;
    for (const auto& all : waves_) nodes += all.size();
    return fmt::format("{} ({}:{}), kernel {}, node {} of {} in a step of {} tokens", node.name,
                       node.location.file_name(), node.location.line, signature(step), which, nodes, tokens_);
  }
  return {};
}

void Program::queue_fetch(const Place& place, Fetched& fetched) const {
  const View view = resolve(place);
  const int64_t bytes = extent(view);
  if (fetched.copy.size() < bytes) fetched.copy = PinnedBuffer(bytes, *device_);
  device_->download(fetched.copy.data(), view.data, bytes);
}

View Program::fetch(const Place& place, Fetched& fetched) const {
  if (fetched.run != runs_) {
    queue_fetch(place, fetched);
    device_->wait();
    waited_ = fetched.run = runs_;
  }
  View view = resolve(place);
  view.data = fetched.copy.data();
  return view;
}

void Program::bring(std::span<const size_t> outputs) const {
  if (!device_) return;
  for (const size_t i : outputs) queue_fetch(plan_.outputs[i], fetched_outputs_[i]);
  device_->wait();
  waited_ = runs_;
  for (const size_t i : outputs) fetched_outputs_[i].run = runs_;
}

}  // namespace consonant
