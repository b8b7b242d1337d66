// SPDX-License-Identifier: Apache-2.0
#pragma once

// Latent attention on tensor cores (float16 times float16, summed in float32), for caches in float16 and q8_0. A page's
// rows, keys and values at once, are brought to shared memory as halves and meet all rows of a block there: heads of a
// token, or of neighbouring tokens.
//
// Few tokens: bound by the bytes of the rows seen (rows of 576 numbers in float16 over 16,384 positions are 19 MB, 4 us
// at 4.4 TB/s). A token's pages are cut into runs of neighbours, a block each, and the runs' results are combined by a
// second kernel. How long a run is depends on the token's own position alone.
//
// Many tokens: bound by the multiplications (512 tokens of 20 heads over their own positions are 5.7 GFLOP, 19 us at
// 300 TFLOP/s). A block walks through all that its rows see, the next page on its way meanwhile.
//
// A row's scores and sums are one chain of products over 16 numbers or positions at a time, and its pages are merged in
// their order. Where a row doesn't see, its weight is zero, and what no row of the block sees is read as zeros. So a
// value that isn't a finite number also reaches rows of earlier tokens in the same block.
#include <algorithm>
#include <type_traits>

#include "ops/attend/attend_gpu.hpp"
#include "ops/attend_latent/attend_latent.hpp"
#include "ops/gpu_four.hpp"
#include "ops/linear/mma.hpp"

namespace consonant::GPU_BUILD::latent {

constexpr int block_threads = 256, warps = block_threads / 32;
constexpr int page_rows = static_cast<int>(kv_page);
constexpr int warp_columns = 64, most_columns = warps * warp_columns;  // of values
constexpr int weight_stride = page_rows * 2;                           // bytes

// Up to how many tokens the runs of each are spread over blocks, and how many of them at a time: what is combined takes
// 5 MB of memory a token of 20 heads.
constexpr int64_t few_tokens = 127, tokens_together = 32;
constexpr int few_rows = 32, many_rows = 64;  // that a block has at most

// Of a token, with all parts of its heads: blocks for every processor of a large card.
constexpr int64_t most_blocks = 128;
inline int64_t parts_of(int64_t heads) { return std::max<int64_t>(1, ceil_div(heads, few_rows)); }
// `pages`: of the capacity. Fewer than a longer one has leave no token fewer than it uses.
inline int64_t most_runs(int64_t heads, int64_t pages) {
  return std::clamp<int64_t>(std::min(most_blocks / parts_of(heads), pages), 1, most_blocks);
}
constexpr GPU_FN int pages_of_run(int pages, int runs) { return (pages + runs - 1) / runs; }

// Offsets in a block's shared memory, in bytes. Pieces of 16 bytes of neighbouring rows lie in different banks.
struct Places {
  int stride = 0;   // of rows of the cache and of queries
  int queries = 0;  // rows of them
  int stages = 1;   // pages

  Places() = default;
  Places(int64_t dim, int64_t query_rows, int page_count)
      : stride(static_cast<int>(ceil_div(dim, 64) * 128)), queries(static_cast<int>(query_rows)), stages(page_count) {}

  GPU_FN int at(int row, int piece) const { return row * stride + ((piece ^ (row & 7)) << 4); }
  GPU_FN int page(int stage) const { return (queries + stage * page_rows) * stride; }
  GPU_FN int weights() const { return page(stages); }
  int64_t bytes(int64_t rows) const {
    return (queries + int64_t{stages} * page_rows) * stride + rows * int64_t{weight_stride};
  }
};

// What an attention takes besides what all kinds do.
template <class T>
struct Latent {
  Rows<const float> turned;
  CacheView<T, 1> cache;
  Places places;
  int dim = 0, columns = 0;  // numbers of a row, and of its value
  int runs = 1;              // at most, of a token
  int heads = 1, parts = 1;  // of a block, and of all heads
  int run_blocks = 1;        // each takes every n-th run
  bool fours = false;        // queries can be read by 16 bytes
};

// A thread's way through rows of `width` pieces, neighbouring threads having neighbours.
struct Walk {
  int row, piece, width, rows_on, pieces_on;

  GPU_FN explicit Walk(int pieces)
      : row(gpu::thread() / pieces),
        piece(gpu::thread() % pieces),
        width(pieces),
        rows_on(block_threads / pieces),
        pieces_on(block_threads % pieces) {}
  GPU_FN void next() {
    row += rows_on, piece += pieces_on;
    if (piece >= width) piece -= width, ++row;
  }
};

// A block with 16 tiles rows (of which tokens and heads may fill fewer), and their sums over pages. For scores, warps
// share the tiles of rows and the page's positions; for values, each warp has all rows and every eighth 16 columns.
template <class T, int tiles>
class Block {
 public:
  static constexpr int rows = 16 * tiles;
  static constexpr int position_groups = tiles == 4 ? 2 : 4, group_positions = page_rows / position_groups;
  static constexpr int score_tiles = group_positions / 8;

  GPU_FN Block(const Attention& a, const Latent<T>& x, gpu::Shared<uint8_t> memory, gpu::Shared<float> numbers)
      : a_(a),
        x_(x),
        memory_(memory),
        peaks_(numbers),
        sums_(numbers + position_groups * rows),
        before_(numbers + 2 * position_groups * rows) {}
  // What of shared memory isn't in Places, in floats.
  static constexpr int numbers = (2 * position_groups + 1) * rows;

  GPU_FN void place(const RowSet& set, const Seen& all) {
    set_ = set, count_ = set.rows(), page_of_ = a_.pages_of(set.token), last_ = static_cast<int>(all.last);
  }

  // Brings a page as far as the cache that all processors share.
  GPU_FN void prefetch(int page) const {
    const auto from = page_bytes(page);
    const int bytes = page_rows * x_.dim * static_cast<int>(sizeof(T));
    GPU_UNROLL_BY(1)
    for (int i = 128 * gpu::thread(); i < bytes; i += 128 * block_threads) gpu::prefetch(from + i);
  }

  // Starts to bring a page to shared memory; what no row sees is zeros.
  GPU_FN void request(int stage, int page) const {
    const int seen = last_ - page * page_rows;
    if constexpr (std::is_same_v<T, uint16_t>) {
      const auto from = page_bytes(page);
      GPU_UNROLL_BY(2)
      for (Walk at(x_.dim / 8); at.row < page_rows; at.next())
        mma::copy16(memory_ + (x_.places.page(stage) + x_.places.at(at.row, at.piece)),
                    from + (at.row * x_.dim + at.piece * 8) * 2, at.row < seen);
    } else {
      unpack(stage, page, seen);
    }
    mma::end_batch();
  }

  GPU_FN void read_queries() const {
    constexpr int ahead = 4;
    GPU_UNROLL_BY(1)
    for (Walk at(x_.dim / 4); at.row < count_;) {
      Four four[ahead];
      Walk to = at;
      GPU_UNROLL
      for (int i = 0; i < ahead; ++i, at.next())
        if (at.row < count_) four[i] = query(at.row, at.piece * 4);
      GPU_UNROLL
      for (int i = 0; i < ahead; ++i, to.next()) {
        if (to.row >= count_) continue;
        const auto words = gpu::cast<uint32_t>(memory_ + (x_.places.at(to.row, to.piece / 2) + to.piece % 2 * 8));
        words[0] = mma::half2(four[i].x[0], four[i].x[1]);
        words[1] = mma::half2(four[i].x[2], four[i].x[3]);
      }
    }
  }

  // Forgets all pages that were merged.
  GPU_FN void clear() {
    sum_ = 0;
    GPU_UNROLL
    for (int h = 0; h < 2; ++h) peak_[h] = -HUGE_VALF;
    GPU_UNROLL
    for (int m = 0; m < tiles; ++m)
      for (int t = 0; t < warp_columns / 8; ++t)
        for (int e = 0; e < 4; ++e) total_[m][t][e] = 0;
  }

  // Merges a page, which all threads have waited for. Others may still read it when this thread returns.
  GPU_FN void merge(int stage, int page) {
    float c[score_tiles][4] = {};
    const bool scores = gpu::warp() < tiles * position_groups;
    if (scores) {
      score(c, stage);
      mask(c, page);
    }
    gpu::sync();
    if (scores) soften(c);
    gpu::sync();
    if (gpu::thread() < rows) {
      float sum = 0;
      GPU_UNROLL
      for (int g = 0; g < position_groups; ++g) sum = gpu::add(sum, sums_[g * rows + gpu::thread()]);
      sum_ = gpu::fma(sum_, before_[gpu::thread()], sum);
    }
    mix(stage);
  }

  // A run's result, to be combined with others.
  GPU_FN void keep(int run) const {
    const auto at = [&](int r) {
      return (static_cast<int>(set_.token_of(r)) * static_cast<int>(a_.heads) + static_cast<int>(set_.head_of(r))) *
                 x_.runs +
             run;
    };
    if (gpu::thread() < count_) a_.sums[at(gpu::thread())] = sum_;
    if (gpu::warp() < tiles && gpu::lane() % 4 == 0) {
      GPU_UNROLL
      for (int h = 0; h < 2; ++h)
        if (score_row(h) < count_) a_.peaks[at(score_row(h))] = peak_[h];
    }
    for_rows([&](int r, const auto& for_pairs) {
      const auto to = a_.partials + static_cast<int64_t>(at(r)) * x_.columns;
      for_pairs([&](int column, float first, float second) {
        gpu::cast<Pack<float, 2>>(to + column)[0] = {{first, second}};
      });
    });
  }

  GPU_FN void finish() {
    gpu::sync();  // before_ has been read
    if (gpu::thread() < rows) before_[gpu::thread()] = sum_;
    gpu::sync();
    for_rows([&](int r, const auto& for_pairs) {
      const auto y = a_.y.data + (set_.token_of(r) * a_.y.outer_stride + set_.head_of(r) * a_.y.inner_stride);
      const float share = 1 / before_[r];
      for_pairs([&](int column, float first, float second) {
        y[column] = gpu::mul(first, share), y[column + 1] = gpu::mul(second, share);
      });
    });
  }

 private:
  GPU_FN gpu::Ptr<const uint8_t> page_bytes(int page) const {
    return gpu::cast<const uint8_t>(x_.cache.at(page_of_[page], 0).numbers);
  }

  // 16 bytes of a page times their scale.
  GPU_FN void unpack(int stage, int page, int seen) const {
    const auto from = page_bytes(page);
    const auto scales = x_.cache.at(page_of_[page], 0).scales;
    GPU_UNROLL_BY(3)
    for (Walk at(x_.dim / 16); at.row < page_rows; at.next()) {
      gpu::U4 x = {0, 0, 0, 0};
      float scale = 0;
      if (at.row < seen) {
        x = gpu::load16(from + (at.row * x_.dim + at.piece * 16));
        scale = gpu::from_half(scales[at.row * (x_.dim / 32) + at.piece / 2]);
      }
      const auto pair = [&](uint32_t word, int i) {
        const uint32_t bytes = word ^ 0x80808080u;
        return mma::half2(gpu::byte_less(bytes, i, 128) * scale, gpu::byte_less(bytes, i + 1, 128) * scale);
      };
      const int to = x_.places.page(stage);
      gpu::store16(memory_ + (to + x_.places.at(at.row, 2 * at.piece)),
                   gpu::U4{pair(x.x, 0), pair(x.x, 2), pair(x.y, 0), pair(x.y, 2)});
      gpu::store16(memory_ + (to + x_.places.at(at.row, 2 * at.piece + 1)),
                   gpu::U4{pair(x.z, 0), pair(x.z, 2), pair(x.w, 0), pair(x.w, 2)});
    }
  }

  GPU_FN Four query(int r, int i) const {
    const int64_t token = set_.token_of(r), head = set_.head_of(r);
    const auto& from = i < x_.columns ? a_.q : x_.turned;
    return load_four(from.data + (token * from.outer_stride + head * from.inner_stride),
                     i < x_.columns ? i : i - x_.columns, INT32_MAX, x_.fours);
  }

  // Of the two rows whose scores a lane has. Rows past the last are the last once more.
  static GPU_FN int score_tile() { return gpu::warp() % tiles; }
  static GPU_FN int position_group() { return gpu::warp() / tiles; }
  static GPU_FN int score_row(int half) { return score_tile() * 16 + 8 * half + gpu::lane() / 4; }

  // Scores of 16 rows and a group of positions.
  GPU_FN void score(float (&c)[score_tiles][4], int stage) const {
    const int lane = gpu::lane(), wanted = score_tile() * 16 + lane % 16;
    const int q_at = x_.places.at(wanted < count_ ? wanted : count_ - 1, lane / 16);
    const int k_at = x_.places.page(stage) +
                     x_.places.at(position_group() * group_positions + lane / 16 * 8 + lane % 8, lane / 8 % 2);
    GPU_UNROLL_BY(1)
    for (int i = 0; i < x_.dim; i += 64) {
      GPU_UNROLL
      for (int j = 0; j < 4; ++j) {
        if (i + 16 * j >= x_.dim) break;
        uint32_t q[4];
        mma::load_matrices(q, memory_, (q_at ^ 32 * j) + 2 * i);
        GPU_UNROLL
        for (int t = 0; t < score_tiles; t += 2) {
          uint32_t k[4];
          mma::load_matrices(k, memory_, (k_at ^ 32 * j) + 2 * i + t * 8 * x_.places.stride);
          mma::multiply<false>(c[t], q, k[0], k[1]);
          mma::multiply<false>(c[t + 1], q, k[2], k[3]);
        }
      }
    }
  }

  // Scales scores, by log2(e) too; those of positions that a row doesn't see become -inf. The rows' greatest go to
  // peaks_.
  GPU_FN void mask(float (&c)[score_tiles][4], int page) {
    const int first = page * page_rows + position_group() * group_positions + gpu::lane() % 4 * 2;
    GPU_UNROLL
    for (int h = 0; h < 2; ++h) {
      const int r = score_row(h);
      const int seen = static_cast<int>(a_.pos[set_.token_of(r < count_ ? r : count_ - 1)]) + 1 - first;
      float most = -HUGE_VALF;
      GPU_UNROLL
      for (int t = 0; t < score_tiles; ++t)
        for (int e = 2 * h; e < 2 * h + 2; ++e) {
          c[t][e] = t * 8 + e % 2 < seen ? gpu::mul(c[t][e], a_.scale) : -HUGE_VALF;
          most = ::fmaxf(most, c[t][e]);
        }
      most = row_max(most);
      if (gpu::lane() % 4 == 0) peaks_[position_group() * rows + r] = most;
    }
  }

  // Turns scores into weights, in halves in shared memory; their sums go to sums_, what earlier pages are multiplied by
  // to before_.
  GPU_FN void soften(float (&c)[score_tiles][4]) {
    GPU_UNROLL
    for (int h = 0; h < 2; ++h) {
      const int r = score_row(h);
      float most = peak_[h];
      GPU_UNROLL
      for (int g = 0; g < position_groups; ++g) most = ::fmaxf(most, peaks_[g * rows + r]);
      const float before = mma::exp2_fast(gpu::add(peak_[h], -most));
      peak_[h] = most;
      float sum = 0;
      GPU_UNROLL
      for (int t = 0; t < score_tiles; ++t) {
        for (int e = 2 * h; e < 2 * h + 2; ++e) sum = gpu::add(sum, c[t][e] = mma::exp2_fast(gpu::add(c[t][e], -most)));
        const int piece = position_group() * score_tiles + t;
        gpu::cast<uint32_t>(memory_ + (x_.places.weights() + weight_at(r, piece)))[gpu::lane() % 4] =
            mma::half2(c[t][2 * h], c[t][2 * h + 1]);
      }
      sum = row_sum(sum);
      if (gpu::lane() % 4 == 0) {
        sums_[position_group() * rows + r] = sum;
        if (position_group() == 0) before_[r] = before;
      }
    }
  }
  static GPU_FN int weight_at(int row, int piece) { return row * weight_stride + ((piece ^ (row & 7)) << 4); }

  // Values by weight, on top of those of the pages before.
  GPU_FN void mix(int stage) {
    const int lane = gpu::lane();
    GPU_UNROLL
    for (int m = 0; m < tiles; ++m)
      for (int h = 0; h < 2; ++h) {
        const float before = before_[m * 16 + 8 * h + lane / 4];
        for (int t = 0; t < warp_columns / 8; ++t)
          for (int e = 2 * h; e < 2 * h + 2; ++e) total_[m][t][e] = gpu::mul(total_[m][t][e], before);
      }
    GPU_UNROLL_BY(1)
    for (int s = 0; s < page_rows / 16; ++s) {
      uint32_t w[tiles][4];
      GPU_UNROLL
      for (int m = 0; m < tiles; ++m)
        mma::load_matrices(w[m], memory_, x_.places.weights() + weight_at(m * 16 + lane % 16, 2 * s + lane / 16));
      const int v_at = x_.places.page(stage) + x_.places.at(s * 16 + lane % 16, 2 * gpu::warp() + lane / 16);
      GPU_UNROLL
      for (int j = 0; j < warp_columns / 16; ++j) {
        if (column_of(j) >= x_.columns) break;
        uint32_t v[4];
        mma::load_turned(v, memory_, v_at + j * warps * 32);
        GPU_UNROLL
        for (int m = 0; m < tiles; ++m) {
          mma::multiply<false>(total_[m][2 * j], w[m], v[0], v[1]);
          mma::multiply<false>(total_[m][2 * j + 1], w[m], v[2], v[3]);
        }
      }
    }
  }
  static GPU_FN int column_of(int j) { return (gpu::warp() + j * warps) * 16; }

  // Calls put(row, for_pairs) for each row of which a lane has numbers; for_pairs calls what it is given for a column,
  // its number and the next one's.
  template <class F>
  GPU_FN void for_rows(const F& put) const {
    GPU_UNROLL
    for (int m = 0; m < tiles; ++m)
      for (int h = 0; h < 2; ++h) {
        const int r = m * 16 + 8 * h + gpu::lane() / 4;
        if (r >= count_) continue;
        put(r, [&](const auto& take) {
          GPU_UNROLL
          for (int t = 0; t < warp_columns / 8; ++t) {
            if (column_of(t / 2) >= x_.columns) break;
            take(column_of(t / 2) + t % 2 * 8 + gpu::lane() % 4 * 2, total_[m][t][2 * h], total_[m][t][2 * h + 1]);
          }
        });
      }
  }

  const Attention& a_;
  const Latent<T>& x_;
  gpu::Shared<uint8_t> memory_;
  gpu::Shared<float> peaks_, sums_;  // [position group][row]
  gpu::Shared<float> before_;        // [row]
  RowSet set_;
  int count_ = 0, last_ = 0;  // rows, and positions that any of them sees
  gpu::Ptr<const int32_t> page_of_;
  float total_[tiles][warp_columns / 8][4];
  float peak_[2], sum_ = 0;  // of the rows whose scores a lane has; of row thread()
};

GPU_FN int pages_seen(const Attention& a, int64_t token) { return static_cast<int>(a.pos[token]) / page_rows + 1; }

// Few tokens. Blocks are numbered [run block, token, part of the heads].
template <class T, int tiles>
GPU_KERNEL void attend_runs(Attention a, Latent<T> x) {
  GPU_DYNAMIC_SHARED(uint8_t, memory);
  using Rows = Block<T, tiles>;
  GPU_SHARED(float, numbers, Rows::numbers);
  if (!a.known) gpu::wait_for_inputs();
  const auto n = static_cast<unsigned>(gpu::block()), parts = static_cast<unsigned>(x.parts),
             tokens = static_cast<unsigned>(a.tokens);
  const int head = static_cast<int>(n % parts) * x.heads, left = static_cast<int>(a.heads) - head;
  RowSet set;
  set.token = n / parts % tokens, set.tokens = 1, set.head = head, set.heads = left < x.heads ? left : x.heads;
  const int pages = pages_seen(a, set.token), length = pages_of_run(pages, x.runs);
  const int runs = (pages + length - 1) / length, start = static_cast<int>(n / parts / tokens);
  Rows rows(a, x, memory, numbers);
  rows.place(set, a.seen(set.token));
  // What was cached before this step can be copied before the kernels ahead have ended.
  const bool settled = a.known && start < runs && (start * length + 1) * page_rows <= a.first_of_step(set.token);
  if (a.known) {
    if (settled)
      rows.request(0, start * length);
    else if (start < runs)
      rows.prefetch(start * length);
    gpu::wait_for_inputs();
  }
  if (start >= runs) return;
  bool fresh = true;
  GPU_UNROLL_BY(1)
  for (int run = start; run < runs; run += x.run_blocks) {
    const int end = (run + 1) * length < pages ? (run + 1) * length : pages;
    rows.clear();
    GPU_UNROLL_BY(1)
    for (int page = run * length; page < end; ++page) {
      const int next = page + 1 < end ? page + 1 : (run + x.run_blocks) * length;
      if (!fresh || !settled) rows.request(0, page);
      if (fresh) rows.read_queries();
      fresh = false;
      if (next < pages) rows.prefetch(next);
      mma::wait_for_batches<0>();
      gpu::sync();
      rows.merge(0, page);
      gpu::sync();
    }
    rows.keep(run);
  }
}

// Many tokens: two pages in shared memory, of which one is on its way.
template <class T>
GPU_KERNEL void attend_whole(Attention a, Latent<T> x, Cut cut) {
  GPU_DYNAMIC_SHARED(uint8_t, memory);
  using Rows = Block<T, many_rows / 16>;
  GPU_SHARED(float, numbers, Rows::numbers);
  Rows rows(a, x, memory, numbers);
  for_sequences(a, cut.rows(a, gpu::block()), [&](const RowSet& set) {
    gpu::sync();  // the sequence before has been read
    const Seen all = seen_by_any(a, set);
    const int pages = static_cast<int>((all.last + page_rows - 1) / page_rows);
    rows.place(set, all);
    rows.request(0, 0);
    rows.read_queries();
    rows.clear();
    GPU_UNROLL_BY(1)
    for (int page = 0; page < pages; ++page) {
      mma::wait_for_batches<0>();
      gpu::sync();
      if (page + 1 < pages) rows.request((page + 1) % 2, page + 1);
      rows.merge(page % 2, page);
    }
    rows.finish();
  });
}

constexpr int combine_columns = 64, combine_groups = block_threads / (combine_columns / 4);

// A block a row and `combine_columns` of its columns: every 16th run to a group of threads, then the groups in order.
GPU_KERNEL void combine_runs(Attention a, int columns, int most) {
  constexpr int ahead = static_cast<int>(most_blocks) / combine_groups;
  GPU_SHARED(float, factors, most_blocks);
  GPU_SHARED(float, parts, combine_groups* combine_columns);
  if (!a.known) gpu::wait_for_inputs();
  const auto count = static_cast<unsigned>((columns + combine_columns - 1) / combine_columns),
             block = static_cast<unsigned>(gpu::block());
  const int row = static_cast<int>(block / count), t = gpu::thread(), group = t / (combine_columns / 4);
  const int column = static_cast<int>(block % count) * combine_columns + t % (combine_columns / 4) * 4;
  const int pages = pages_seen(a, static_cast<unsigned>(row) / static_cast<unsigned>(a.heads));
  const int length = pages_of_run(pages, most), runs = (pages + length - 1) / length;
  if (a.known) gpu::wait_for_inputs();
  Four part[ahead];
  GPU_UNROLL
  for (int i = 0; i < ahead; ++i) {
    const int run = group + i * combine_groups;
    if (run < runs && column < columns)
      part[i] = load_four(a.partials + (static_cast<int64_t>(row) * most + run) * columns, column, columns, true);
  }
  const int64_t at = static_cast<int64_t>(row) * most + t;
  const float peak = t < runs ? static_cast<float>(a.peaks[at]) : -HUGE_VALF;
  const float sum = t < runs ? static_cast<float>(a.sums[at]) : 0.0f;
  const float greatest = gpu::block_max(peak), factor = mma::exp2_fast(gpu::add(peak, -greatest));
  if (t < runs) factors[t] = factor;
  const float total = gpu::block_sum(t < runs ? gpu::mul(factor, sum) : 0.0f);
  Four mine = {};
  GPU_UNROLL
  for (int i = 0; i < ahead; ++i) {
    const int run = group + i * combine_groups;
    if (run >= runs || column >= columns) continue;
    for (int j = 0; j < 4; ++j) mine.x[j] = gpu::fma(factors[run], part[i].x[j], mine.x[j]);
  }
  GPU_UNROLL
  for (int j = 0; j < 4; ++j) parts[t * 4 + j] = mine.x[j];
  gpu::sync();
  const int out = static_cast<int>(block % count) * combine_columns + t;
  if (t >= combine_columns || out >= columns) return;
  float y = 0;
  GPU_UNROLL
  for (int g = 0; g < combine_groups; ++g) y = gpu::add(y, parts[g * combine_columns + t]);
  a.y.row(row)[out] = y / total;
}

}  // namespace consonant::GPU_BUILD::latent
