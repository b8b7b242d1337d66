// SPDX-License-Identifier: Apache-2.0
#include "ops/trial.hpp"

#include <cmath>
#include <cstring>

#include "base/error.hpp"

namespace consonant {

namespace {

View view_of(const Output& out, std::byte* data) { return {data, out.type, out.shape, out.strides, Layout::plain}; }

}  // namespace

Block::Block(int64_t bytes, std::byte fill, size_t guard)
    : bytes_(static_cast<size_t>(bytes)), guard_(guard), data_(new (std::align_val_t{64}) std::byte[bytes_ + guard]) {
  std::fill_n(data(), bytes_, fill);
  std::fill_n(data() + bytes_, guard_, mark);
}

int64_t bytes_of(const View& view) { return view.rows() * row_bytes(view.type, view.last()); }

std::vector<View> tokens_of(std::vector<View> views, int64_t first, int64_t last) {
  for (View& view : views) {
    if (view.shape.axis() == Axis::fixed) continue;
    view.data += first * row_bytes(view.type, view.strides[0]);
    view.shape = view.shape.with_lead(last - first, view.shape.axis());
  }
  return views;
}

Trial::Trial(const OpCase& c, const CaseBuilder::Options& options)
    : case_(c), builder_(options), result_(c.build(builder_)) {
  for (const Node* node : walk({result_}))
    if (node != result_.node.get()) compute(*node);
}

void Trial::compute(const Node& node) {
  const auto store = [&](int i, const Output& out) {
    Value made{view_of(out, nullptr), 0};
    if (out.alias >= 0) {
      const Value& from = value(node.inputs[static_cast<size_t>(out.alias)]);
      made.block = from.block;
      made.view.data = from.view.data + out.offset * info(out.type).block_bytes / info(out.type).block;
    } else {
      made.block = blocks_.size();
      blocks_.emplace_back(bytes_of(made.view), std::byte{0xFF}, 0);
      made.view.data = blocks_.back().data();
    }
    values_[{&node, i}] = made;
    return made.view;
  };
  std::vector<View> out, in;
  for (size_t i = 0; i < node.outputs.size(); ++i) out.push_back(store(static_cast<int>(i), node.outputs[i]));
  for (const CaseBuilder::Leaf& leaf : builder_.leaves())
    if (leaf.node.get() == &node) leaf.fill(out[0], random_);
  if (node.op < first_op) return;
  for (const Tensor& x : node.inputs) in.push_back(value(x).view);
  run_reference({&node, in, out});
}

void Trial::run_reference(const Args& args) const {
  const Choice choice = choose_kernel(*args.node, DeviceKind::reference);
  if (!choice.kernel) throw_error(Exit::failed, "{}: {}", case_.name, choice.refusal.reason);
  const Work work = choice.kernel->work(args);
  const Block scratch(work.scratch, std::byte{0xFF});
  for (int64_t chunk = 0; chunk < work.chunks; ++chunk) choice.kernel->run(args, chunk, scratch.data());
}

bool Trial::is_matrix(size_t i) const {
  const Tensor& x = node().inputs[i];
  return x.node->op == op_weight && x.shape().rank() >= 2;
}

Trial::Outputs Trial::make_outputs(std::vector<View>& in, std::byte poison) const {
  Outputs made;
  for (const Output& out : node().outputs) {
    View view = view_of(out, nullptr);
    made.blocks.emplace_back(bytes_of(view), poison);
    view.data = made.blocks.back().data();
    if (out.alias >= 0) {
      View& old = in[static_cast<size_t>(out.alias)];
      if (bytes_of(view) > 0) std::memcpy(view.data, old.data, static_cast<size_t>(bytes_of(view)));
      old.data = view.data;
    }
    made.views.push_back(view);
  }
  return made;
}

Results Trial::expected() const {
  std::vector<View> in;
  for (size_t i = 0; i < inputs(); ++i) in.push_back(input(i));
  const Outputs out = make_outputs(in, std::byte{0xFF});
  run_reference({&node(), in, out.views});
  Results results;
  for (const Block& block : out.blocks) results.push_back(block.content());
  return results;
}

int64_t Trial::tokens() const {
  for (const Tensor& x : node().inputs)
    if (x.shape().axis() != Axis::fixed) return x.shape()[0];
  return -1;
}

double Trial::distance(const Results& got, const Results& want) const {
  double worst = 0;
  for (size_t o = 0; o < got.size(); ++o) {
    if (node().outputs[o].type != DType::f32) {
      if (got[o] != want[o]) return HUGE_VAL;
      continue;
    }
    for (size_t at = 0; at < got[o].size(); at += sizeof(float)) {
      float a, b;
      std::memcpy(&a, got[o].data() + at, sizeof a);
      std::memcpy(&b, want[o].data() + at, sizeof b);
      if (a == b || (std::isnan(a) && std::isnan(b))) continue;
      if (!std::isfinite(a) || !std::isfinite(b)) return HUGE_VAL;
      worst = std::max(worst, std::abs(double{a} - b) / (std::abs(double{b}) + case_.magnitude));
    }
  }
  return worst;
}

}  // namespace consonant
