// SPDX-License-Identifier: Apache-2.0
// With few tokens this is bound by the bytes of the cache that they see (4.4 TB/s on an H200: 8 KV heads of 128 numbers in
// float16 over 16,384 positions are 67 MB, 15 us): query heads of a KV head, and neighbouring tokens of a sequence, are the
// rows of one block, so that what they see is read once. With many tokens it is bound by the multiplications.
#include "ops/attend/attend_gpu.hpp"
#include "ops/kv_cache.hpp"
#include "ops/work.hpp"

namespace consonant::GPU_BUILD {

namespace {

constexpr int block_threads = 256;
constexpr int key_threads = split_positions / 4;             // a thread has four positions, 32 all of a split
constexpr int key_groups = block_threads / key_threads;      // that share the numbers of the keys
constexpr int64_t few_columns = 256;                         // up to here a block has up to eight rows, beyond one

// Shared memory of a block with R rows, cut out of one array of floats. Rows lie side by side in q, so that a thread loads
// all of them at once.
template <int R>
struct Memory {
  gpu::Shared<float> q, totals, parts, weights;

  // Offsets: q [dim][R], totals [R][value dim], parts [4 R][threads], weights [R][split_positions].
  static constexpr int64_t floats(int64_t dim, int64_t value_dim) {
    return R * (dim + value_dim + 4 * block_threads + split_positions);
  }
  GPU_FN Memory(gpu::Shared<float> all, int64_t dim, int64_t value_dim)
      : q(all),
        totals(q + R * dim),
        parts(totals + R * value_dim),
        weights(parts + R * 4 * block_threads) {}
};

// Rows of a block: tokens of one sequence by query heads of one KV head.
struct RowSet {
  int64_t token = 0, tokens = 0, head = 0, heads = 0, kv_head = 0;

  GPU_FN int rows() const { return static_cast<int>(tokens * heads); }
  GPU_FN int64_t token_of(int r) const { return token + r / heads; }
  GPU_FN int64_t head_of(int r) const { return head + r % heads; }
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
  GPU_FN Tile(const Attention& a, const CacheView<T, 4>& keys, const CacheView<T, width>& values, const Memory<R>& memory,
              gpu::Shared<float> row_numbers)
      : a_(a), keys_(keys), values_(values), memory_(memory), peaks_(row_numbers), sums_(row_numbers + R),
        before_(row_numbers + 2 * R), next_(row_numbers + 3 * R) {}

  // Takes the rows' queries; what any of them sees is `all`.
  GPU_FN void start(const RowSet& set) {
    set_ = set;
    page_of_ = a_.pages_of(set.token);
    all_ = a_.seen(set.token);
    for (int64_t t = 1; t < set.tokens; ++t) {
      const Seen seen = a_.seen(set.token + t);
      all_.first = seen.first < all_.first ? seen.first : all_.first;
      all_.last = seen.last > all_.last ? seen.last : all_.last;
    }
    for (int r = 0; r < R; ++r) {
      const bool used = r < set.rows();
      const auto x = a_.q.row(used ? set.token_of(r) * a_.heads + set.head_of(r) : 0);
      for (int64_t i = gpu::thread(); i < keys_.dim; i += block_threads)
        memory_.q[i * R + r] = used ? static_cast<float>(x[i]) : 0.0f;
      for (int64_t i = gpu::thread(); i < values_.dim; i += block_threads) memory_.totals[r * values_.dim + i] = 0;
    }
    if (gpu::thread() < R) peaks_[gpu::thread()] = -HUGE_VALF, sums_[gpu::thread()] = 0;
    gpu::sync();
  }

  GPU_FN const Seen& all() const { return all_; }

  // The partial result of a split, combined with those before it.
  GPU_FN void combine_split(int64_t split) {
    split_ = split;
    score();
    soften([&](int r, float peak, float sum) {
      const Merge m = merge(peaks_[r], peak);
      peaks_[r] = m.peak, before_[r] = m.before, next_[r] = m.next;
      sums_[r] = merged(sums_[r], m, sum);
    });
    mix([&](int r, int64_t column, float partial) {
      const int64_t at = r * values_.dim + column;
      memory_.totals[at] = merged(memory_.totals[at], {0, before_[r], next_[r]}, partial);
    });
  }

  // The same, left to combine_splits.
  GPU_FN void keep_split(int64_t split) {
    split_ = split;
    const auto row = [&](int r) { return (set_.token_of(r) * a_.heads + set_.head_of(r)) * a_.splits + split_; };
    score();
    soften([&](int r, float peak, float sum) {
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
  // Scores of all rows, into memory_.weights. Each group of threads has every key_groups-th number of the keys; their sums
  // are added in the order of the groups.
  GPU_FN void score() {
    const int at = gpu::thread() % key_threads * 4, group = gpu::thread() / key_threads;
    const int64_t position = split_ * split_positions + at;
    float sum[R][4] = {};
    if (position < all_.last && position + 4 > all_.first) {
      const int64_t page = page_of_[position / kv_page], on_page = at % kv_page;
      for (int64_t block = 0; block < keys_.dim; block += 32) {
        Pack<float, 4> scales{};
        if constexpr (CacheView<T, 4>::scaled) scales = keys_.key_scales(page, set_.kv_head, block / 32, on_page);
        GPU_UNROLL
        for (int i = 0; i < 32; i += key_groups) {
          const int64_t number = block + i + group;
          if (number >= keys_.dim) continue;
          Pack<float, 4> k = keys_.key(page, set_.kv_head, number, on_page);
          if constexpr (CacheView<T, 4>::scaled)
            for (int j = 0; j < 4; ++j) k.at[j] *= scales.at[j];
          GPU_UNROLL
          for (int r = 0; r < R; ++r) {
            const float x = memory_.q[number * R + r];
            for (int j = 0; j < 4; ++j) sum[r][j] = gpu::fma(x, k.at[j], sum[r][j]);
          }
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

  // Turns scores into weights, -1 where a row doesn't see. Calls take(row, greatest score, sum of weights) once a row.
  template <class F>
  GPU_FN void soften(const F& take) {
    for (int r = gpu::warp(); r < R; r += block_threads / gpu::lane_width) {
      const Seen seen = r < set_.rows() ? a_.seen(set_.token_of(r)) : Seen{};
      const auto weights = memory_.weights + r * split_positions;
      float peak = -HUGE_VALF;
      for (int i = gpu::lane(); i < split_positions; i += gpu::lane_width)
        if (seen.has(split_ * split_positions + i)) peak = weights[i] > peak ? static_cast<float>(weights[i]) : peak;
      peak = gpu::warp_max(peak);
      float sum = 0;
      for (int i = gpu::lane(); i < split_positions; i += gpu::lane_width) {
        const bool sees = seen.has(split_ * split_positions + i);
        const float weight = sees ? gpu::exp(weights[i] - peak) : -1.0f;
        weights[i] = weight;
        if (sees) sum += weight;
      }
      sum = gpu::warp_sum(sum);
      if (gpu::lane() == 0) take(r, peak, sum);
    }
    gpu::sync();
  }

  // Values by weight. Calls put(row, column, sum) once for each. A row never meets a value that it doesn't see: a weight
  // of zero would leave a NaN what it is.
  template <class F>
  GPU_FN void mix(const F& put) {
    const int64_t start = split_ * split_positions;
    const int from = static_cast<int>(all_.first > start ? all_.first - start : 0);
    const int to = static_cast<int>(all_.last - start < split_positions ? all_.last - start : split_positions);
    for (int64_t first = 0; first < values_.dim; first += block_threads * width) {
      const Columns<width> c(values_.dim, first);
      float sum[R][width] = {};
      if (c.group < c.groups) {
        const int64_t column = first + c.pack * width;
        int p = c.group + (from > c.group ? (from - c.group + c.groups - 1) / c.groups * c.groups : 0);
#ifndef GPU_EMULATED
#pragma unroll 4
#endif
        for (; p < to; p += c.groups) {
          const int64_t page = page_of_[(start + p) / kv_page];
          const Pack<float, width> v = values_.value(page, set_.kv_head, p % kv_page, column);
          GPU_UNROLL
          for (int r = 0; r < R; ++r) {
            const float weight = memory_.weights[r * split_positions + p];
            if (!(weight < 0))
              for (int j = 0; j < width; ++j) sum[r][j] = gpu::fma(weight, v.at[j], sum[r][j]);
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

// Blocks are numbered [split block, token tile, KV head, part of the group]; `heads` query heads are one part.
struct Cut {
  int64_t tile_tokens = 1, heads = 1, parts = 1, tiles = 1;

  GPU_FN RowSet rows(const Attention& a, int64_t block) const {
    RowSet set;
    const int64_t part = block % parts, tile = block / parts / a.kv_heads % tiles;
    set.kv_head = block / parts % a.kv_heads;
    set.head = set.kv_head * a.group + part * heads;
    set.heads = a.group - part * heads < heads ? a.group - part * heads : heads;
    set.token = tile * tile_tokens;
    set.tokens = a.tokens - set.token < tile_tokens ? a.tokens - set.token : tile_tokens;
    return set;
  }
  GPU_FN int64_t split_block(const Attention& a, int64_t block) const { return block / parts / a.kv_heads / tiles; }
};

// A block has a few tokens and walks through all they see, sequence by sequence.
template <class T, int width, int R>
GPU_KERNEL void attend_whole(Attention a, CacheView<T, 4> keys, CacheView<T, width> values, Cut cut) {
  GPU_DYNAMIC_SHARED(float, shared);
  GPU_SHARED(float, row_numbers, 4 * R);
  const Memory<R> memory(shared, keys.dim, values.dim);
  Tile<T, width, R> tile(a, keys, values, memory, row_numbers);
  RowSet set = cut.rows(a, gpu::block());
  const int64_t end = set.token + set.tokens;
  while (set.token < end) {
    set.tokens = 1;
    while (set.token + set.tokens < end && a.seq[set.token + set.tokens] == a.seq[set.token]) ++set.tokens;
    tile.start(set);
    for (int64_t s = tile.all().first_split(); s < tile.all().end_split(); ++s) tile.combine_split(s);
    tile.finish();
    set.token += set.tokens;
  }
}

// A block has one token and every n-th of its splits.
template <class T, int width, int R>
GPU_KERNEL void attend_splits(Attention a, CacheView<T, 4> keys, CacheView<T, width> values, Cut cut, int64_t n) {
  GPU_DYNAMIC_SHARED(float, shared);
  GPU_SHARED(float, row_numbers, 4 * R);
  const RowSet set = cut.rows(a, gpu::block());
  const Seen seen = a.seen(set.token);
  const int64_t first = seen.first_split() + cut.split_block(a, gpu::block());
  if (first >= seen.end_split()) return;
  const Memory<R> memory(shared, keys.dim, values.dim);
  Tile<T, width, R> tile(a, keys, values, memory, row_numbers);
  tile.start(set);
  for (int64_t s = first; s < seen.end_split(); s += n) tile.keep_split(s);
}

template <class T, int width, int R>
void launch_rows(const Args& args, const Attention& a, bool split, Accelerator& device) {
  const auto keys = cache_view<T, 4>(args.in[1], StateKind::keys);
  const auto values = cache_view<T, width>(args.in[2], StateKind::values);
  const int64_t shared = Memory<R>::floats(keys.dim, values.dim) * int64_t{sizeof(float)};
  Cut cut;
  cut.heads = std::min<int64_t>(R, a.group), cut.parts = ceil_div(a.group, cut.heads);
  if (!split && cut.parts == 1) cut.tile_tokens = R / cut.heads;
  cut.tiles = ceil_div(a.tokens, cut.tile_tokens);
  const int64_t blocks = cut.tiles * a.kv_heads * cut.parts;
  if (split) {
    const int64_t n = split_blocks(a, blocks, device.limits());
    gpu::launch<attend_splits<T, width, R>, block_threads>(device, {n * blocks}, shared, a, keys, values, cut, n);
    launch_combine(a, device);
  } else {
    gpu::launch<attend_whole<T, width, R>, block_threads>(device, {blocks}, shared, a, keys, values, cut);
  }
}

// How many rows share a block makes no difference to any of them.
template <class T, int width>
void launch_as(const Args& args, const Attention& a, bool split, Accelerator& device) {
  const bool few = std::max(args.in[1].shape[2], args.in[2].shape[3]) <= few_columns;
  const int64_t rows = few ? (split ? a.group : std::max<int64_t>(a.tokens, 1) * a.group) : 1;
  if (rows == 1)
    launch_rows<T, width, 1>(args, a, split, device);
  else if (rows <= 4)
    launch_rows<T, width, 4>(args, a, split, device);
  else
    launch_rows<T, width, 8>(args, a, split, device);
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
  const bool few = std::max(q[2], values[3]) <= few_columns;
  const int64_t floats = few ? Memory<8>::floats(q[2], values[3]) : Memory<1>::floats(q[2], values[3]);
  if (floats * int64_t{sizeof(float)} + 1024 > limits.shared_bytes)
    return {fmt::format("heads of {} and {} don't fit {} bytes of shared memory", q[2], values[3], limits.shared_bytes)};
  return wants_cache(node.inputs[1], node.inputs[2]);
}

}  // namespace

GpuKernel attend_gpu() { return {"attend", Op::attend, can_run, attention_scratch, launch}; }

}  // namespace consonant::GPU_BUILD
