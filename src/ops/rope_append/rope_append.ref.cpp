// SPDX-License-Identifier: Apache-2.0
#include "ops/rope_append/heads.hpp"
#include "ops/work.hpp"

namespace consonant {

namespace {

void run(const Args& args, int64_t, std::byte*) {
  const RopeAppendArgs a(args);
  std::vector<float> row(static_cast<size_t>(a.k.last()));
  for (int64_t t = 0; t < a.k.shape[0]; ++t) rope_append_token<double>(a, t, row.data());
}

}  // namespace

extern const Kernel rope_append_ref = {DeviceKind::reference, Op::rope_append, wants_heads, whole, run};

}  // namespace consonant
