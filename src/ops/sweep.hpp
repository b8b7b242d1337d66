// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/threads.hpp"
#include "ops/trial.hpp"

namespace consonant {

// What a kernel may differ from the reference by, as a share of |wanted| + the case's magnitude: the one table.
//   - Float32 sums of n terms in another order than the reference's lose about sqrt(n) roundings.
//   - Where a kernel first rounds its inputs, to the share `rounding` of each, as tensor cores with float16 inputs do,
//   a
//     term is wrong by at most twice that share, on average by half as much, and the errors of a sum's terms are
//     independent: five times is more than six standard deviations.
//   - What is stored in fewer bits is rounded as the format says, to the bit.
double tolerance(DType type, int64_t reduction, double rounding = 0);

struct CaseResult {
  bool ran = false;     // false: the kernel refuses the case
  std::string refusal;  // why
  double error = 0;     // the worst, as a share like the tolerance
  double tolerance = 0;
  std::string fault;  // what is wrong with the kernel; empty if nothing
  bool lost = false;  // the device with it
};

// Runs a case's node by the reference and by `kernel` on equal data. Besides the tolerance it checks that
//   - every element is written, and nothing beyond the output and the scratch memory asked for,
//   - chunks in a shuffled order on several threads give the same bits,
//   - tokens computed apart from their neighbours give the same bits.
CaseResult run_case(const Kernel& kernel, const OpCase& c, const CaseBuilder::Options& options, ThreadPool& pool);

// The first output of a case's node, float32, by the device's kernel: for expectations worked out by hand.
std::vector<float> compute(DeviceKind device, const std::function<Tensor(CaseBuilder&)>& build);

// About the multiplications and memory accesses of a case: for leaving out the long ones.
int64_t work_of(const OpCase& c);

struct SweepResult {
  int64_t cases = 0;                // that ran
  double error = 0, tolerance = 0;  // of the case that is nearest to its tolerance, or furthest past it
  std::vector<std::string> faults;  // "attend: 17 tokens: ..."
  bool lost = false;                // the device, so that the sweep ended early
};

// Every case of the kernel's op that it takes, dense and as slices of wider tensors.
SweepResult sweep(const Kernel& kernel, ThreadPool& pool, int64_t most_work = INT64_MAX);

// What the sweeps of all devices share.
using RunCase = std::function<CaseResult(const OpCase& c, const CaseBuilder::Options& options)>;
SweepResult sweep_cases(Op op, int64_t most_work, const RunCase& run);
double tolerance(const Trial& trial, const OpCase& c, double rounding);
std::string past_tolerance(const CaseResult& result);  // empty if it isn't

}  // namespace consonant
