// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/activation.hpp"
#include "ops/work.hpp"

namespace consonant {

// The kernels of an op that is one activation of its first input, element by element.
template <Activation f>
struct ActivationKernel {
  static constexpr int64_t chunk_elements = 8192;

  static Work work(const Args& args) { return {RowChunks(args.out[0], chunk_elements).count(), 0}; }

  static void run(const Args& args, int64_t chunk, std::byte*) {
    const View &x = args.in[0], &y = args.out[0];
    const RowChunks chunks(y, chunk_elements);
    for (int64_t r = chunks.first(chunk); r < chunks.last(chunk); ++r)
      activate(f, x.row<float>(r), nullptr, y.row<float>(r), y.last());
  }

  static void run_exact(const Args& args, int64_t, std::byte*) {
    const View &x = args.in[0], &y = args.out[0];
    for (int64_t r = 0; r < y.rows(); ++r)
      for (int64_t i = 0; i < y.last(); ++i) y.row<float>(r)[i] = static_cast<float>(exact(f, x.row<float>(r)[i]));
  }

  static constexpr Kernel cpu(Op op) { return {DeviceKind::cpu, op, wants_float_rows, work, run}; }
  static constexpr Kernel reference(Op op) { return {DeviceKind::reference, op, wants_float_rows, whole, run_exact}; }
};

}  // namespace consonant
