// SPDX-License-Identifier: Apache-2.0
#include "ops/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <numeric>

#include "base/error.hpp"
#include "tensor/packed.hpp"

namespace consonant {

double tolerance(DType type, int64_t reduction) {
  switch (type) {
    case DType::f32:
      return 0x1p-22 * std::sqrt(static_cast<double>(std::max<int64_t>(reduction, 1)));
    default:
      return 0;
  }
}

namespace {

int64_t bytes_of(const View& view) { return view.rows() * row_bytes(view.type, view.last()); }

// Aligned memory, with a guard behind what a kernel writes; inputs have none, so that a sanitizer sees reads past them.
class Block {
 public:
  Block(int64_t bytes, std::byte fill, size_t guard = 64)
      : bytes_(static_cast<size_t>(bytes)), guard_(guard), data_(new (std::align_val_t{64}) std::byte[bytes_ + guard]) {
    std::fill_n(data(), bytes_, fill);
    std::fill_n(data() + bytes_, guard_, mark);
  }
  std::byte* data() const { return data_.get(); }
  std::vector<std::byte> content() const { return {data(), data() + bytes_}; }
  bool intact() const {
    return std::all_of(data() + bytes_, data() + bytes_ + guard_, [](std::byte b) { return b == mark; });
  }

 private:
  static constexpr std::byte mark{0x5A};
  struct Free {
    void operator()(std::byte* p) const { ::operator delete[](p, std::align_val_t{64}); }
  };

  size_t bytes_, guard_;
  std::unique_ptr<std::byte[], Free> data_;
};

View view_of(const Output& out, std::byte* data) { return {data, out.type, out.shape, out.strides, Layout::plain}; }

// The same value for tokens first ... last - 1 alone.
View tokens_of(View view, int64_t first, int64_t last) {
  if (view.shape.axis() == Axis::fixed) return view;
  view.data += first * row_bytes(view.type, view.strides[0]);
  view.shape = view.shape.with_lead(last - first, view.shape.axis());
  return view;
}

// A case with its data: what lies before the node is computed once.
class Trial {
 public:
  Trial(const OpCase& c, const CaseBuilder::Options& options)
      : case_(c), builder_(options), result_(c.build(builder_)) {
    for (const Node* node : walk({result_}))
      if (node != result_.node.get()) compute(*node);
  }

  const Node& node() const { return *result_.node; }
  bool has_slices() const { return builder_.has_slices(); }

  struct Manner {
    std::byte poison;
    bool shuffled = false;  // chunks in another order, on all threads of the pool
    bool pieces = false;    // a few tokens at a time
  };
  // The bytes of each output, or of the state that it replaces. Throws if memory beyond was touched.
  std::vector<std::vector<std::byte>> run(const Kernel& kernel, const Manner& manner, ThreadPool& pool);

  // The worst difference of two results as a share; infinite where only one of them is a number.
  double distance(const std::vector<std::vector<std::byte>>& got,
                  const std::vector<std::vector<std::byte>>& want) const;

 private:
  View input_view(const Tensor& x) const { return views_.at({x.node.get(), x.output}); }
  void compute(const Node& node);
  void run_on(const Kernel& kernel, const Args& args, const Manner& manner, ThreadPool& pool) const;
  View packed(const View& plain);
  int64_t tokens() const;

  const OpCase& case_;
  CaseBuilder builder_;
  Tensor result_;
  std::map<std::pair<const Node*, int>, View> views_;
  std::map<const std::byte*, View> packed_;
  std::vector<Block> blocks_;
  std::mt19937 random_{20};
};

void Trial::compute(const Node& node) {
  const auto store = [&](int i, const Output& out) {
    View view = view_of(out, nullptr);
    if (out.alias >= 0) {
      const Tensor& from = node.inputs[static_cast<size_t>(out.alias)];
      view.data = input_view(from).data + out.offset * info(out.type).block_bytes / info(out.type).block;
    } else {
      blocks_.emplace_back(bytes_of(view), std::byte{0xFF}, 0);
      view.data = blocks_.back().data();
    }
    views_[{&node, i}] = view;
    return view;
  };
  std::vector<View> out, in;
  for (size_t i = 0; i < node.outputs.size(); ++i) out.push_back(store(static_cast<int>(i), node.outputs[i]));
  for (const CaseBuilder::Leaf& leaf : builder_.leaves())
    if (leaf.node.get() == &node) leaf.fill(out[0], random_);
  if (node.op < first_op) return;
  for (const Tensor& x : node.inputs) in.push_back(input_view(x));
  const Choice choice = choose_kernel(node, DeviceKind::reference);
  if (!choice.kernel) throw_error(Exit::failed, "{}: {}", case_.name, choice.refusal.reason);
  const Args args{&node, in, out};
  const Work work = choice.kernel->work(args);
  Block scratch(work.scratch, std::byte{0xFF});
  for (int64_t chunk = 0; chunk < work.chunks; ++chunk) choice.kernel->run(args, chunk, scratch.data());
}

// Matrices as the device's kernels read them.
View Trial::packed(const View& plain) {
  View& kept = packed_[plain.data];
  if (!kept.data) {
    const PackedShape shape = packed_shape(plain.type, plain.shape[0], plain.shape[1]);
    blocks_.emplace_back(shape.bytes() + 64, std::byte{0});  // vector loads may look past the end
    pack_groups(shape, plain.data, blocks_.back().data(), 0, shape.groups());
    kept = plain;
    kept.data = blocks_.back().data();
    kept.layout = Layout::rows8;
  }
  return kept;
}

int64_t Trial::tokens() const {
  for (const Tensor& x : result_.node->inputs)
    if (x.shape().axis() != Axis::fixed) return x.shape()[0];
  return -1;
}

void Trial::run_on(const Kernel& kernel, const Args& args, const Manner& manner, ThreadPool& pool) const {
  const Work work = kernel.work(args);
  std::vector<int64_t> order(static_cast<size_t>(work.chunks));
  std::iota(order.begin(), order.end(), 0);
  const auto check = [&](const Block& scratch) {
    if (!scratch.intact()) throw_error(Exit::disagree, "writes past its {} bytes of scratch memory", work.scratch);
  };
  if (!manner.shuffled) {
    for (int64_t chunk : order) {
      const Block scratch(work.scratch, manner.poison);
      kernel.run(args, chunk, scratch.data());
      check(scratch);
    }
    return;
  }
  std::shuffle(order.begin(), order.end(), std::mt19937(7));
  pool.run(work.chunks, [&](int64_t i, int) {
    const Block scratch(work.scratch, manner.poison);
    kernel.run(args, order[static_cast<size_t>(i)], scratch.data());
    check(scratch);
  });
}

std::vector<std::vector<std::byte>> Trial::run(const Kernel& kernel, const Manner& manner, ThreadPool& pool) {
  const Node& node = *result_.node;
  std::vector<View> in, out;
  std::vector<Block> results;
  for (const Tensor& x : node.inputs) {
    View view = input_view(x);
    const bool matrix = x.node->op == op_weight && view.shape.rank() == 2;
    in.push_back(matrix && kernel.device != DeviceKind::reference ? packed(view) : view);
  }
  for (const Output& o : node.outputs) {
    View view = view_of(o, nullptr);
    results.emplace_back(bytes_of(view), manner.poison);
    view.data = results.back().data();
    if (o.alias >= 0) {  // a state, replaced in place: each run has a copy
      View& old = in[static_cast<size_t>(o.alias)];
      if (bytes_of(view) > 0) std::memcpy(view.data, old.data, static_cast<size_t>(bytes_of(view)));
      old.data = view.data;
    }
    out.push_back(view);
  }
  const int64_t all = manner.pieces ? tokens() : -1;
  if (all < 0) run_on(kernel, {&node, in, out}, manner, pool);
  // One token at a time; many tokens in pieces that grow.
  for (int64_t first = 0, n = 1; first<all; first += n, n += all> 128) {
    const int64_t last = std::min(all, first + n);
    std::vector<View> some_in, some_out;
    for (const View& v : in) some_in.push_back(tokens_of(v, first, last));
    for (const View& v : out) some_out.push_back(tokens_of(v, first, last));
    run_on(kernel, {&node, some_in, some_out}, manner, pool);
  }
  std::vector<std::vector<std::byte>> bytes;
  for (const Block& block : results) {
    if (!block.intact()) throw_error(Exit::disagree, "writes past the end of its output");
    bytes.push_back(block.content());
  }
  return bytes;
}

double Trial::distance(const std::vector<std::vector<std::byte>>& got,
                       const std::vector<std::vector<std::byte>>& want) const {
  double worst = 0;
  for (size_t o = 0; o < got.size(); ++o) {
    if (result_.node->outputs[o].type != DType::f32) {
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

}  // namespace

CaseResult run_case(const Kernel& kernel, const OpCase& c, const CaseBuilder::Options& options, ThreadPool& pool) {
  CaseResult result;
  try {
    Trial trial(c, options);
    if (options.apart && !trial.has_slices()) return result;
    const Choice reference = choose_kernel(trial.node(), DeviceKind::reference);
    result.refusal = reference.kernel ? kernel.can_run(trial.node()).reason : reference.refusal.reason;
    if (!result.refusal.empty()) return result;
    result.ran = true;
    for (const Output& out : trial.node().outputs)
      result.tolerance = std::max(result.tolerance, tolerance(out.type, c.reduction));
    const auto want = trial.run(*reference.kernel, {std::byte{0xFF}}, pool);
    const auto got = trial.run(kernel, {std::byte{0xFF}}, pool);
    result.error = trial.distance(got, want);
    if (result.error > result.tolerance)
      result.fault = fmt::format("differs by {:.3g} of what it may be at most {:.3g}", result.error, result.tolerance);
    else if (trial.run(kernel, {std::byte{0xA5}}, pool) != got)
      result.fault = "leaves elements as they were, or reads what it hasn't written";
    else if (trial.run(kernel, {std::byte{0xA5}, true}, pool) != got)
      result.fault = "depends on the order of its chunks or on threads";
    else if (trial.run(kernel, {std::byte{0xA5}, false, true}, pool) != got)
      result.fault = "depends on which tokens share a batch";
  } catch (const Error& error) {
    result.fault = error.what();
  }
  return result;
}

std::vector<float> compute(DeviceKind device, const std::function<Tensor(CaseBuilder&)>& build) {
  ThreadPool pool(1);
  const OpCase c{"", build};
  Trial trial(c, {});
  const Choice choice = choose_kernel(trial.node(), device);
  if (!choice.kernel) throw_error(Exit::device, "{}", choice.refusal.reason);
  const std::vector<std::byte> bytes = trial.run(*choice.kernel, {std::byte{0xFF}}, pool)[0];
  std::vector<float> numbers(bytes.size() / sizeof(float));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

SweepResult sweep(const Kernel& kernel, ThreadPool& pool) {
  SweepResult result;
  result.kernel = &kernel;
  double nearest = -1;  // error over tolerance
  for (const OpCase& c : cases_of(kernel.op))
    for (const bool apart : {false, true}) {
      const CaseResult one = run_case(kernel, c, {apart, {}, {}}, pool);
      const std::string name = fmt::format("{}{}", c.name, apart ? ", of wider rows" : "");
      if (!one.fault.empty()) result.faults.push_back(fmt::format("{}: {}", name, one.fault));
      if (!one.ran) continue;
      ++result.cases;
      const double share = one.tolerance > 0 ? one.error / one.tolerance : one.error;
      if (share > nearest) nearest = share, result.error = one.error, result.tolerance = one.tolerance;
    }
  if (result.cases == 0) result.faults.push_back("takes none of its op's cases");
  return result;
}

}  // namespace consonant
