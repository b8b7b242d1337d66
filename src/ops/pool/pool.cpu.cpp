// SPDX-License-Identifier: Apache-2.0
// A chunk has some neighbouring channels, so that a row's part of it is a few cache lines. Sums run over the rows in
// order, in double: there are thousands.
#include <algorithm>
#include <cmath>

#include "ops/pool/pool.hpp"
#include "ops/work.hpp"

namespace consonant {

namespace {

constexpr int64_t width = 32;

Work work(const Args& args) { return {ceil_div(args.out[0].last(), width), 0}; }

struct Channels {
  const View &x, *scores;
  int64_t first, n;
  float most[width];

  Channels(const Args& args, int64_t chunk)
      : x(args.in[0]),
        scores(args.attr<PoolAttr>().scores ? &args.in[1] : nullptr),
        first(chunk * width),
        n(std::min(width, args.out[0].last() - first)) {
    if (!scores) return;
    std::copy_n(scores->row<float>(0) + first, n, most);
    for (int64_t t = 1; t < x.rows(); ++t)
      for (int64_t c = 0; c < n; ++c) most[c] = std::max(most[c], scores->row<float>(t)[first + c]);
  }

  float share(int64_t t, int64_t c) const { return scores ? std::exp(scores->row<float>(t)[first + c] - most[c]) : 1; }
};

void run(const Args& args, int64_t chunk, std::byte*) {
  const Channels channels(args, chunk);
  double all[width] = {}, sums[width] = {}, squares[width] = {};
  const int64_t rows = channels.x.rows(), first = channels.first;
  for (int64_t t = 0; t < rows; ++t)
    for (int64_t c = 0; c < channels.n; ++c) {
      const double p = channels.share(t, c);
      all[c] += p;
      sums[c] += p * channels.x.row<float>(t)[first + c];
    }
  for (int64_t t = 0; t < rows; ++t)
    for (int64_t c = 0; c < channels.n; ++c) {
      const double away = channels.x.row<float>(t)[first + c] - sums[c] / all[c];
      squares[c] += channels.share(t, c) * away * away;
    }
  for (int64_t c = 0; c < channels.n; ++c) {
    args.out[0].row<float>(0)[first + c] = static_cast<float>(sums[c] / all[c]);
    args.out[0].row<float>(1)[first + c] = static_cast<float>(std::sqrt(std::max(squares[c] / all[c], 1e-12)));
  }
}

}  // namespace

extern const Kernel pool_cpu = {DeviceKind::cpu, Op::pool, wants_float_rows, work, run};

}  // namespace consonant
