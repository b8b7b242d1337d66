// SPDX-License-Identifier: Apache-2.0
// The processor's plans keep the plain nodes, so this kernel is simple: it serves graphs that name the op.
#include "ops/rope_append/heads.hpp"
#include "ops/work.hpp"

namespace consonant {

namespace {

constexpr int64_t chunk_tokens = 16;

Work work(const Args& args) {
  return {ceil_div(args.in[3].shape[0], chunk_tokens), args.in[3].last() * static_cast<int64_t>(sizeof(float))};
}

void run(const Args& args, int64_t chunk, std::byte* scratch) {
  const RopeAppendArgs a(args);
  const int64_t end = std::min(a.k.shape[0], (chunk + 1) * chunk_tokens);
  for (int64_t t = chunk * chunk_tokens; t < end; ++t)
    rope_append_token<float>(a, t, reinterpret_cast<float*>(scratch));
}

}  // namespace

extern const Kernel rope_append_cpu = {DeviceKind::cpu, Op::rope_append, wants_heads, work, run};

}  // namespace consonant
