// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "base/checked.hpp"
#include "base/glob.hpp"
#include "runtime/memory.hpp"
#include "runtime/passes/passes.hpp"

namespace consonant {

namespace {

constexpr int forever = std::numeric_limits<int>::max();

int64_t storage_bytes(const Output& out) {
  return checked_mul(out.shape.rows(), row_bytes(out.type, out.shape.last()));
}

class Planner {
 public:
  Planner(std::vector<Tensor> outputs, const PlanOptions& options) : options_(options), outputs_(std::move(outputs)) {
    name_nodes(outputs_);
    fuse();
    nodes_ = walk(outputs_);
    for (const Tensor& out : outputs_) owners_.emplace(out.node.get(), out.node);
    for (const Node* node : nodes_)
      for (const Tensor& in : node->inputs) owners_.emplace(in.node.get(), in.node);
  }

  Plan run() {
    number_waves();
    check_appends();
    find_lifetimes();
    choose_kernels();
    const MemoryPlan memory = place(lifetimes_);
    for (auto& entry : storages_)
      if (entry.second.kind == Storage::Kind::arena)
        entry.second.offset = input_bytes_ + memory.offsets[entry.second.lifetime];
    Plan plan;
    plan.device = options_.device;
    plan.input_bytes = input_bytes_;
    plan.arena_bytes = input_bytes_ + memory.bytes;
    bind(plan, memory);
    for (const Tensor& out : outputs_) plan.outputs.push_back(place_of(out));
    return plan;
  }

 private:
  // Where a value is kept that isn't an alias of another.
  struct Storage {
    enum class Kind { arena, input, outside } kind = Kind::arena;  // outside: a weight or a state
    View view;                                                     // of what lies outside
    size_t lifetime = 0;
    int64_t offset = 0;
  };
  struct Chosen {
    const Kernel* kernel = nullptr;
    const GpuKernel* gpu = nullptr;
    size_t scratch = 0;  // its lifetime, if it has one
    bool has_scratch = false;
  };

  void fuse() {
    outputs_ = merge_equal(outputs_);
    if (options_.device.kind == DeviceKind::reference) return;  // every node as the model wrote it
    outputs_ = fuse_gated(outputs_);
    outputs_ = fuse_epilogue(outputs_);
    if (options_.device.accelerator) outputs_ = fuse_heads(fuse_linear_sets(fuse_experts(outputs_)));
    if (options_.small_activations && !options_.device.accelerator) outputs_ = quantize_activations(outputs_);
  }

  bool is_leaf(const Node& node) const { return node.op == op_input || node.op == op_weight || node.op == op_state; }

  // The value whose storage `x` lies in, and the elements from its start.
  std::pair<Tensor, int64_t> root(Tensor x) const {
    int64_t offset = 0;
    for (;;) {
      const Output& out = x.node->outputs[static_cast<size_t>(x.output)];
      if (out.alias < 0) return {x, offset};
      offset += out.offset;
      x = x.node->inputs[static_cast<size_t>(out.alias)];
    }
  }

  using Key = std::pair<const Node*, int>;
  struct KeyHash {
    size_t operator()(const Key& k) const {
      return std::hash<const void*>()(k.first) * 31 + static_cast<size_t>(k.second);
    }
  };

  // A node runs in the first wave after all that it reads; views and leaves take no wave of their own.
  void number_waves() {
    for (const Node* node : nodes_) {
      int wave = is_leaf(*node) || node->op == op_view ? -1 : 0;
      for (const Tensor& in : node->inputs) {
        const int before = wave_.at(in.node.get());
        wave = std::max(wave, node->op == op_view ? before : before + 1);
      }
      wave_[node] = wave;
      wave_count_ = std::max(wave_count_, wave + 1);
    }
  }

  // An append writes over the value it extends, in place: whoever reads that value has to come before.
  void check_appends() const {
    const auto value_of = [](Tensor x) {
      while (x.node->op == op_view) x = x.node->inputs[0];
      return Key{x.node.get(), x.output};
    };
    std::unordered_map<Key, const Node*, KeyHash> appends;  // by the value that is written over
    for (const Node* node : nodes_)
      for (const Output& out : node->outputs) {
        if (node->op == op_view || out.alias < 0) continue;
        const Node*& known = appends[value_of(node->inputs[static_cast<size_t>(out.alias)])];
        if (known && known != node) fail_append(*known, *node);
        known = node;
      }
    for (const Node* node : nodes_)
      for (const Tensor& in : node->inputs) {
        const auto append = node->op == op_view ? appends.end() : appends.find(value_of(in));
        if (append == appends.end() || append->second == node) continue;
        if (wave_.at(node) >= wave_.at(append->second)) fail_append(*append->second, *node);
      }
  }

  [[noreturn]] static void fail_append(const Node& append, const Node& other) {
    throw_error(Exit::failed, "{} ({}:{}) would see what {} ({}:{}) writes over: it must use the append's value",
                other.name, other.location.file_name(), other.location.line, append.name, append.location.file_name(),
                append.location.line);
  }

  bool is_tapped(const Node& node) const {
    if (is_leaf(node) || node.op == op_view || node.outputs[0].alias >= 0) return false;
    return std::any_of(options_.taps.begin(), options_.taps.end(),
                       [&](const std::string& glob) { return glob_match(glob, node.name); });
  }

  void find_lifetimes() {
    for (const Node* node : nodes_)
      for (size_t i = 0; i < node->outputs.size(); ++i)
        if (node->outputs[i].alias < 0) add_storage(*node, static_cast<int>(i));
    for (const Node* node : nodes_)
      for (const Tensor& in : node->inputs) extend(in, wave_.at(node));
    for (const Tensor& out : outputs_) extend(out, forever);
    for (const Node* node : nodes_)
      if (is_tapped(*node)) extend({owners_.at(node), 0}, forever);
  }

  void add_storage(const Node& node, int output) {
    Storage storage;
    if (node.op == op_weight) {
      storage.kind = Storage::Kind::outside;
      storage.view = options_.weights->view(node.attr<WeightAttr>().index);
    } else if (node.op == op_state) {
      storage.kind = Storage::Kind::outside;
      storage.view = options_.states(node.attr<StateAttr>());
    } else if (node.op == op_input) {  // side by side, so that one copy brings them to a device
      storage.kind = Storage::Kind::input;
      storage.offset = input_bytes_;
      input_bytes_ += round_up(storage_bytes(node.outputs[static_cast<size_t>(output)]), 64);
    } else {
      storage.lifetime = lifetimes_.size();
      const int wave = wave_.at(&node);
      lifetimes_.push_back({storage_bytes(node.outputs[static_cast<size_t>(output)]), wave, wave});
    }
    storages_.emplace(Key{&node, output}, storage);
  }

  void extend(const Tensor& x, int wave) {
    const Tensor owner = root(x).first;
    const Storage& storage = storages_.at({owner.node.get(), owner.output});
    if (storage.kind != Storage::Kind::arena) return;
    int& last = lifetimes_[storage.lifetime].last;
    last = std::max(last, wave);
  }

  Place place_of(const Tensor& x) const {
    const auto [owner, elements] = root(x);
    const Storage& storage = storages_.at({owner.node.get(), owner.output});
    const Output& out = x.node->outputs[static_cast<size_t>(x.output)];
    Place place;
    place.view = {nullptr, out.type, out.shape, out.strides, Layout::plain};
    const int64_t bytes = elements == 0 ? 0 : elements * info(out.type).block_bytes / info(out.type).block;
    if (storage.kind == Storage::Kind::outside) {
      place.in_arena = false;
      if (storage.view.data) place.view.data = storage.view.data + bytes;
      place.view.layout = storage.view.layout;
      place.view.type = storage.view.type;  // vectors are float32 on every device, whatever the file has
    } else {
      place.offset = storage.offset + bytes;
    }
    return place;
  }

  Choice choose(const Node& node, Chosen& chosen) const {
    if (!options_.device.accelerator) {
      Choice choice = choose_kernel(node, options_.device.kind);
      chosen.kernel = choice.kernel;
      return choice;
    }
    GpuChoice choice = choose_kernel(node, options_.device.kernels, options_.device.accelerator->limits(),
                                     !options_.small_activations);
    chosen.gpu = choice.kernel;
    return {nullptr, choice.refusal};
  }

  static std::string refusal_of(const Node& node, const std::string& reason) {
    std::string text =
        fmt::format("\n  {} ({}:{}): {}", node.name, node.location.file_name(), node.location.line, op_name(node.op));
    for (const Tensor& in : node.inputs) text += fmt::format(" {}{}", name(in.type()), to_string(in.shape()));
    return text + ": " + reason;
  }

  // All nodes, so that a refusal is the whole list.
  void choose_kernels() {
    std::string refusals;
    for (const Node* node : nodes_) {
      if (is_leaf(*node) || node->op == op_view) continue;
      Chosen chosen;
      const Choice choice = choose(*node, chosen);
      if (!chosen.kernel && !chosen.gpu) {
        refusals += refusal_of(*node, choice.refusal.reason);
        continue;
      }
      if (chosen.gpu && chosen.gpu->scratch) {
        chosen.has_scratch = true, chosen.scratch = lifetimes_.size();
        const int64_t bytes = chosen.gpu->scratch(*node, options_.device.accelerator->limits());
        lifetimes_.push_back({bytes, wave_.at(node), wave_.at(node)});
      }
      chosen_[node] = chosen;
    }
    if (!refusals.empty())
      throw_error(Exit::device, "{} can't run this model; no kernel for:{}", name(options_.device.kind), refusals);
  }

  void bind(Plan& plan, const MemoryPlan& memory) {
    plan.waves.resize(static_cast<size_t>(wave_count_));
    for (const Node* node : nodes_) {
      if (node->op == op_input) plan.inputs.emplace_back(node->attr<InputAttr>().name, place_of({owners_.at(node), 0}));
      if (is_leaf(*node) || node->op == op_view) continue;
      const Chosen& chosen = chosen_.at(node);
      PlannedNode planned{owners_.at(node), chosen.kernel, chosen.gpu, {}, {}, {}};
      for (const Tensor& in : node->inputs) planned.in.push_back(place_of(in));
      for (size_t i = 0; i < node->outputs.size(); ++i)
        planned.out.push_back(place_of({owners_.at(node), static_cast<int>(i)}));
      if (chosen.has_scratch) {
        planned.scratch.offset = input_bytes_ + memory.offsets[chosen.scratch];
        planned.scratch.view.shape = {lifetimes_[chosen.scratch].bytes};
      }
      if (is_tapped(*node))
        plan.taps.push_back(
            {node->name, fmt::format("{}:{}", node->location.file_name(), node->location.line), planned.out[0]});
      plan.waves[static_cast<size_t>(wave_.at(node))].push_back(std::move(planned));
    }
  }

  const PlanOptions& options_;
  std::vector<Tensor> outputs_;
  std::vector<Node*> nodes_;
  std::unordered_map<const Node*, std::shared_ptr<Node>> owners_;
  std::unordered_map<const Node*, int> wave_;
  std::unordered_map<Key, Storage, KeyHash> storages_;
  std::vector<Lifetime> lifetimes_;
  std::unordered_map<const Node*, Chosen> chosen_;
  int64_t input_bytes_ = 0;
  int wave_count_ = 0;
};

}  // namespace

std::string_view PlannedNode::op() const { return op_name(node->op); }

std::string_view PlannedNode::kernel_name() const { return gpu_kernel ? gpu_kernel->name : op(); }

Plan make_plan(std::vector<Tensor> outputs, const PlanOptions& options) {
  return Planner(std::move(outputs), options).run();
}

}  // namespace consonant
