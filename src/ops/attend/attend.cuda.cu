// SPDX-License-Identifier: Apache-2.0
// Attention on tensor cores (mma.sync m16n8k16: float16 times float16, summed in float32), for caches in float16.
//
// Many tokens: 64 rows (tokens by query heads of a KV head) of one sequence share a block, 16 a warp, which walks
// through all they see. Bound by the multiplications: 512 tokens of 32 heads of 128 over their own positions are 4.3
// GFLOP, 10 us at half of an H200's peak. Few tokens: a token's heads are the rows, its splits are spread over blocks,
// and the warps share a split. Bound by the bytes of keys and values (4.4 TB/s; 8 heads of 128 over 16,384 positions
// are 67 MB, 15 us).
//
// Both give a row the same bits. A score, and a number of a split's partial, is one chain of products over 16
// dimensions or positions at a time, whichever warp has it; weights are summed over 32 positions at a time, then those
// four sums in order. Where a row doesn't see, its weight is zero, and values that no row of the block sees are read as
// zeros. So a value that isn't a finite number also reaches rows of earlier tokens in the same block.
#include "ops/attend/attend_gpu.hpp"
#include "ops/kv_cache.hpp"
#include "ops/work.hpp"

namespace consonant::GPU_BUILD {

namespace {

constexpr int block_threads = 128, warps = block_threads / 32;
constexpr int warp_rows = 16, tile_rows = warps * warp_rows;
constexpr int steps = split_positions / 16;  // products of 16 positions in a split
constexpr int warp_positions = split_positions / warps;
constexpr int chunk = 64;  // columns of values whose partials a warp holds at a time
constexpr int pad = 8;     // so that eight rows' 16 bytes lie in different banks
constexpr int key_stride = split_positions + pad;

using Half = uint16_t;

GPU_FN unsigned shared_address(const Half* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

// Copies 16 bytes to shared memory when the hardware gets to it, or writes zeros.
GPU_FN void copy_soon(gpu::Shared<Half> to, gpu::Ptr<const Half> from, bool zeros) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from), "r"(zeros ? 0 : 16)
               : "memory");
}
GPU_FN void end_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits for all copies but those ended last.
GPU_FN void wait_but_last() { asm volatile("cp.async.wait_group 1;" ::: "memory"); }
GPU_FN void wait_all() { asm volatile("cp.async.wait_group 0;" ::: "memory"); }

// Four matrices of 8 x 8; each lane gives the address of a row.
GPU_FN void load_matrices(unsigned (&r)[4], gpu::Shared<Half> p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(p))
               : "memory");
}
GPU_FN void load_transposed(unsigned (&r)[4], gpu::Shared<Half> p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(p))
               : "memory");
}

// c [16][8] += a [16][16] b [16][8]. Of c a lane has columns 2 (lane % 4) and the next of rows lane / 4 and lane / 4
// + 8.
GPU_FN void multiply(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
GPU_FN unsigned pack(float low, float high) {
  const __half2 both = __floats2half2_rn(low, high);
  return *reinterpret_cast<const unsigned*>(&both);
}

// Where a lane's row is of the four matrices of a [16][16], for either kind of load.
GPU_FN int matrix_row() { return gpu::lane() % 16; }
GPU_FN int matrix_column() { return gpu::lane() / 16 * 8; }

GPU_FN float sum_of(const float (&parts)[warps]) {
  return gpu::add(gpu::add(gpu::add(parts[0], parts[1]), parts[2]), parts[3]);
}

GPU_FN float weight_of(float score, float peak) {
  float w;
  const float x = gpu::mul(gpu::add(score, peak == -HUGE_VALF ? 0.0f : -peak), 1.44269504f);
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(w) : "f"(x));
  return w;
}

// Offsets in a block's shared memory, in halves.
struct Places {
  int dim, value_dim, rows;

  constexpr int query_stride() const { return dim + pad; }
  constexpr int value_stride() const { return value_dim + pad; }
  constexpr int keys() const { return rows * query_stride(); }
  constexpr int values() const { return keys() + dim * key_stride; }
  constexpr int weights() const { return values() + split_positions * value_stride(); }
  // With few tokens, also the weights that warps compute for each other.
  constexpr int64_t bytes() const { return 2 * (weights() + (rows == warp_rows ? warp_rows * key_stride : 0)); }
};

// Keys and values of one KV head of one sequence in shared memory, and the rows' queries.
struct Operands {
  const Attention& a;
  const CacheView<Half, 1>&keys, &values;
  Places places;
  gpu::Shared<Half> shared;
  RowSet set;
  Seen all;
  gpu::Ptr<const int32_t> page_of;

  GPU_FN Operands(const Attention& attention, const CacheView<Half, 1>& k, const CacheView<Half, 1>& v, int rows,
                  gpu::Shared<Half> memory)
      : a(attention),
        keys(k),
        values(v),
        places{static_cast<int>(k.dim), static_cast<int>(v.dim), rows},
        shared(memory) {}

  GPU_FN void start(const RowSet& rows) {
    place(rows);
    read_queries();
  }
  GPU_FN void place(const RowSet& rows) { set = rows, all = seen_by_any(a, rows), page_of = a.pages_of(rows.token); }
  GPU_FN void read_queries() const {
    GPU_UNROLL_BY(1)
    for (int r = gpu::warp(); r < places.rows; r += warps) {
      const bool used = r < set.rows();
      const auto x = a.q.row(used ? set.token_of(r) * a.heads + set.head_of(r) : 0);
      for (int i = gpu::lane(); i < places.dim; i += 32)
        shared[r * places.query_stride() + i] = gpu::half_bits(used ? x[i] : 0.0f);
    }
  }

  GPU_FN bool page_is_seen(int64_t position) const { return position < all.last && position + kv_page > all.first; }
  GPU_FN gpu::Ptr<const Half> page(const CacheView<Half, 1>& cache, bool seen, int64_t number) const {
    return gpu::cast<const Half>(seen ? cache.at(page_of[number], set.kv_head).numbers : cache.numbers);
  }
  // Brings a split's keys and values as far as the cache that all processors share.
  GPU_FN void prefetch(int64_t split) const {
    GPU_UNROLL_BY(1)
    for (int p = 0; p < split_pages; ++p) {
      const int64_t number = split * split_pages + p;
      if (!page_is_seen(number * kv_page)) continue;
      const auto k = page(keys, true, number), v = page(values, true, number);
      constexpr int line = 64;  // halves
      GPU_UNROLL_BY(1)
      for (int i = line * gpu::thread(); i < places.dim * kv_page; i += line * block_threads) gpu::prefetch(k + i);
      GPU_UNROLL_BY(1)
      for (int i = line * gpu::thread(); i < places.value_dim * kv_page; i += line * block_threads)
        gpu::prefetch(v + i);
    }
  }
  // What no row sees is read as zeros.
  GPU_FN void request_keys(int64_t split) const {
    const gpu::Shared<Half> to = shared + places.keys();
    constexpr int pieces = static_cast<int>(kv_page) / 8;
    GPU_UNROLL_BY(1)
    for (int p = 0; p < split_pages; ++p) {
      const bool seen = page_is_seen(split * split_positions + p * kv_page);
      const auto from = page(keys, seen, split * split_pages + p);
      GPU_UNROLL_BY(2)
      for (int i = gpu::thread(); i < places.dim * pieces; i += block_threads)
        copy_soon(to + (i / pieces * key_stride + p * static_cast<int>(kv_page) + i % pieces * 8),
                  from + (seen ? i * 8 : 0), !seen);
    }
    end_copies();
  }
  GPU_FN void request_values(int64_t split) const {
    const gpu::Shared<Half> to = shared + places.values();
    const int pieces = places.value_dim / 8;
    GPU_UNROLL_BY(1)
    for (int p = 0; p < split_pages; ++p) {
      const int64_t start = split * split_positions + p * kv_page;
      const bool seen = page_is_seen(start);
      const auto from = page(values, seen, start / kv_page);
      GPU_UNROLL_BY(2)
      for (int i = gpu::thread(); i < static_cast<int>(kv_page) * pieces; i += block_threads) {
        const int at = i / pieces;
        copy_soon(to + (p * static_cast<int>(kv_page) + at) * places.value_stride() + i % pieces * 8,
                  from + (seen ? i * 8 : 0), !all.has(start + at));
      }
    }
    end_copies();
  }

  GPU_FN gpu::Shared<Half> query(int row, int i) const {
    return shared + (row + matrix_row()) * places.query_stride() + i + matrix_column();
  }
  GPU_FN gpu::Shared<Half> key(int i, int position) const {
    return shared + places.keys() + (i + matrix_row()) * key_stride + position + matrix_column();
  }
  GPU_FN gpu::Shared<Half> value(int position, int i) const {
    return shared + places.values() + (position + matrix_row()) * places.value_stride() + i + matrix_column();
  }

  // c[t] = scores of 16 rows and the eight positions from `position + 8 t`.
  template <int n>
  GPU_FN void score(float (&c)[n][4], int row, int position) const {
    GPU_UNROLL_BY(2)
    for (int i = 0; i < places.dim; i += 16) {
      unsigned q[4];
      load_matrices(q, query(row, i));
      GPU_UNROLL
      for (int t = 0; t < n; t += 2) {
        unsigned k[4];
        load_transposed(k, key(i, position + t * 8));
        multiply(c[t], q, k[0], k[1]);
        multiply(c[t + 1], q, k[2], k[3]);
      }
    }
  }
};

// Scales the scores of a lane's two rows; those of positions that a row doesn't see become -inf.
template <int n>
GPU_FN void mask(float (&c)[n][4], const Seen (&seen)[2], int64_t position, float scale) {
  position += gpu::lane() % 4 * 2;
  const auto inside = [&](int64_t at) { return static_cast<int>(at < 0 ? 0 : at > n * 8 ? n * 8 : at); };
  GPU_UNROLL
  for (int h = 0; h < 2; ++h) {
    const int first = inside(seen[h].first - position), last = inside(seen[h].last - position);
    const unsigned count = last > first ? last - first : 0;
    GPU_UNROLL
    for (int t = 0; t < n; ++t)
      for (int e = 2 * h; e < 2 * h + 2; ++e)
        c[t][e] = static_cast<unsigned>(t * 8 + e % 2 - first) < count ? gpu::mul(c[t][e], scale) : -HUGE_VALF;
  }
}

// The greatest score of the lane's row lane / 4 + 8 * half.
template <int n>
GPU_FN float greatest(const float (&c)[n][4], int half) {
  float most = -HUGE_VALF;
  GPU_UNROLL
  for (int t = 0; t < n; ++t) most = fmaxf(most, fmaxf(c[t][half * 2], c[t][half * 2 + 1]));
  return row_max(most);
}
// Turns scores of 32 positions, c[first] ... c[first + 3], into weights; their sum.
template <int n>
GPU_FN float soften(float (&c)[n][4], int first, int half, float peak) {
  float sum = 0;
  GPU_UNROLL
  for (int t = first; t < first + warp_positions / 8; ++t)
    for (int e = half * 2; e < half * 2 + 2; ++e) sum = gpu::add(sum, c[t][e] = weight_of(c[t][e], peak));
  return row_sum(sum);
}

// Many tokens: 16 rows of a warp, of which a lane has two. `width`: at least the values' columns.
template <int width>
struct WarpRows {
  const Operands& x;
  int row;
  Seen seen[2];
  float total[width / 8][4] = {}, peak[2] = {-HUGE_VALF, -HUGE_VALF}, sum[2] = {};
  // Of the split at hand: weights of 16 positions at a time, and how its partial is combined; not if a row sees none of
  // it.
  unsigned weights[steps][4];
  Merge next[2];
  bool any[2];

  GPU_FN explicit WarpRows(const Operands& operands) : x(operands), row(gpu::warp() * warp_rows) {
    for (int h = 0; h < 2; ++h)
      if (row_of(h) < x.set.rows()) seen[h] = x.a.seen(x.set.token_of(row_of(h)));
  }
  GPU_FN int row_of(int half) const { return row + gpu::lane() / 4 + 8 * half; }
  GPU_FN bool idle() const { return row >= x.set.rows(); }

  GPU_FN void weigh(int64_t split) {
    const int64_t start = split * split_positions;
    float c[split_positions / 8][4] = {};
    x.score(c, row, 0);
    mask(c, seen, start, x.a.scale);
    GPU_UNROLL
    for (int h = 0; h < 2; ++h) {
      const float most = greatest(c, h);
      float parts[warps];
      GPU_UNROLL
      for (int w = 0; w < warps; ++w) parts[w] = soften(c, w * warp_positions / 8, h, most);
      any[h] = seen[h].last > start && seen[h].first < start + split_positions;
      if (!any[h]) continue;
      next[h] = merge(peak[h], most);
      peak[h] = next[h].peak;
      sum[h] = merged(sum[h], next[h], sum_of(parts));
    }
    GPU_UNROLL
    for (int s = 0; s < steps; ++s)
      for (int i = 0; i < 4; ++i) weights[s][i] = pack(c[2 * s + i / 2][i % 2 * 2], c[2 * s + i / 2][i % 2 * 2 + 1]);
  }

  GPU_FN void mix() {
    GPU_UNROLL
    for (int at = 0; at < width; at += chunk) {
      float c[chunk / 8][4] = {};
      GPU_UNROLL
      for (int s = 0; s < steps; ++s)
        for (int t = 0; t < chunk / 8; t += 2) {
          if (at + t * 8 >= x.places.value_dim) continue;
          unsigned v[4];
          load_transposed(v, x.value(s * 16, at + t * 8));
          multiply(c[t], weights[s], v[0], v[1]);
          multiply(c[t + 1], weights[s], v[2], v[3]);
        }
      GPU_UNROLL
      for (int t = 0; t < chunk / 8; ++t)
        for (int e = 0; e < 4; ++e) {
          float& sums = total[at / 8 + t][e];
          sums = any[e / 2] ? merged(sums, next[e / 2], c[t][e]) : sums;
        }
    }
  }

  GPU_FN void finish() const {
    GPU_UNROLL
    for (int h = 0; h < 2; ++h) {
      const int r = row_of(h);
      if (r >= x.set.rows()) continue;
      const auto y = x.a.y.row(x.set.token_of(r) * x.a.heads + x.set.head_of(r));
      GPU_UNROLL
      for (int t = 0; t < width / 8; ++t) {
        const int column = t * 8 + gpu::lane() % 4 * 2;
        if (column >= x.places.value_dim) continue;
        y[column] = total[t][2 * h] / sum[h];
        y[column + 1] = total[t][2 * h + 1] / sum[h];
      }
    }
  }
};

template <int width>
GPU_KERNEL void attend_whole(Attention a, CacheView<Half, 1> keys, CacheView<Half, 1> values, Cut cut) {
  GPU_DYNAMIC_SHARED(Half, shared);
  Operands x(a, keys, values, tile_rows, shared);
  for_sequences(a, cut.rows(a, gpu::block()), [&](const RowSet& set) {
    gpu::sync();  // the sequence before has been read
    x.start(set);
    WarpRows<width> rows(x);
    const int64_t first = x.all.first_split(), end = x.all.end_split();
    x.request_keys(first);
    x.request_values(first);
    // While keys are read the values come in, and the next keys while values are read.
    for (int64_t split = first; split < end; ++split) {
      wait_but_last();
      gpu::sync();
      if (!rows.idle()) rows.weigh(split);
      gpu::sync();
      if (split + 1 < end)
        x.request_keys(split + 1);
      else
        end_copies();
      wait_but_last();
      gpu::sync();
      if (!rows.idle()) rows.mix();
      gpu::sync();
      if (split + 1 < end)
        x.request_values(split + 1);
      else
        end_copies();
    }
    wait_all();
    rows.finish();
  });
}

// Few tokens: up to 16 heads of one share all warps. A warp has 32 positions of the scores, and every fourth 16 columns
// of the values.
struct SharedRows {
  const Operands& x;
  gpu::Shared<float> peaks, sums;  // [warp][row]
  gpu::Shared<Half> weights;       // [row][position]
  Seen seen[2];

  static GPU_FN int row_of(int half) { return gpu::lane() / 4 + 8 * half; }
  static GPU_FN int position() { return gpu::warp() * warp_positions; }

  GPU_FN void score(float (&c)[warp_positions / 8][4], int64_t split) const {
    x.score(c, 0, position());
    mask(c, seen, split * split_positions + position(), x.a.scale);
    GPU_UNROLL
    for (int h = 0; h < 2; ++h) {
      const float most = greatest(c, h);
      if (gpu::lane() % 4 == 0) peaks[gpu::warp() * warp_rows + row_of(h)] = most;
    }
  }

  // `at`: of the first row's partial; each row's is `splits` further.
  GPU_FN void weigh(float (&c)[warp_positions / 8][4], int64_t at) const {
    GPU_UNROLL
    for (int h = 0; h < 2; ++h) {
      const int r = row_of(h);
      float most = peaks[r];
      GPU_UNROLL
      for (int w = 1; w < warps; ++w) most = fmaxf(most, peaks[w * warp_rows + r]);
      const float sum = soften(c, 0, h, most);
      if (gpu::lane() % 4 == 0) sums[gpu::warp() * warp_rows + r] = sum;
      if (gpu::lane() % 4 == 0 && gpu::warp() == 0 && r < x.set.rows()) x.a.peaks[at + r * x.a.splits] = most;
      GPU_UNROLL
      for (int t = 0; t < warp_positions / 8; ++t)
        gpu::cast<unsigned>(weights + r * key_stride + position() + t * 8 + gpu::lane() % 4 * 2)[0] =
            pack(c[t][2 * h], c[t][2 * h + 1]);
    }
  }

  GPU_FN void mix(int64_t at) const {
    const int r = gpu::thread();
    if (r < x.set.rows()) {
      float parts[warps];
      GPU_UNROLL
      for (int w = 0; w < warps; ++w) parts[w] = sums[w * warp_rows + r];
      x.a.sums[at + r * x.a.splits] = sum_of(parts);
    }
    for (int column = gpu::warp() * 16; column < x.places.value_dim; column += warps * 16) {
      float c[2][4] = {};
      GPU_UNROLL
      for (int s = 0; s < steps; ++s) {
        unsigned w[4], v[4];
        load_matrices(w, weights + matrix_row() * key_stride + s * 16 + matrix_column());
        load_transposed(v, x.value(s * 16, column));
        multiply(c[0], w, v[0], v[1]);
        multiply(c[1], w, v[2], v[3]);
      }
      GPU_UNROLL
      for (int t = 0; t < 2; ++t)
        for (int e = 0; e < 4; ++e) {
          const int64_t partial = at + row_of(e / 2) * x.a.splits;
          const int i = column + t * 8 + gpu::lane() % 4 * 2 + e % 2;
          if (row_of(e / 2) < x.set.rows()) x.a.partials[partial * x.places.value_dim + i] = c[t][e];
        }
    }
  }
};

// A block has every n-th of its token's splits.
GPU_KERNEL void attend_splits(Attention a, CacheView<Half, 1> keys, CacheView<Half, 1> values, Cut cut) {
  GPU_DYNAMIC_SHARED(Half, shared);
  GPU_SHARED(float, peaks, warps* warp_rows);
  GPU_SHARED(float, sums, warps* warp_rows);
  if (!a.known) gpu::wait_for_inputs();
  const RowSet set = cut.rows(a, gpu::block());
  const Seen seen = a.seen(set.token);
  const int64_t first = seen.first_split() + cut.split_block(a, gpu::block()), end = seen.end_split();
  Operands x(a, keys, values, warp_rows, shared);
  x.place(set);
  // What was cached before this step can be copied before the kernels ahead have ended.
  const bool settled = a.known && first < end && (first + 1) * split_positions <= a.first_of_step(set.token);
  const auto request_first = [&] { x.request_keys(first), x.request_values(first); };
  if (a.known) {
    if (settled)
      request_first();
    else if (first < end)
      x.prefetch(first);
    gpu::wait_for_inputs();
  }
  if (first >= end) return;
  x.read_queries();
  const SharedRows rows{x, peaks, sums, shared + x.places.weights(), {seen, seen}};
  if (!settled) request_first();
  for (int64_t split = first; split < end; split += cut.split_blocks) {
    const int64_t at = (set.token * a.heads + set.head) * a.splits + split, next = split + cut.split_blocks;
    float c[warp_positions / 8][4] = {};
    wait_but_last();
    gpu::sync();
    rows.score(c, split);
    gpu::sync();
    if (next < end)
      x.request_keys(next);
    else
      end_copies();
    rows.weigh(c, at);
    wait_but_last();
    gpu::sync();
    rows.mix(at);
    gpu::sync();
    if (next < end)
      x.request_values(next);
    else
      end_copies();
  }
  wait_all();
}

Places places(int64_t dim, int64_t value_dim, int rows) {
  return {static_cast<int>(dim), static_cast<int>(value_dim), rows};
}

void launch_part(const Args& args, bool split, Accelerator& device, std::byte* scratch) {
  const View& v = args.in[2];
  const Attention a = attention(args, scratch, split);
  const auto keys = cache_view<Half, 1>(args.in[1], StateKind::keys);
  const auto values = cache_view<Half, 1>(v, StateKind::values);
  const int rows = split ? warp_rows : tile_rows;
  const Cut cut(a, rows, split, 2 * device.limits().processors);
  const gpu::Grid grid{cut.blocks(a)};
  const int64_t bytes = places(keys.dim, values.dim, rows).bytes();
  if (split) {
    gpu::launch_early<attend_splits, block_threads>(device, grid, bytes, a, keys, values, cut);
    launch_combine(a, device);
  } else if (values.dim <= 64) {
    gpu::launch<attend_whole<64>, block_threads>(device, grid, bytes, a, keys, values, cut);
  } else if (values.dim <= 128) {
    gpu::launch<attend_whole<128>, block_threads>(device, grid, bytes, a, keys, values, cut);
  } else {
    gpu::launch<attend_whole<256>, block_threads>(device, grid, bytes, a, keys, values, cut);
  }
}

void launch(const Args& args, Accelerator& device, std::byte* scratch) {
  const View &q = args.in[0], &v = args.in[2];
  if (q.shape[0] == 0) return;
  const Splitting splitting(q.shape[1], v.shape[1], attention_splits(args.in[5].shape[1]), v.shape[3], device.limits());
  for_parts(args, splitting, 1, [&](const Args& part, bool split) { launch_part(part, split, device, scratch); });
}

Refusal can_run(const Node& node, const Limits& limits) {
  if (limits.compute < 80) return {"tensor cores since compute capability 8.0 are wanted"};
  if (Refusal refusal = wants_head_rows(node.inputs[0], "q")) return refusal;
  const Tensor &keys = node.inputs[1], &values = node.inputs[2];
  if (keys.type() != DType::f16 || values.type() != DType::f16) return {"on tensor cores the cache must be f16"};
  const Shape& q = node.inputs[0].shape();
  const int64_t dim = q[2], value_dim = values.shape()[3];
  if (dim % 16 != 0 || value_dim % 16 != 0 || std::max(dim, value_dim) > 256)
    return {fmt::format("heads of {} and {} aren't multiples of 16 up to 256", dim, value_dim)};
  const int64_t bytes = std::max(places(dim, value_dim, tile_rows).bytes(), places(dim, value_dim, warp_rows).bytes());
  if (bytes + 1024 > limits.shared_bytes) return {fmt::format("{} bytes of shared memory are wanted", bytes)};
  if (q[0] * q[1] * ceil_div(value_dim, combine_threads) > limits.grid) return {"more rows than a grid has blocks"};
  return {};
}

}  // namespace

GpuKernel attend_mma_gpu() { return {"attend_mma", Op::attend, can_run, attention_scratch, launch, 0x1p-11}; }

}  // namespace consonant::GPU_BUILD
