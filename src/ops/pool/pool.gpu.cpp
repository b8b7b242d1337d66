// SPDX-License-Identifier: Apache-2.0
// A block has 32 neighbouring channels and eight teams of threads, each with every eighth row; their sums are added up
// in the teams' order. Bound by reading x, and the scores, three times.
#include "ops/pool/pool.hpp"
#include "ops/gpu_rows.hpp"

namespace consonant::GPU_BUILD {

namespace {

constexpr int width = 32, teams = 8;

// The sum of what the teams have, for each channel.
GPU_FN float team_sum(float x) {
  GPU_SHARED(float, parts, width* teams);
  gpu::sync();  // those of an earlier call have been read
  parts[gpu::thread()] = x;
  gpu::sync();
  float sum = 0;
  for (int i = 0; i < teams; ++i) sum = gpu::add(sum, parts[i * width + gpu::thread() % width]);
  return sum;
}
GPU_FN float team_max(float x) {
  GPU_SHARED(float, parts, width* teams);
  gpu::sync();
  parts[gpu::thread()] = x;
  gpu::sync();
  float most = parts[gpu::thread() % width];
  for (int i = 1; i < teams; ++i) {
    const float other = parts[i * width + gpu::thread() % width];
    most = other > most ? other : most;
  }
  return most;
}

GPU_KERNEL void pool(Rows<const float> x, Rows<const float> scores, bool scored, Rows<float> y) {
  const int64_t channel = gpu::block() * width + gpu::thread() % width;
  const int64_t c = channel < x.cols ? channel : x.cols - 1;  // a thread without one sums another's
  const int team = gpu::thread() / width;
  float most = 0;
  if (scored) {
    most = scores.row(0)[c];
    for (int64_t t = team; t < x.rows; t += teams) {
      const float score = scores.row(t)[c];
      most = score > most ? score : most;
    }
    most = team_max(most);
  }
  const auto share = [&](int64_t t) { return scored ? gpu::exp(scores.row(t)[c] - most) : 1.0f; };
  float all = 0, sum = 0, squares = 0;
  for (int64_t t = team; t < x.rows; t += teams) {
    const float p = share(t);
    all += p;
    sum = gpu::fma(p, x.row(t)[c], sum);
  }
  all = team_sum(all);
  const float mean = team_sum(sum) / all;
  for (int64_t t = team; t < x.rows; t += teams) {
    const float away = x.row(t)[c] - mean;
    squares = gpu::fma(share(t) * away, away, squares);
  }
  const float variance = team_sum(squares) / all;
  if (team > 0 || channel >= x.cols) return;
  y.row(0)[c] = mean;
  y.row(1)[c] = gpu::sqrt(variance > 1e-12f ? variance : 1e-12f);
}

void launch(const Args& args, Accelerator& device, std::byte*) {
  const bool scored = args.attr<PoolAttr>().scores;
  gpu::launch<pool, width * teams>(device, {ceil_div(args.out[0].last(), width)}, 0, rows_of<const float>(args.in[0]),
                                   rows_of<const float>(args.in[scored ? 1 : 0]), scored, rows_of<float>(args.out[0]));
}

}  // namespace

GpuKernel pool_gpu() { return {"pool", Op::pool, wants_gpu_rows, nullptr, launch}; }

}  // namespace consonant::GPU_BUILD
