// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/attend/attend.cpu.cpp"
#include <hwy/foreach_target.h>
// After foreach_target: both are compiled once a target.
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "ops/attend/attend.hpp"
#include "ops/attend/tile.hpp"
#include "ops/kv_cache.hpp"
#include "ops/work.hpp"
#include "tensor/half.hpp"

HWY_BEFORE_NAMESPACE();
namespace consonant {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr float minus_infinity = -std::numeric_limits<float>::infinity();
// At most eight lanes, which divide a page on every target.
using Floats = hn::CappedTag<float, 8>;

HWY_INLINE hn::Vec<Floats> load(Floats d, const float* p) { return hn::LoadU(d, p); }
HWY_INLINE hn::Vec<Floats> load(Floats d, const hwy::float16_t* p) {
  return hn::PromoteTo(d, hn::LoadU(hn::Rebind<hwy::float16_t, Floats>(), p));
}
HWY_INLINE float to_number(const float* p) { return *p; }
HWY_INLINE float to_number(const hwy::float16_t* p) { return to_float(std::bit_cast<Half>(*p)); }

constexpr int64_t rows_together = AttendTile::rows_together;

// Calls f with the number of rows as a constant.
template <class F>
HWY_INLINE void with_rows(int64_t rows, const F& f) {
  switch (rows) {
    case 1:
      return f(std::integral_constant<int, 1>());
    case 2:
      return f(std::integral_constant<int, 2>());
    case 3:
      return f(std::integral_constant<int, 3>());
    case 4:
      return f(std::integral_constant<int, 4>());
    case 5:
      return f(std::integral_constant<int, 5>());
    default:
      return f(std::integral_constant<int, 6>());
  }
}

// Vectors of a row that are summed side by side: enough chains of additions to hide their latency, as far as the
// registers go.
constexpr int vectors_of(int rows) { return rows == 1 ? 8 : rows == 2 ? 4 : 2; }

// sum[r][v] += factors[r][at] * numbers[v], for vectors v that follow each other. The fewer of the two are held in
// registers beside the sums.
template <int rows, int vectors, class T>
HWY_INLINE void add_products(const float* const* factors, int64_t at, const T* numbers,
                             hn::Vec<Floats> (&sum)[rows][vectors]) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  if constexpr (rows < vectors) {
    hn::Vec<Floats> f[rows];
    for (int r = 0; r < rows; ++r) f[r] = hn::Set(d, factors[r][at]);
    for (int v = 0; v < vectors; ++v) {
      const auto x = load(d, numbers + v * lanes);
      for (int r = 0; r < rows; ++r) sum[r][v] = hn::MulAdd(f[r], x, sum[r][v]);
    }
  } else {
    hn::Vec<Floats> x[vectors];
    for (int v = 0; v < vectors; ++v) x[v] = load(d, numbers + v * lanes);
    for (int r = 0; r < rows; ++r) {
      const auto f = hn::Set(d, factors[r][at]);
      for (int v = 0; v < vectors; ++v) sum[r][v] = hn::MulAdd(f, x[v], sum[r][v]);
    }
  }
}

// scores[row][key] = scale * sum over i of q[row][i] keys[i][key], for `rows` rows and the 64 keys of a page. The sum
// of a score runs over i in order, whatever the number of rows.
template <int rows, class T>
HWY_INLINE void score_rows(const float* const* q, const T* keys, int64_t dim, float scale, float* scores) {
  constexpr int vectors = vectors_of(rows);
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t key = 0; key < kv_page; key += vectors * lanes) {
    hn::Vec<Floats> sum[rows][vectors];
    for (int r = 0; r < rows; ++r)
      for (int v = 0; v < vectors; ++v) sum[r][v] = hn::Zero(d);
    for (int64_t i = 0; i < dim; ++i) add_products(q, i, keys + i * kv_page + key, sum);
    for (int r = 0; r < rows; ++r)
      for (int v = 0; v < vectors; ++v)
        hn::StoreU(hn::Mul(sum[r][v], hn::Set(d, scale)), d, scores + r * kv_page + key + v * lanes);
  }
}

// mix_rows for as many columns from `i` on as fill `vectors` vectors; returns the first that is left.
template <int rows, int vectors, class T>
HWY_INLINE int64_t mix_columns(const float* const* weights, const T* values, int64_t dim, int64_t first, int64_t last,
                               float* const* sums, int64_t i) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (; i + vectors * lanes <= dim; i += vectors * lanes) {
    hn::Vec<Floats> sum[rows][vectors];
    for (int r = 0; r < rows; ++r)
      for (int v = 0; v < vectors; ++v) sum[r][v] = hn::LoadU(d, sums[r] + i + v * lanes);
    for (int64_t key = first; key < last; ++key) add_products(weights, key, values + key * dim + i, sum);
    for (int r = 0; r < rows; ++r)
      for (int v = 0; v < vectors; ++v) hn::StoreU(sum[r][v], d, sums[r] + i + v * lanes);
  }
  return i;
}

// sums[row][i] += sum over keys of weights[row][key] values[key][i], keys first ... last - 1 in order.
template <int rows, class T>
HWY_INLINE void mix_rows(const float* weights, const T* values, int64_t dim, int64_t first, int64_t last,
                         float* const* sums) {
  if (first >= last) return;
  const float* row[rows];
  for (int r = 0; r < rows; ++r) row[r] = weights + r * kv_page;
  int64_t i = mix_columns<rows, vectors_of(rows)>(row, values, dim, first, last, sums, 0);
  if constexpr (vectors_of(rows) > 2) i = mix_columns<rows, 2>(row, values, dim, first, last, sums, i);
  for (; i < dim; ++i)
    for (int r = 0; r < rows; ++r)
      for (int64_t key = first; key < last; ++key) sums[r][i] += row[r][key] * to_number(values + key * dim + i);
}

// exp(x) of x <= 0, within 8e-8: 2^n times a polynomial in the fraction (least greatest relative error, 2e-9). Below
// -87 it is 0.
HWY_INLINE hn::Vec<Floats> exp_down(Floats d, hn::Vec<Floats> x) {
  const hn::RebindToSigned<Floats> di;
  const auto inside = hn::Gt(x, hn::Set(d, -87.0f));
  const auto t = hn::Mul(hn::IfThenElseZero(inside, x), hn::Set(d, 1.44269504f));
  const auto n = hn::Round(t);
  const auto f = hn::Sub(t, n);  // -0.5 ... 0.5
  auto p = hn::Set(d, 1.5353359e-4f);
  p = hn::MulAdd(p, f, hn::Set(d, 1.3398875e-3f));
  p = hn::MulAdd(p, f, hn::Set(d, 9.6184369e-3f));
  p = hn::MulAdd(p, f, hn::Set(d, 5.5503324e-2f));
  p = hn::MulAdd(p, f, hn::Set(d, 2.4022648e-1f));
  p = hn::MulAdd(p, f, hn::Set(d, 6.9314718e-1f));
  p = hn::MulAdd(p, f, hn::Set(d, 1.0f));
  const auto scaled = hn::BitCast(d, hn::Add(hn::BitCast(di, p), hn::ShiftLeft<23>(hn::ConvertTo(di, n))));
  return hn::IfThenElse(hn::Eq(x, x), hn::IfThenElseZero(inside, scaled), x);  // what is no number stays so
}

// Turns a row's 64 scores into weights and moves its running maximum and sum on; keys it doesn't see weigh 0.
HWY_INLINE void soften(float* scores, PageRange seen, AttendRow& row, float* sums, int64_t dim) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  std::fill(scores, scores + seen.first, minus_infinity);
  std::fill(scores + seen.last, scores + kv_page, minus_infinity);
  auto greatest = hn::Set(d, row.greatest);
  for (int64_t k = 0; k < kv_page; k += lanes) greatest = hn::Max(greatest, hn::LoadU(d, scores + k));
  const float peak = hn::GetLane(hn::MaxOfLanes(d, greatest));
  auto sum = hn::Zero(d);
  for (int64_t k = 0; k < kv_page; k += lanes) {
    const auto s = hn::LoadU(d, scores + k);
    // The weight of a masked score is set rather than computed: the peak may be -inf as well.
    const auto w = hn::IfThenZeroElse(hn::Eq(s, hn::Set(d, minus_infinity)), exp_down(d, hn::Sub(s, hn::Set(d, peak))));
    hn::StoreU(w, d, scores + k);
    sum = hn::Add(sum, w);
  }
  const float shrink = row.greatest == minus_infinity ? 0.0f : std::exp(row.greatest - peak);
  if (row.greatest != peak)
    for (int64_t i = 0; i < dim; ++i) sums[i] *= shrink;
  row.sum = row.sum * shrink + hn::GetLane(hn::SumOfLanes(d, sum));
  row.greatest = peak;
}

// Mixes what each row sees of a page. Keys that all rows see are taken together, the others row by row: a row must not
// meet a value that it doesn't see, since a weight of zero leaves a NaN or an infinity what it is. Either way a row's
// keys come in order.
template <class T>
HWY_INLINE void mix_page(const float* weights, const T* values, int64_t dim, const PageRange* range, int64_t rows,
                         float* const* sums) {
  PageRange common{0, kv_page};
  for (int64_t j = 0; j < rows; ++j) {
    common.first = std::max(common.first, range[j].first);
    common.last = std::min(common.last, range[j].last);
  }
  if (common.empty()) common.first = common.last = kv_page;
  for (int64_t j = 0; j < rows; ++j) {
    const int64_t last = std::min(common.first, range[j].last);
    mix_rows<1>(weights + j * kv_page, values, dim, range[j].first, last, sums + j);
  }
  with_rows(
      rows, [&](auto n) HWY_ATTR
      __attribute__((always_inline)) { mix_rows<n>(weights, values, dim, common.first, common.last, sums); });
  for (int64_t j = 0; j < rows; ++j)
    mix_rows<1>(weights + j * kv_page, values, dim, common.last, range[j].last, sums + j);
}

template <class T>
HWY_INLINE void page_step(AttendTile& tile, const T* keys, const T* values, int64_t start) {
  for (int64_t r = 0; r < tile.rows; r += rows_together) {
    const int64_t n = std::min(rows_together, tile.rows - r);
    const float* q[rows_together];
    float* sums[rows_together];
    PageRange range[rows_together];
    bool seen = false;
    for (int64_t j = 0; j < rows_together; ++j) {
      const int64_t row = r + std::min(j, n - 1);
      q[j] = tile.q[row];
      sums[j] = tile.sums + row * tile.value_dim;
      range[j].first = std::clamp<int64_t>(tile.row[row].first - start, 0, kv_page);
      range[j].last = std::clamp<int64_t>(tile.row[row].last - start, 0, kv_page);
      seen = seen || !range[j].empty();
    }
    if (!seen) continue;
    float* scores = tile.scores;
    with_rows(
        n, [&](auto count) HWY_ATTR
        __attribute__((always_inline)) { score_rows<count>(q, keys, tile.dim, tile.scale, scores); });
    for (int64_t j = 0; j < n; ++j)
      if (!range[j].empty()) soften(scores + j * kv_page, range[j], tile.row[r + j], sums[j], tile.value_dim);
    mix_page(scores, values, tile.value_dim, range, n, sums);
  }
}

void step_f32(AttendTile& tile, const float* keys, const float* values, int64_t start) {
  page_step(tile, keys, values, start);
}
void step_f16(AttendTile& tile, const uint16_t* keys, const uint16_t* values, int64_t start) {
  page_step(tile, reinterpret_cast<const hwy::float16_t*>(keys), reinterpret_cast<const hwy::float16_t*>(values),
            start);
}

}  // namespace HWY_NAMESPACE
}  // namespace consonant
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace consonant {

HWY_EXPORT(step_f32);
HWY_EXPORT(step_f16);

void attend_page(AttendTile& tile, const float* keys, const float* values, int64_t start) {
  HWY_DYNAMIC_DISPATCH(step_f32)(tile, keys, values, start);
}

namespace {

// A chunk is a run and a KV head.
AttendRuns runs_of(const Args& args) {
  constexpr int64_t most = AttendRuns::tile_rows;
  const int64_t kv_heads = args.in[1].shape[1];
  return {args.in[4].as<int32_t>(), args.in[0].shape[0],
          std::clamp<int64_t>(most * kv_heads / args.in[0].shape[1], 16, most)};
}

Work work(const Args& args) {
  const View &q = args.in[0], &keys = args.in[1], &values = args.in[2];
  const int64_t group = q.shape[1] / keys.shape[1];
  const AttendRuns runs = runs_of(args);
  return {runs.count() * keys.shape[1],
          AttendTile::scratch_bytes(std::min(runs.tile_tokens, q.shape[0]) * group, keys.shape[2], values.shape[3])};
}

void run(const Args& args, int64_t chunk, std::byte* scratch) {
  const View &q = args.in[0], &keys = args.in[1], &values = args.in[2], &y = args.out[0];
  const auto& attr = args.attr<AttendAttr>();
  const AttendRuns runs = runs_of(args);
  const int64_t heads = q.shape[1], kv_heads = keys.shape[1], group = heads / kv_heads, kv_head = chunk % kv_heads;
  const int64_t first = runs.start(chunk / kv_heads), last = runs.end(first);
  const int32_t* page_of = args.in[5].row<int32_t>(runs.seq[first]);

  AttendTile tile((last - first) * group, keys.shape[2], values.shape[3], attr.scale, scratch);
  int64_t lowest = std::numeric_limits<int64_t>::max(), highest = 0;
  for (int64_t r = 0; r < tile.rows; ++r) {
    const int64_t token = first + r / group, position = args.in[3].as<int32_t>()[token];
    tile.q[r] = q.row<float>(token * heads + kv_head * group + r % group);
    tile.row[r].first = attr.window > 0 ? std::max<int64_t>(0, position - attr.window + 1) : 0;
    tile.row[r].last = position + 1;
    lowest = std::min(lowest, tile.row[r].first), highest = std::max(highest, tile.row[r].last);
  }
  for (int64_t p = lowest / kv_page; p < ceil_div(highest, kv_page); ++p) {
    const KvPage k(keys, StateKind::keys, page_of[p]), v(values, StateKind::values, page_of[p]);
    if (keys.type == DType::f32) {
      attend_page(tile, k.numbers<float>(kv_head), v.numbers<float>(kv_head), p * kv_page);
    } else if (keys.type == DType::f16 && tile.rows <= AttendTile::rows_together) {
      HWY_DYNAMIC_DISPATCH(step_f16)(tile, k.numbers<uint16_t>(kv_head), v.numbers<uint16_t>(kv_head), p * kv_page);
    } else {
      k.decode(kv_head, tile.keys);
      v.decode(kv_head, tile.values);
      attend_page(tile, tile.keys, tile.values, p * kv_page);
    }
  }
  for (int64_t r = 0; r < tile.rows; ++r) {
    float* to = y.row<float>((first + r / group) * heads + kv_head * group + r % group);
    for (int64_t i = 0; i < tile.value_dim; ++i) to[i] = tile.sums[r * tile.value_dim + i] / tile.row[r].sum;
  }
}

Refusal can_run(const Node& node) {
  if (Refusal refusal = wants_head_rows(node.inputs[0], "q")) return refusal;
  return wants_cache(node.inputs[1], node.inputs[2]);
}

}  // namespace

extern const Kernel attend_cpu = {DeviceKind::cpu, Op::attend, can_run, work, run};

}  // namespace consonant
#endif
