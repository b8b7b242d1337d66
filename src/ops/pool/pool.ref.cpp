// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/pool/pool.hpp"
#include "ops/work.hpp"

namespace consonant {

namespace {

void run(const Args& args, int64_t, std::byte*) {
  const View &x = args.in[0], &y = args.out[0];
  const int64_t rows = x.rows();
  for (int64_t c = 0; c < y.last(); ++c) {
    std::vector<double> p(static_cast<size_t>(rows), 1);
    if (args.attr<PoolAttr>().scores) {
      double most = args.in[1].row<float>(0)[c];
      for (int64_t t = 1; t < rows; ++t) most = std::max(most, double{args.in[1].row<float>(t)[c]});
      for (int64_t t = 0; t < rows; ++t) p[static_cast<size_t>(t)] = std::exp(args.in[1].row<float>(t)[c] - most);
    }
    double all = 0, mean = 0, squares = 0;
    for (int64_t t = 0; t < rows; ++t) all += p[static_cast<size_t>(t)];
    for (int64_t t = 0; t < rows; ++t) mean += p[static_cast<size_t>(t)] / all * x.row<float>(t)[c];
    for (int64_t t = 0; t < rows; ++t) {
      const double away = x.row<float>(t)[c] - mean;
      squares += p[static_cast<size_t>(t)] / all * away * away;
    }
    y.row<float>(0)[c] = static_cast<float>(mean);
    y.row<float>(1)[c] = static_cast<float>(std::sqrt(std::max(squares, 1e-12)));
  }
}

}  // namespace

extern const Kernel pool_ref = {DeviceKind::reference, Op::pool, wants_float_rows, whole, run};

}  // namespace consonant
