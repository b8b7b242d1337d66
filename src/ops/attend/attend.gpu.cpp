// SPDX-License-Identifier: Apache-2.0
// With few tokens this is bound by the bytes of the cache that they see (4.4 TB/s on an H200: 8 KV heads of 128 numbers
// in float16 over 16,384 positions are 67 MB, 15 us): query heads of a KV head, and neighbouring tokens of a sequence,
// are the rows of one block, so that what they see is read once. With many tokens it is bound by the multiplications.
#include "ops/attend/attend_gpu.hpp"
#include "ops/kv_cache.hpp"
#include "ops/work.hpp"

namespace consonant::GPU_BUILD {

namespace {

constexpr int block_threads = 256;
constexpr int key_threads = split_positions / 4;         // a thread has four positions, 32 all of a split
constexpr int key_groups = block_threads / key_threads;  // that share the numbers of the keys
constexpr int page_positions = static_cast<int>(kv_page);

// Shared memory of a block with R rows, cut out of one array of floats. Rows lie side by side in q, so that a thread
// loads all of them at once.
template <int R>
struct Memory {
  gpu::Shared<Pack<float, R>> q;
  gpu::Shared<float> totals, parts, weights;

  // q [dim][R], totals [R][value dim], parts [4 R][threads], weights [R][split_positions].
  static constexpr int64_t floats(int64_t dim, int64_t value_dim) {
    return R * (dim + value_dim + 4 * block_threads + split_positions);
  }
  GPU_FN Memory(gpu::Shared<float> all, int64_t dim, int64_t value_dim)
      : q(gpu::cast<Pack<float, R>>(all)),
        totals(all + R * dim),
        parts(totals + R * value_dim),
        weights(parts + R * 4 * block_threads) {}
};

// The columns of values that a thread sums up: packs of `width` columns, and every groups-th position.
template <int width>
struct Columns {
  int packs, groups, pack, group;  // packs of one pass

  GPU_FN Columns(int64_t dim, int64_t first) {
    const int64_t left = (dim - first + width - 1) / width;
    packs = static_cast<int>(left < block_threads ? left : block_threads);
    groups = block_threads / packs;
    pack = gpu::thread() % packs, group = gpu::thread() / packs;
  }
};

template <class T, int width, int R>
class Tile {
 public:
  GPU_FN Tile(const Attention& a, const CacheView<T, 4>& keys, const CacheView<T, width>& values,
              const Memory<R>& memory, gpu::Shared<float> row_numbers)
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
    page_of_ = a_.pages_of(set.token);
    all_ = seen_by_any(a_, set);
    for (int64_t i = gpu::thread(); i < keys_.dim; i += block_threads) {
      Pack<float, R> x{};
      GPU_UNROLL
      for (int r = 0; r < R; ++r)
        if (r < set.rows()) x.at[r] = a_.q.row(set.token_of(r) * a_.heads + set.head_of(r))[i];
      memory_.q[i] = x;
    }
    for (int64_t i = gpu::thread(); i < R * values_.dim; i += block_threads) memory_.totals[i] = 0;
    if (gpu::thread() < R) peaks_[gpu::thread()] = -HUGE_VALF, sums_[gpu::thread()] = 0;
    gpu::sync();
  }

  GPU_FN const Seen& all() const { return all_; }

  // The partial result of a split, combined with those before it.
  GPU_FN void combine_split(int64_t split) {
    split_ = split;
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
      const int64_t at = r * values_.dim + column;
      memory_.totals[at] = merged(memory_.totals[at], {0, before_[r], next_[r]}, partial);
    });
  }

  // The same, left to combine_splits.
  GPU_FN void keep_split(int64_t split) {
    split_ = split;
    const auto row = [&](int r) { return (set_.token_of(r) * a_.heads + set_.head_of(r)) * a_.splits + split_; };
    score();
    soften([&](int r, bool, float peak, float sum) {
      if (r < set_.rows()) a_.peaks[row(r)] = peak, a_.sums[row(r)] = sum;
    });
    mix([&](int r, int64_t column, float partial) {
      if (r < set_.rows()) a_.partials[row(r) * values_.dim + column] = partial;
    });
  }

  GPU_FN void finish() {
    for (int r = 0; r < set_.rows(); ++r) {
      const auto y = a_.y.row(set_.token_of(r) * a_.heads + set_.head_of(r));
      for (int64_t i = gpu::thread(); i < values_.dim; i += block_threads)
        y[i] = memory_.totals[r * values_.dim + i] / sums_[r];
    }
    gpu::sync();
  }

 private:
  // Scores of all rows, into memory_.weights. Each group of threads has every key_groups-th number of the keys; their
  // sums are added in the order of the groups.
  GPU_FN void score() {
    const int at = gpu::thread() % key_threads * 4, group = gpu::thread() / key_threads;
    const int64_t position = split_ * split_positions + at;
    float sum[R][4] = {};
    if (position < all_.last && position + 4 > all_.first) {
      const auto page = keys_.at(page_of_[position / kv_page], set_.kv_head);
      const int on_page = at % CacheHead<T, 4>::page;
      for (int block = 0; block < page.dim; block += 32) {
        Pack<float, 4> scales{};
        if constexpr (CacheHead<T, 4>::scaled) scales = page.key_scales(block / 32, on_page);
        GPU_UNROLL
        for (int i = 0; i < 32; i += key_groups) {
          const int number = block + i + group;
          if (number >= page.dim) continue;
          Pack<float, 4> k = page.key(number, on_page);
          if constexpr (CacheHead<T, 4>::scaled)
            for (int j = 0; j < 4; ++j) k.at[j] *= scales.at[j];
          const Pack<float, R> x = memory_.q[number];
          GPU_UNROLL
          for (int r = 0; r < R; ++r)
            for (int j = 0; j < 4; ++j) sum[r][j] = gpu::fma(x.at[r], k.at[j], sum[r][j]);
        }
      }
    }
    GPU_UNROLL
    for (int r = 0; r < R; ++r)
      for (int j = 0; j < 4; ++j) memory_.parts[(r * 4 + j) * block_threads + gpu::thread()] = sum[r][j];
    gpu::sync();
    for (int i = gpu::thread(); i < R * split_positions; i += block_threads) {
      const int part = i / key_threads, j = part % 4, thread = i % key_threads;
      float total = 0;
      for (int g = 0; g < key_groups; ++g) total += memory_.parts[part * block_threads + g * key_threads + thread];
      memory_.weights[part / 4 * split_positions + thread * 4 + j] = total * a_.scale;
    }
    gpu::sync();
  }

  // Turns scores into weights, -1 where a row doesn't see. Calls take(row, whether it sees any,
  // greatest score, sum of weights) once a row.
  template <class F>
  GPU_FN void soften(const F& take) {
    const int64_t start = split_ * split_positions;
    for (int r = gpu::warp(); r < R; r += block_threads / gpu::lane_width) {
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
    const int64_t start = split_ * split_positions;
    const int from = static_cast<int>(all_.first > start ? all_.first - start : 0);
    const int to = static_cast<int>(all_.last - start < split_positions ? all_.last - start : split_positions);
    for (int64_t first = 0; first < values_.dim; first += block_threads * width) {
      const Columns<width> c(values_.dim, first);
      float sum[R][width] = {};
      if (c.group < c.groups) {
        const int column = static_cast<int>(first) + c.pack * width;
        for (int start = 0; start < split_positions; start += page_positions) {
          if (start >= to || start + page_positions <= from) continue;
          const auto page = values_.at(page_of_[split_ * split_pages + start / page_positions], set_.kv_head);
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
        for (int j = 0; j < width; ++j) memory_.parts[(r * width + j) * block_threads + gpu::thread()] = sum[r][j];
      gpu::sync();
      for (int i = gpu::thread(); i < R * width * c.packs; i += block_threads) {
        const int part = i / c.packs, pack = i % c.packs;
        float total = 0;
        for (int g = 0; g < c.groups; ++g) total += memory_.parts[part * block_threads + g * c.packs + pack];
        put(part / width, first + pack * width + part % width, total);
      }
      gpu::sync();
    }
  }

  const Attention& a_;
  const CacheView<T, 4>& keys_;
  const CacheView<T, width>& values_;
  const Memory<R>& memory_;
  gpu::Shared<float> peaks_, sums_, before_, next_;  // a row each, of what was combined
  RowSet set_;
  gpu::Ptr<const int32_t> page_of_;
  Seen all_;
  int64_t split_ = 0;
};

// A block has a few tokens and walks through all they see, sequence by sequence.
template <class T, int width, int R>
GPU_KERNEL void attend_whole(Attention a, CacheView<T, 4> keys, CacheView<T, width> values, Cut cut) {
  GPU_DYNAMIC_SHARED(float, shared);
  GPU_SHARED(float, row_numbers, 4 * R);
  const Memory<R> memory(shared, keys.dim, values.dim);
  Tile<T, width, R> tile(a, keys, values, memory, row_numbers);
  for_sequences(a, cut.rows(a, gpu::block()), [&](const RowSet& set) {
    tile.start(set);
    for (int64_t s = tile.all().first_split(); s < tile.all().end_split(); ++s) tile.combine_split(s);
    tile.finish();
  });
}

// A block has one token and every n-th of its splits.
template <class T, int width, int R>
GPU_KERNEL void attend_splits(Attention a, CacheView<T, 4> keys, CacheView<T, width> values, Cut cut) {
  GPU_DYNAMIC_SHARED(float, shared);
  GPU_SHARED(float, row_numbers, 4 * R);
  const RowSet set = cut.rows(a, gpu::block());
  const Seen seen = a.seen(set.token);
  const int64_t first = seen.first_split() + cut.split_block(a, gpu::block());
  if (first >= seen.end_split()) return;
  const Memory<R> memory(shared, keys.dim, values.dim);
  Tile<T, width, R> tile(a, keys, values, memory, row_numbers);
  tile.start(set);
  for (int64_t s = first; s < seen.end_split(); s += cut.split_blocks) tile.keep_split(s);
}

template <class T, int width, int R>
void launch_rows(const Args& args, const Attention& a, bool split, Accelerator& device) {
  const auto keys = cache_view<T, 4>(args.in[1], StateKind::keys);
  const auto values = cache_view<T, width>(args.in[2], StateKind::values);
  const int64_t shared = Memory<R>::floats(keys.dim, values.dim) * int64_t{sizeof(float)};
  const Cut cut(a, R, split, 4 * device.limits().processors);
  if (split) {
    gpu::launch<attend_splits<T, width, R>, block_threads>(device, {cut.blocks(a)}, shared, a, keys, values, cut);
    launch_combine(a, device);
  } else {
    gpu::launch<attend_whole<T, width, R>, block_threads>(device, {cut.blocks(a)}, shared, a, keys, values, cut);
  }
}

template <int R>
bool fits(int64_t dim, int64_t value_dim, const Limits& limits) {
  constexpr int64_t others = 1024;
  return Memory<R>::floats(dim, value_dim) * int64_t{sizeof(float)} + others <= limits.shared_bytes;
}

// How many rows share a block makes no difference to any of them.
template <class T, int width>
void launch_as(const Args& args, const Attention& a, bool split, Accelerator& device) {
  const int64_t rows = (split ? 1 : a.tokens) * a.group, dim = args.in[1].shape[2], value_dim = args.in[2].shape[3];
  if constexpr (width > 1) {  // other sizes of heads are rare: not worth the kernels
    if (rows > 4 && fits<8>(dim, value_dim, device.limits())) return launch_rows<T, width, 8>(args, a, split, device);
    if (rows > 1 && fits<4>(dim, value_dim, device.limits())) return launch_rows<T, width, 4>(args, a, split, device);
  }
  launch_rows<T, width, 1>(args, a, split, device);
}

void launch(const Args& args, Accelerator& device, std::byte* scratch) {
  const View &q = args.in[0], &values = args.in[2];
  if (q.shape[0] == 0) return;
  const int64_t most = most_split_tokens(q.shape[1], values.shape[1], attention_splits(args.in[5].shape[1]),
                                         values.shape[3], device.limits());
  const Attention a = attention(args, scratch, most);
  const bool split = a.tokens <= most;
  with_cache_type(values.type, [&](auto number) {
    using T = decltype(number);
    if constexpr (!std::is_same_v<T, int8_t>) {
      if (values.shape[3] % 4 != 0) return launch_as<T, 1>(args, a, split, device);
    }
    launch_as<T, 4>(args, a, split, device);
  });
}

Refusal can_run(const Node& node, const Limits& limits) {
  if (Refusal refusal = wants_head_rows(node.inputs[0], "q")) return refusal;
  const Shape &q = node.inputs[0].shape(), &values = node.inputs[2].shape();
  if (q[0] * q[1] * ceil_div(values[3], combine_threads) > limits.grid) return {"more rows than a grid has blocks"};
  if (!fits<1>(q[2], values[3], limits))
    return {
        fmt::format("heads of {} and {} don't fit {} bytes of shared memory", q[2], values[3], limits.shared_bytes)};
  return wants_cache(node.inputs[1], node.inputs[2]);
}

}  // namespace

GpuKernel attend_gpu() { return {"attend", Op::attend, can_run, attention_scratch, launch}; }

}  // namespace consonant::GPU_BUILD
