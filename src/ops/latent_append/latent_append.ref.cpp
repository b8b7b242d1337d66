// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "ops/latent_append/row.hpp"
#include "ops/work.hpp"

namespace consonant {

namespace {

void run(const Args& args, int64_t, std::byte*) {
  std::vector<float> row(static_cast<size_t>(args.out[0].last()));
  for (int64_t t = 0; t < args.in[1].shape[0]; ++t) {
    latent_row(args, t, row.data());
    latent_page(args, t).write(0, args.in[3].as<int32_t>()[t] % kv_page, row.data());
  }
}

}  // namespace

extern const Kernel latent_append_ref = {DeviceKind::reference, Op::latent_append, wants_latent_parts, whole, run};

}  // namespace consonant
