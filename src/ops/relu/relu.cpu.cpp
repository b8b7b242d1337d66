// SPDX-License-Identifier: Apache-2.0
#include "ops/activation.hpp"
#include "ops/work.hpp"

namespace consonant {

namespace {

constexpr int64_t chunk_elements = 8192;

Work work(const Args& args) { return {RowChunks(args.out[0], chunk_elements).count(), 0}; }

void run(const Args& args, int64_t chunk, std::byte*) {
  const View &x = args.in[0], &y = args.out[0];
  const RowChunks chunks(y, chunk_elements);
  for (int64_t r = chunks.first(chunk); r < chunks.last(chunk); ++r)
    activate(Activation::relu, x.row<float>(r), nullptr, y.row<float>(r), y.last());
}

}  // namespace

extern const Kernel relu_cpu = {DeviceKind::cpu, Op::relu, wants_float_rows, work, run};

}  // namespace consonant
