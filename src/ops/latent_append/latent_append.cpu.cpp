// SPDX-License-Identifier: Apache-2.0
#include "ops/latent_append/row.hpp"
#include "ops/work.hpp"

namespace consonant {

namespace {

constexpr int64_t chunk_tokens = 16;

Work work(const Args& args) {
  return {ceil_div(args.in[1].shape[0], chunk_tokens), args.out[0].last() * int64_t{sizeof(float)}};
}

void run(const Args& args, int64_t chunk, std::byte* scratch) {
  auto* row = reinterpret_cast<float*>(scratch);
  const int64_t end = std::min(args.in[1].shape[0], (chunk + 1) * chunk_tokens);
  for (int64_t t = chunk * chunk_tokens; t < end; ++t) {
    latent_row(args, t, row);
    latent_page(args, t).write_rows(0, args.in[3].as<int32_t>()[t] % kv_page, 1, row, args.out[0].last());
  }
}

}  // namespace

extern const Kernel latent_append_cpu = {DeviceKind::cpu, Op::latent_append, wants_latent_parts, work, run};

}  // namespace consonant
