// SPDX-License-Identifier: Apache-2.0
#include "ops/sweep_gpu.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>

#include "base/error.hpp"

namespace consonant {

namespace {

constexpr std::byte first_poison{0xFF}, second_poison{0xA5};
constexpr int64_t guard = 4096;  // bytes

// An address of its own for nothing too.
Buffer memory_of(Accelerator& device, int64_t bytes) { return Buffer(std::max<int64_t>(bytes, 1), &device); }

// A case in a device's memory. The node's launch is captured at once, while the inputs are still zeros.
class DeviceTrial {
 public:
  DeviceTrial(const Trial& trial, const GpuKernel& kernel, Accelerator& device);

  enum class Manner { launched, replayed, pieces };
  // Throws if memory beyond was touched.
  Results run(Manner manner, std::byte poison);
  bool inputs_are_intact();

 private:
  // What lies on the device and what was copied there.
  struct Copy {
    std::vector<std::byte> bytes;
    Buffer memory;
  };
  // What a kernel writes: on the device with a guard behind it, and its image in the host's pinned memory.
  struct Target {
    int64_t bytes;
    Buffer memory;
    PinnedBuffer image;
    std::vector<std::byte> state;  // that it begins with, if it isn't made anew
  };
  void place_input(size_t i);
  void add_target(int64_t bytes, std::vector<std::byte> state);
  void launch(std::span<const View> in, std::span<const View> out);

  const Trial& trial_;
  const GpuKernel& kernel_;
  Accelerator& device_;
  std::vector<Copy> copies_;
  std::map<const std::byte*, size_t> copy_of_;  // by the address of the host's
  std::vector<Target> targets_;                 // the outputs, then scratch memory
  std::vector<View> in_, out_;
  std::unique_ptr<Captured> captured_;
};

DeviceTrial::DeviceTrial(const Trial& trial, const GpuKernel& kernel, Accelerator& device)
    : trial_(trial), kernel_(kernel), device_(device) {
  for (size_t i = 0; i < trial.inputs(); ++i) place_input(i);
  std::vector<View> host_in;
  for (size_t i = 0; i < trial.inputs(); ++i) host_in.push_back(trial.input(i));
  Trial::Outputs host = trial.make_outputs(host_in, first_poison);
  for (size_t o = 0; o < host.views.size(); ++o) {
    const int alias = trial.node().outputs[o].alias;
    add_target(host.blocks[o].size(), alias >= 0 ? host.blocks[o].content() : std::vector<std::byte>());
    out_.push_back(host.views[o]);
    out_.back().data = targets_.back().memory.data();
    if (alias >= 0) in_[static_cast<size_t>(alias)].data = out_.back().data;
  }
  add_target(kernel.scratch ? kernel.scratch(trial.node(), device.limits()) : 0, {});
  device.begin_capture();
  try {
    launch(in_, out_);
  } catch (const Error&) {
    device.drop_capture();
    throw;
  }
  captured_ = device.end_capture();
  for (const Copy& copy : copies_)
    device.upload_now(copy.memory.data(), copy.bytes.data(), static_cast<int64_t>(copy.bytes.size()));
}

void DeviceTrial::place_input(size_t i) {
  View view = trial_.input(i);
  const auto keep = [&](const std::byte* host, auto&& make_bytes) {
    const auto [entry, is_new] = copy_of_.try_emplace(host, copies_.size());
    if (is_new) {
      std::vector<std::byte> bytes = make_bytes();
      Buffer memory = memory_of(device_, static_cast<int64_t>(bytes.size()));
      copies_.push_back({std::move(bytes), std::move(memory)});
    }
    return copies_[entry->second].memory.data();
  };
  if (trial_.is_matrix(i) && is_quantized(view.type)) {
    view.data = keep(view.data, [&] {
      const PackedShape shape = packed_shape(view.type, view.shape.sizes());
      std::vector<std::byte> bytes(static_cast<size_t>(shape.bytes()));
      pack_groups(shape, view.data, bytes.data(), 0, shape.groups());
      return bytes;
    });
    view.layout = Layout::rows8;
  } else {
    const Block& block = trial_.storage(i);
    view.data = keep(block.data(), [&] { return block.content(); }) + (view.data - block.data());
  }
  in_.push_back(view);
}

void DeviceTrial::add_target(int64_t bytes, std::vector<std::byte> state) {
  targets_.push_back(
      {bytes, memory_of(device_, bytes + guard), PinnedBuffer(bytes + guard, device_), std::move(state)});
}

void DeviceTrial::launch(std::span<const View> in, std::span<const View> out) {
  kernel_.launch({&trial_.node(), in, out}, device_, targets_.back().memory.data());
}

Results DeviceTrial::run(Manner manner, std::byte poison) {
  for (const Target& t : targets_) {
    std::fill_n(t.image.data(), t.bytes, poison);
    std::copy(t.state.begin(), t.state.end(), t.image.data());
    std::fill_n(t.image.data() + t.bytes, guard, Block::mark);
    device_.upload(t.memory.data(), t.image.data(), t.bytes + guard);
  }
  if (manner == Manner::replayed) {
    device_.launch(*captured_);
  } else if (manner == Manner::launched || !trial_.has_tokens()) {
    launch(in_, out_);
  } else {
    trial_.for_pieces(
        [&](int64_t first, int64_t last) { launch(tokens_of(in_, first, last), tokens_of(out_, first, last)); });
  }
  device_.wait();
  for (const Target& t : targets_) device_.download(t.image.data(), t.memory.data(), t.bytes + guard);
  device_.wait();
  Results results;
  for (const Target& t : targets_) {
    if (!Block::is_mark(t.image.data() + t.bytes, guard))
      throw_error(Exit::disagree, "writes past the end of its {}",
                  &t == &targets_.back() ? fmt::format("{} bytes of scratch memory", t.bytes) : "output");
    results.emplace_back(t.image.data(), t.image.data() + t.bytes);
  }
  results.pop_back();
  return results;
}

bool DeviceTrial::inputs_are_intact() {
  return std::all_of(copies_.begin(), copies_.end(), [&](const Copy& copy) {
    const auto bytes = static_cast<int64_t>(copy.bytes.size());
    const PinnedBuffer image(bytes, device_);
    device_.download(image.data(), copy.memory.data(), bytes);
    device_.wait();
    return std::equal(copy.bytes.begin(), copy.bytes.end(), image.data());
  });
}

// An emulator takes seconds where a card takes microseconds, so it runs the largest nodes only once.
bool runs_once(const Node& node, DeviceKind device) {
  if (device != DeviceKind::emu32 && device != DeviceKind::emu64) return false;
  int64_t elements = 0;
  for (const Tensor& x : node.inputs)
    if (x.node->op != op_state) elements += x.shape().count();
  for (const Output& out : node.outputs)
    if (out.alias < 0) elements += out.shape.count();
  return elements > 200000;
}

// Whether the kernel's tokens needn't have the same bits in smaller steps.
bool varies(const GpuKernel& kernel, const Trial& trial) { return trial.tokens() > kernel.same_bits_to; }

std::string fault_of(DeviceTrial& trial, const Results& got, const std::function<bool(const Results&)>& same) {
  using Manner = DeviceTrial::Manner;
  if (!trial.inputs_are_intact()) return "writes to its inputs";
  if (trial.run(Manner::replayed, second_poison) != got)
    return trial.run(Manner::launched, second_poison) == got
               ? "depends on what was there when it was captured"
               : "leaves elements as they were, or reads what it hasn't written";
  if (!same(trial.run(Manner::pieces, second_poison))) return "depends on which tokens share a batch";
  return {};
}

}  // namespace

CaseResult run_case(const GpuKernel& kernel, const OpCase& c, const CaseBuilder::Options& options,
                    Accelerator& device) {
  CaseResult result;
  try {
    const Trial trial(c, options);
    const bool once = runs_once(trial.node(), device.info().kind);
    if (options.apart && (once || !trial.has_slices())) return result;
    result.refusal = kernel.can_run(trial.node(), device.limits()).reason;
    if (!result.refusal.empty()) return result;
    result.ran = true;
    result.tolerance = tolerance(trial, c, kernel.rounding);
    DeviceTrial on_device(trial, kernel, device);
    const Results got = on_device.run(DeviceTrial::Manner::launched, first_poison);
    result.error = trial.distance(got, trial.expected());
    result.fault = past_tolerance(result);
    const auto same = [&](const Results& pieces) {
      return varies(kernel, trial) ? trial.distance(pieces, trial.expected()) <= result.tolerance : pieces == got;
    };
    if (result.fault.empty() && !once) result.fault = fault_of(on_device, got, same);
  } catch (const Error& error) {
    result.fault = error.what();
    result.lost = error.exit() == Exit::stalled;
  }
  return result;
}

SweepResult sweep(const GpuKernel& kernel, Accelerator& device, int64_t most_work) {
  return sweep_cases(kernel.op, most_work, [&](const OpCase& c, const CaseBuilder::Options& options) {
    return run_case(kernel, c, options, device);
  });
}

}  // namespace consonant
