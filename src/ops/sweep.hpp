// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/threads.hpp"
#include "ops/op_case.hpp"

namespace consonant {

// What a kernel may differ from the reference by, as a share of |wanted| + the case's magnitude: the one table.
// Float32 sums of n terms in another order than the reference's lose about sqrt(n) roundings; what is stored in fewer
// bits is rounded as the format says, to the bit.
double tolerance(DType type, int64_t reduction);

struct CaseResult {
  bool ran = false;     // false: the kernel refuses the case
  std::string refusal;  // why
  double error = 0;     // the worst, as a share like the tolerance
  double tolerance = 0;
  std::string fault;  // what is wrong with the kernel; empty if nothing
};

// Runs a case's node by the reference and by `kernel` on equal data. Besides the tolerance it checks that
//   - every element is written, and nothing beyond the output and the scratch memory asked for,
//   - chunks in a shuffled order on several threads give the same bits,
//   - tokens computed apart from their neighbours give the same bits.
CaseResult run_case(const Kernel& kernel, const OpCase& c, const CaseBuilder::Options& options, ThreadPool& pool);

// The first output of a case's node, float32, by the device's kernel: for expectations worked out by hand.
std::vector<float> compute(DeviceKind device, const std::function<Tensor(CaseBuilder&)>& build);

struct SweepResult {
  const Kernel* kernel = nullptr;
  int64_t cases = 0;                // that ran
  double error = 0, tolerance = 0;  // of the case that is nearest to its tolerance, or furthest past it
  std::vector<std::string> faults;  // "attend: 17 tokens: ..."
};

// Every case of the kernel's op that it takes, dense and as slices of wider tensors.
SweepResult sweep(const Kernel& kernel, ThreadPool& pool);

}  // namespace consonant
