// SPDX-License-Identifier: Apache-2.0
#include "ops/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>

#include "base/error.hpp"
#include "ops/trial.hpp"
#include "tensor/packed.hpp"

namespace consonant {

double tolerance(DType type, int64_t reduction, double rounding) {
  switch (type) {
    case DType::f32:
      return 0x1p-22 * std::sqrt(static_cast<double>(std::max<int64_t>(reduction, 1))) + 5 * rounding;
    default:
      return 0;
  }
}

int64_t work_of(const OpCase& c) {
  CaseBuilder builder;
  const Tensor result = c.build(builder);
  int64_t work = 0;
  for (const CaseBuilder::Leaf& leaf : builder.leaves()) work += leaf.node->outputs[0].shape.count();
  for (const Output& out : result.node->outputs) work += out.shape.count() * c.reduction;
  return work;
}

namespace {

// A case on the processor.
class HostTrial {
 public:
  explicit HostTrial(const Trial& trial, ThreadPool& pool) : trial_(trial), pool_(pool) {}

  struct Manner {
    std::byte poison;
    bool shuffled = false;  // chunks in another order, on all threads of the pool
    bool pieces = false;    // a few tokens at a time
  };
  // Throws if memory beyond was touched.
  Results run(const Kernel& kernel, const Manner& manner);

 private:
  void run_on(const Kernel& kernel, const Args& args, const Manner& manner) const;
  View packed(const View& plain);

  const Trial& trial_;
  ThreadPool& pool_;
  std::map<const std::byte*, View> packed_;
  std::vector<Block> blocks_;
};

// Matrices as the device's kernels read them.
View HostTrial::packed(const View& plain) {
  View& kept = packed_[plain.data];
  if (!kept.data) {
    const PackedShape shape = packed_shape(plain.type, plain.shape.sizes());
    blocks_.emplace_back(shape.bytes() + 64, std::byte{0});  // vector loads may look past the end
    pack_groups(shape, plain.data, blocks_.back().data(), 0, shape.groups());
    kept = plain;
    kept.data = blocks_.back().data();
    kept.layout = Layout::rows8;
  }
  return kept;
}

void HostTrial::run_on(const Kernel& kernel, const Args& args, const Manner& manner) const {
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
  pool_.run(work.chunks, [&](int64_t i, int) {
    const Block scratch(work.scratch, manner.poison);
    kernel.run(args, order[static_cast<size_t>(i)], scratch.data());
    check(scratch);
  });
}

Results HostTrial::run(const Kernel& kernel, const Manner& manner) {
  std::vector<View> in;
  for (size_t i = 0; i < trial_.inputs(); ++i) {
    const View view = trial_.input(i);
    in.push_back(trial_.is_matrix(i) && kernel.device != DeviceKind::reference ? packed(view) : view);
  }
  const Trial::Outputs out = trial_.make_outputs(in, manner.poison);
  if (!manner.pieces || !trial_.has_tokens()) {
    run_on(kernel, {&trial_.node(), in, out.views}, manner);
  } else {
    trial_.for_pieces([&](int64_t first, int64_t last) {
      const std::vector<View> some_in = tokens_of(in, first, last), some_out = tokens_of(out.views, first, last);
      run_on(kernel, {&trial_.node(), some_in, some_out}, manner);
    });
  }
  Results results;
  for (const Block& block : out.blocks) {
    if (!block.intact()) throw_error(Exit::disagree, "writes past the end of its output");
    results.push_back(block.content());
  }
  return results;
}

}  // namespace

double tolerance(const Trial& trial, const OpCase& c, double rounding) {
  double most = 0;
  for (const Output& out : trial.node().outputs) most = std::max(most, tolerance(out.type, c.reduction, rounding));
  return most;
}

std::string past_tolerance(const CaseResult& result) {
  if (result.error <= result.tolerance) return {};
  return fmt::format("differs by {:.3g} of what it may be at most {:.3g}", result.error, result.tolerance);
}

CaseResult run_case(const Kernel& kernel, const OpCase& c, const CaseBuilder::Options& options, ThreadPool& pool) {
  CaseResult result;
  try {
    const Trial trial(c, options);
    if (options.apart && !trial.has_slices()) return result;
    result.refusal = kernel.can_run(trial.node()).reason;
    if (!result.refusal.empty()) return result;
    result.ran = true;
    result.tolerance = tolerance(trial, c, 0);
    HostTrial host(trial, pool);
    const Results got = host.run(kernel, {std::byte{0xFF}});
    result.error = trial.distance(got, trial.expected());
    result.fault = past_tolerance(result);
    if (!result.fault.empty()) return result;
    if (host.run(kernel, {std::byte{0xA5}}) != got)
      result.fault = "leaves elements as they were, or reads what it hasn't written";
    else if (host.run(kernel, {std::byte{0xA5}, true}) != got)
      result.fault = "depends on the order of its chunks or on threads";
    else if (host.run(kernel, {std::byte{0xA5}, false, true}) != got)
      result.fault = "depends on which tokens share a batch";
  } catch (const Error& error) {
    result.fault = error.what();
  }
  return result;
}

std::vector<float> compute(DeviceKind device, const std::function<Tensor(CaseBuilder&)>& build) {
  ThreadPool pool(1);
  const OpCase c{"", build};
  const Trial trial(c, {});
  const Choice choice = choose_kernel(trial.node(), device);
  if (!choice.kernel) throw_error(Exit::device, "{}", choice.refusal.reason);
  const std::vector<std::byte> bytes = HostTrial(trial, pool).run(*choice.kernel, {std::byte{0xFF}})[0];
  std::vector<float> numbers(bytes.size() / sizeof(float));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

namespace {

// Those of at most that much work; the least ones where all are more.
std::vector<OpCase> cases_within(Op op, int64_t most_work) {
  std::vector<OpCase> cases = cases_of(op);
  if (most_work == INT64_MAX) return cases;
  std::vector<int64_t> works;
  for (const OpCase& c : cases) works.push_back(work_of(c));
  if (!works.empty()) most_work = std::max(most_work, *std::min_element(works.begin(), works.end()));
  std::vector<OpCase> kept;
  for (size_t i = 0; i < cases.size(); ++i)
    if (works[i] <= most_work) kept.push_back(std::move(cases[i]));
  return kept;
}

}  // namespace

SweepResult sweep_cases(Op op, int64_t most_work, const RunCase& run) {
  SweepResult result;
  double nearest = -1;  // error over tolerance
  for (const OpCase& c : cases_within(op, most_work)) {
    for (const bool apart : {false, true}) {
      const CaseResult one = run(c, {apart, {}, {}});
      const std::string name = fmt::format("{}{}", c.name, apart ? ", of wider rows" : "");
      if (!one.fault.empty()) result.faults.push_back(fmt::format("{}: {}", name, one.fault));
      if (one.lost) {
        result.lost = true;
        return result;
      }
      if (!one.ran) continue;
      ++result.cases;
      const double share = one.tolerance > 0 ? one.error / one.tolerance : one.error;
      if (share > nearest) nearest = share, result.error = one.error, result.tolerance = one.tolerance;
    }
  }
  if (result.cases == 0) result.faults.push_back("takes none of its op's cases");
  return result;
}

SweepResult sweep(const Kernel& kernel, ThreadPool& pool, int64_t most_work) {
  return sweep_cases(kernel.op, most_work, [&](const OpCase& c, const CaseBuilder::Options& options) {
    return run_case(kernel, c, options, pool);
  });
}

}  // namespace consonant
