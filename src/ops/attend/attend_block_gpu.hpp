// SPDX-License-Identifier: Apache-2.0
#pragma once

// A block's way through the splits of its rows (ops/attend/attend_gpu.hpp), for every kind of attention that mixes
// values of a cache: how queries meet keys is `Keys`, which has
//
//   query_packs()                 packs of R numbers that the queries take in shared memory
//   load<R>(a, set, q)            the queries of a set of rows, rows side by side
//   score<R>(a, split, q, parts, weights)  scores of the rows for the positions of a split, [R][split_positions]
#include "ops/attend/attend_gpu.hpp"

namespace consonant::GPU_BUILD {

constexpr int attend_threads = 256;
constexpr int page_positions = static_cast<int>(kv_page);

// A split as the rows of a block see it.
struct SplitOfRows {
  int64_t split = 0;
  Seen all;  // positions that at least one row sees
  gpu::Ptr<const int32_t> page_of;
  int64_t kv_head = 0;
};

// Shared memory of a block with R rows, cut out of one array of floats. Rows lie side by side in q, so that a thread
// loads all of them at once.
template <int R>
struct AttendMemory {
  gpu::Shared<Pack<float, R>> q;
  gpu::Shared<float> totals, parts, weights;

  // q [query_packs][R], totals [R][columns], parts [4 R][threads], weights [R][split_positions].
  static constexpr int64_t floats(int64_t query_packs, int64_t columns) {
    return R * (query_packs + columns + 4 * attend_threads + split_positions);
  }
  GPU_FN AttendMemory(gpu::Shared<float> all, int64_t query_packs, int64_t columns)
      : q(gpu::cast<Pack<float, R>>(all)),
        totals(all + R * query_packs),
        parts(totals + R * columns),
        weights(parts + R * 4 * attend_threads) {}
};

// The columns of values that a thread sums up: packs of `width` columns, and every groups-th position.
template <int width>
struct Columns {
  int packs, groups, pack, group;  // packs of one pass

  GPU_FN Columns(int64_t dim, int64_t first) {
    const int64_t left = (dim - first + width - 1) / width;
    packs = static_cast<int>(left < attend_threads ? left : attend_threads);
    groups = attend_threads / packs;
    pack = gpu::thread() % packs, group = gpu::thread() / packs;
  }
};

template <class Keys, class T, int width, int R>
class AttendBlock {
 public:
  GPU_FN AttendBlock(const Attention& a, const Keys& keys, const CacheView<T, width>& values,
                     const AttendMemory<R>& memory, gpu::Shared<float> row_numbers)
      : a_(a),
        keys_(keys),
        values_(values),
        memory_(memory),
        peaks_(row_numbers),
        sums_(row_numbers + R),
        before_(row_numbers + 2 * R),
        next_(row_numbers + 3 * R) {}

  // Takes the rows' queries; what any of them sees is `all`.
  GPU_FN void start(const RowSet& set) {
    set_ = set;
    now_ = {0, seen_by_any(a_, set), a_.pages_of(set.token), set.kv_head};
    keys_.template load<R>(a_, set, memory_.q);
    for (int64_t i = gpu::thread(); i < R * a_.y.cols; i += attend_threads) memory_.totals[i] = 0;
    if (gpu::thread() < R) peaks_[gpu::thread()] = -HUGE_VALF, sums_[gpu::thread()] = 0;
    gpu::sync();
  }

  GPU_FN const Seen& all() const { return now_.all; }

  // The partial result of a split, combined with those before it.
  GPU_FN void combine_split(int64_t split) {
    now_.split = split;
    score();
    soften([&](int r, bool any, float peak, float sum) {
      if (!any) {
        before_[r] = -1;  // nothing to combine
        return;
      }
      const Merge m = merge(peaks_[r], peak);
      peaks_[r] = m.peak, before_[r] = m.before, next_[r] = m.next;
      sums_[r] = merged(sums_[r], m, sum);
    });
    mix([&](int r, int64_t column, float partial) {
      if (before_[r] < 0) return;
      const int64_t at = r * a_.y.cols + column;
      memory_.totals[at] = merged(memory_.totals[at], {0, before_[r], next_[r]}, partial);
    });
  }

  // The same, left to combine_splits.
  GPU_FN void keep_split(int64_t split) {
    now_.split = split;
    const auto row = [&](int r) { return (set_.token_of(r) * a_.heads + set_.head_of(r)) * a_.splits + now_.split; };
    score();
    soften([&](int r, bool, float peak, float sum) {
      if (r < set_.rows()) a_.peaks[row(r)] = peak, a_.sums[row(r)] = sum;
    });
    mix([&](int r, int64_t column, float partial) {
      if (r < set_.rows()) a_.partials[row(r) * a_.y.cols + column] = partial;
    });
  }

  GPU_FN void finish() {
    for (int r = 0; r < set_.rows(); ++r) {
      const auto y = a_.y.row(set_.token_of(r) * a_.heads + set_.head_of(r));
      for (int64_t i = gpu::thread(); i < a_.y.cols; i += attend_threads)
        y[i] = memory_.totals[r * a_.y.cols + i] / sums_[r];
    }
    gpu::sync();
  }

 private:
  GPU_FN void score() {
    keys_.template score<R>(a_, now_, memory_.q, memory_.parts, memory_.weights);
    gpu::sync();
  }

  // Turns scores into weights, -1 where a row doesn't see. Calls take(row, whether it sees any,
  // greatest score, sum of weights) once a row.
  template <class F>
  GPU_FN void soften(const F& take) {
    const int64_t start = now_.split * split_positions;
    for (int r = gpu::warp(); r < R; r += attend_threads / gpu::lane_width) {
      const Seen seen = r < set_.rows() ? a_.seen(set_.token_of(r)) : Seen{};
      const auto weights = memory_.weights + r * split_positions;
      float peak = -HUGE_VALF;
      for (int i = gpu::lane(); i < split_positions; i += gpu::lane_width)
        if (seen.has(start + i)) peak = weights[i] > peak ? static_cast<float>(weights[i]) : peak;
      peak = gpu::warp_max(peak);
      float sum = 0;
      for (int i = gpu::lane(); i < split_positions; i += gpu::lane_width) {
        const bool sees = seen.has(start + i);
        const float weight = sees ? gpu::exp(weights[i] - peak) : -1.0f;
        weights[i] = weight;
        if (sees) sum += weight;
      }
      sum = gpu::warp_sum(sum);
      if (gpu::lane() == 0) take(r, seen.last > start && seen.first < start + split_positions, peak, sum);
    }
    gpu::sync();
  }

  // Values by weight. Calls put(row, column, sum) once for each. A row never meets a value that it doesn't see: a
  // weight of zero would leave a NaN what it is.
  template <class F>
  GPU_FN void mix(const F& put) {
    const int64_t start = now_.split * split_positions;
    const int from = static_cast<int>(now_.all.first > start ? now_.all.first - start : 0);
    const int to = static_cast<int>(now_.all.last - start < split_positions ? now_.all.last - start : split_positions);
    for (int64_t first = 0; first < a_.y.cols; first += attend_threads * width) {
      const Columns<width> c(a_.y.cols, first);
      float sum[R][width] = {};
      if (c.group < c.groups) {
        const int column = static_cast<int>(first) + c.pack * width;
        for (int start = 0; start < split_positions; start += page_positions) {
          if (start >= to || start + page_positions <= from) continue;
          const auto page = values_.at(now_.page_of[now_.split * split_pages + start / page_positions], set_.kv_head);
          const int end = to - start < page_positions ? to - start : page_positions, skip = from - start - c.group;
#ifndef GPU_EMULATED
#pragma unroll 4
#endif
          for (int p = c.group + (skip > 0 ? (skip + c.groups - 1) / c.groups * c.groups : 0); p < end; p += c.groups) {
            const Pack<float, width> v = page.value(p, column);
            GPU_UNROLL
            for (int r = 0; r < R; ++r) {
              const float weight = memory_.weights[r * split_positions + start + p];
              if (!(weight < 0))
                for (int j = 0; j < width; ++j) sum[r][j] = gpu::fma(weight, v.at[j], sum[r][j]);
            }
          }
        }
      }
      GPU_UNROLL
      for (int r = 0; r < R; ++r)
        for (int j = 0; j < width; ++j) memory_.parts[(r * width + j) * attend_threads + gpu::thread()] = sum[r][j];
      gpu::sync();
      for (int i = gpu::thread(); i < R * width * c.packs; i += attend_threads) {
        const int part = i / c.packs, pack = i % c.packs;
        float total = 0;
        for (int g = 0; g < c.groups; ++g) total += memory_.parts[part * attend_threads + g * c.packs + pack];
        put(part / width, first + pack * width + part % width, total);
      }
      gpu::sync();
    }
  }

  const Attention& a_;
  const Keys& keys_;
  const CacheView<T, width>& values_;
  const AttendMemory<R>& memory_;
  gpu::Shared<float> peaks_, sums_, before_, next_;  // a row each, of what was combined
  RowSet set_;
  SplitOfRows now_;
};

// A block has a few tokens and walks through all they see, sequence by sequence.
template <class Keys, class T, int width, int R>
GPU_KERNEL void attend_whole(Attention a, Keys keys, CacheView<T, width> values, Cut cut) {
  GPU_DYNAMIC_SHARED(float, shared);
  GPU_SHARED(float, row_numbers, 4 * R);
  const AttendMemory<R> memory(shared, keys.query_packs(), a.y.cols);
  AttendBlock<Keys, T, width, R> tile(a, keys, values, memory, row_numbers);
  for_sequences(a, cut.rows(a, gpu::block()), [&](const RowSet& set) {
    tile.start(set);
    for (int64_t s = tile.all().first_split(); s < tile.all().end_split(); ++s) tile.combine_split(s);
    tile.finish();
  });
}

// A block has one token and every n-th of its splits.
template <class Keys, class T, int width, int R>
GPU_KERNEL void attend_splits(Attention a, Keys keys, CacheView<T, width> values, Cut cut) {
  GPU_DYNAMIC_SHARED(float, shared);
  GPU_SHARED(float, row_numbers, 4 * R);
  const RowSet set = cut.rows(a, gpu::block());
  const Seen seen = a.seen(set.token);
  const int64_t first = seen.first_split() + cut.split_block(a, gpu::block());
  if (first >= seen.end_split()) return;
  const AttendMemory<R> memory(shared, keys.query_packs(), a.y.cols);
  AttendBlock<Keys, T, width, R> tile(a, keys, values, memory, row_numbers);
  tile.start(set);
  for (int64_t s = first; s < seen.end_split(); s += cut.split_blocks) tile.keep_split(s);
}

template <class Keys, class T, int width, int R>
void launch_attend(const Attention& a, const Keys& keys, const CacheView<T, width>& values, bool split,
                   Accelerator& device) {
  const int64_t shared = AttendMemory<R>::floats(keys.query_packs(), a.y.cols) * int64_t{sizeof(float)};
  const Cut cut(a, R, split, 4 * device.limits().processors);
  if (split) {
    gpu::launch<attend_splits<Keys, T, width, R>, attend_threads>(device, {cut.blocks(a)}, shared, a, keys, values,
                                                                  cut);
    launch_combine(a, device);
  } else {
    gpu::launch<attend_whole<Keys, T, width, R>, attend_threads>(device, {cut.blocks(a)}, shared, a, keys, values, cut);
  }
}

template <int R>
bool attend_fits(int64_t query_packs, int64_t columns, const Limits& limits) {
  constexpr int64_t others = 1024;
  return AttendMemory<R>::floats(query_packs, columns) * int64_t{sizeof(float)} + others <= limits.shared_bytes;
}

}  // namespace consonant::GPU_BUILD
