// SPDX-License-Identifier: Apache-2.0
// One row after another, so one chunk. The weights are read as [k][8] floats a group of eight outputs, where they lie
// or decoded once a step, and for every output
//   acc = fma(w[k], h[k], acc)   for k ascending
#include "ops/linear/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/lstm/lstm.cpu.cpp"
#include <hwy/foreach_target.h>
// After foreach_target: both are compiled once a target.
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <algorithm>

#include "base/checked.hpp"
#include "ops/lstm/lstm.hpp"
#include "ops/lstm/lstm_node.hpp"

#ifndef CONSONANT_LSTM_ONCE
#define CONSONANT_LSTM_ONCE
namespace consonant {

// Vectors may be read and written past the last element by less than this.
constexpr int64_t lstm_slack = 64;

struct LstmScratch {
  int64_t n, groups;
  bool decodes;  // the weights, into `panels`
  float *gates, *h, *c, *panels;

  explicit LstmScratch(const Args& args, std::byte* scratch = nullptr)
      : n(args.out[0].last()),
        groups(ceil_div(4 * n, 8)),
        decodes(args.in[1].type != DType::f32 || args.in[1].layout != Layout::rows8),
        gates(reinterpret_cast<float*>(scratch)),
        h(gates + 8 * groups + lstm_slack),
        c(h + n + lstm_slack),
        panels(c + n + lstm_slack) {}
  int64_t bytes() const { return 4 * (8 * groups + 2 * n + 3 * lstm_slack + (decodes ? 8 * groups * n + n : 0)); }
};

}  // namespace consonant
#endif

HWY_BEFORE_NAMESPACE();
namespace consonant {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Four lanes at least to a vector of a group's eight outputs, eight at most.
using Eight = hn::CappedTag<float, 8>;

// Both keep what is no number, which a minimum or Highway's functions may lose.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V logistic(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  const V y = hn::Div(one, hn::Add(one, hn::Exp(d, hn::Min(hn::Neg(x), hn::Set(d, 88.0f)))));
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V tangent(D d, V x) {
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Tanh(d, x));
}

// `G` groups at once: their sums don't wait for one another.
template <int G>
HWY_INLINE void multiply_groups(const float* w, const float* h, int64_t n, float* sums) {
  const Eight d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t part = 0; part < 8; part += lanes) {
    hn::Vec<Eight> acc[G];
    for (int g = 0; g < G; ++g) acc[g] = hn::Zero(d);
    for (int64_t k = 0; k < n; ++k) {
      const auto s = hn::Set(d, h[k]);
      for (int g = 0; g < G; ++g) acc[g] = hn::MulAdd(hn::LoadU(d, w + (g * n + k) * 8 + part), s, acc[g]);
    }
    for (int g = 0; g < G; ++g) hn::StoreU(acc[g], d, sums + 8 * g + part);
  }
}

void lstm_rows(const View& x, const float* b, const float* weights, const LstmScratch& s, const View& y) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t n = s.n;
  for (int64_t t = 0; t < y.shape[0]; ++t) {
    int64_t group = 0;
    for (; group + 8 <= s.groups; group += 8) multiply_groups<8>(weights + group * 8 * n, s.h, n, s.gates + group * 8);
    for (; group < s.groups; ++group) multiply_groups<1>(weights + group * 8 * n, s.h, n, s.gates + group * 8);
    const float* from = x.row<float>(t);
    for (int64_t i = 0; i < 4 * n; ++i) s.gates[i] += from[i] + b[i];
    for (int64_t j = 0; j < n; j += lanes) {
      const auto gate = [&](int64_t q) { return hn::LoadU(d, s.gates + q * n + j); };
      const auto kept = hn::Mul(logistic(d, gate(1)), hn::LoadU(d, s.c + j));
      const auto c = hn::MulAdd(logistic(d, gate(0)), tangent(d, gate(2)), kept);
      hn::StoreU(c, d, s.c + j);
      hn::StoreU(hn::Mul(logistic(d, gate(3)), tangent(d, c)), d, s.h + j);
    }
    std::copy_n(s.h, n, y.row<float>(t));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace consonant
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace consonant {

HWY_EXPORT(lstm_rows);

namespace {

Work work(const Args& args) { return {1, LstmScratch(args).bytes()}; }

void run(const Args& args, int64_t, std::byte* scratch) {
  const View &w = args.in[1], &state = args.in[3];
  const LstmScratch s(args, scratch);
  std::fill(s.gates, s.panels, 0.0f);
  std::copy_n(state.row<float>(0), s.n, s.h);
  std::copy_n(state.row<float>(1), s.n, s.c);
  const float* weights = w.as<float>();
  if (s.decodes) {
    float* row = s.panels + 8 * s.groups * s.n;
    std::fill(s.panels, row, 0.0f);
    for (int64_t r = 0; r < 4 * s.n; ++r) {
      decode_weight_row(w, r, row);
      for (int64_t k = 0; k < s.n; ++k) s.panels[(r / 8 * s.n + k) * 8 + r % 8] = row[k];
    }
    weights = s.panels;
  }
  HWY_DYNAMIC_DISPATCH(lstm_rows)(args.in[0], args.in[2].as<float>(), weights, s, args.out[0]);
  std::copy_n(s.h, s.n, args.out[1].row<float>(0));
  std::copy_n(s.c, s.n, args.out[1].row<float>(1));
}

}  // namespace

extern const Kernel lstm_cpu = {DeviceKind::cpu, Op::lstm, lstm_can_run, work, run};

}  // namespace consonant
#endif
