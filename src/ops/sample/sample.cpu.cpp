// SPDX-License-Identifier: Apache-2.0
#include "ops/sample/row.hpp"

namespace consonant {

namespace {

Work work(const Args& args) { return {args.in[0].rows(), 0}; }

void run(const Args& args, int64_t r, std::byte*) {
  const SampleRow row = sample_row(args, r);
  Stages stages;
  const float top = stages.adjust(row.logits, row.options, row.adjustments);
  if (std::isnan(top)) return give(args, r, broken_logits, NAN);
  if (top == -INFINITY) return give(args, r, all_excluded, NAN);
  int32_t token = stages.best();
  if (row.options.temperature > 0) {
    stages.filter(row.options);
    token = stages.draw(stages.temper(row.options.temperature), row.number);
  }
  give(args, r, token, log_probability_of(row.logits, greatest_logit(row.logits), token));
}

}  // namespace

extern const Kernel sample_cpu = {DeviceKind::cpu, Op::sample, wants_sample, work, run};

}  // namespace consonant
