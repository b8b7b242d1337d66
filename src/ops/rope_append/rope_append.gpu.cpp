// SPDX-License-Identifier: Apache-2.0
// For a token, bound by latencies: of the launch, of a load, of the sum of a row. A block has few rows then. For many,
// bound by the bytes of q, k and v read and of q and the cache written: a block takes neighbouring tokens of a head of
// k, so that its writes to a page of keys, where a head's numbers lie apart, are of neighbours.
#include "ops/rope_append/rope_append.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ops/kv_append/append_gpu.hpp"
#include "ops/kv_cache.hpp"
#include "ops/rms_norm/rms_norm_gpu.hpp"
#include "ops/rope/rope_gpu.hpp"
#include "ops/work.hpp"

namespace consonant::GPU_BUILD {

namespace {

// Threads of a row. The sum of its squares has the order of rms_norm's, which depends on the length alone.
constexpr int threads_of(int64_t dim) { return dim <= short_norm ? short_norm_threads : dim <= 1024 ? 256 : 1024; }
constexpr int block_threads(int row_threads) { return std::max(row_threads, 256); }

// Rows that a block takes of k; a power of two, and a multiple of those that its threads take at once. Steps of up to
// so many tokens are of many sequences, or are done sooner by more blocks.
constexpr int64_t apart_tokens = 128;
int64_t rows_together(int64_t dim, int64_t tokens) {
  const int row_threads = threads_of(dim), least = block_threads(row_threads) / row_threads;
  return tokens < apart_tokens || row_threads == 1024 ? least : row_threads == 64 ? 16 : 4;
}

struct Row {
  unsigned token = 0, head = 0;
  bool inside = false;
};

// q or k.
struct Heads {
  Rows<const float> from;
  gpu::Ptr<const float> norm;
  bool normed = false;
  unsigned tokens = 0, heads = 0;
  bool by_head = false;  // whether rows are numbered head by head, or token by token

  GPU_FN Row row(int64_t r) const {
    const auto n = static_cast<unsigned>(r), inner = by_head ? tokens : heads, outer = n / inner, rest = n % inner;
    return {by_head ? rest : outer, by_head ? outer : rest, r < from.rows};
  }
};

struct Turning {
  Rows<const float> angles;
  int dim = 0, turns = 0, passes = 0;  // a head has `turns` pairs that turn, then `passes` numbers that don't
  bool neighbours = false;
  float epsilon = 0;
};

// Rows of a block in shared memory, each with its token's angles behind it, so that one wait is for all that is read.
// The odd distance lets neighbouring threads read neighbouring rows.
struct Staged {
  gpu::Shared<float> norm, rows;
  int dim = 0, pitch = 0;

  GPU_FN gpu::Shared<float> row(int slot) const { return rows + slot * pitch; }
  GPU_FN gpu::Shared<float> angles(int slot) const { return rows + (slot * pitch + dim); }
};

constexpr int64_t pitch_of(int64_t dim, int64_t turned) { return (dim + turned) | 1; }

// Over the threads of a row; rms_norm's order.
template <int row_threads>
GPU_FN float row_sum(float x) {
  GPU_SHARED(float, parts, 32);
  constexpr int warps = row_threads / gpu::lane_width;
  x = gpu::warp_sum(x);
  gpu::sync();
  if (gpu::lane() == 0) parts[gpu::warp()] = x;
  gpu::sync();
  float sum = 0;
  for (int w = 0; w < warps; ++w) sum += parts[gpu::warp() / warps * warps + w];
  return sum;
}

// The sum of a row's squares over its threads, in rms_norm's order; rows that aren't inside have none.
template <int row_threads>
GPU_FN float row_squares(gpu::Shared<const float> x, int dim, bool inside) {
  if constexpr (row_threads == short_norm_threads) {
    float sum = 0;
    if (inside) {
      GPU_UNROLL_BY(1)
      for (int i = gpu::thread() % row_threads; i < dim; i += row_threads) sum += x[i] * x[i];
    }
    return row_sum<row_threads>(sum);
  } else {
    GPU_SHARED(float, parts, 32);
    constexpr int warps = row_threads / gpu::lane_width;
    const int mine = gpu::warp() % warps, first = gpu::warp() - mine, units = (dim + norm_unit - 1) / norm_unit;
    float total = 0;
    GPU_UNROLL_BY(1)
    for (int start = 0; start < units; start += warps) {
      Four four[norm_fours];
      GPU_UNROLL
      for (int i = 0; i < norm_fours; ++i) {
        const int column = norm_column(start + mine, i);
        GPU_UNROLL
        for (int j = 0; j < 4; ++j)
          four[i].x[j] = inside && column + j < dim ? static_cast<float>(x[column + j]) : 0.0f;
      }
      const float sum = unit_squares(four);
      gpu::sync();
      if (gpu::lane() == 0) parts[gpu::warp()] = sum;
      gpu::sync();
      for (int w = 0; w < warps && start + w < units; ++w) total += parts[first + w];
    }
    return total;
  }
}

GPU_FN void stage_norm(const Heads& heads, const Turning& turning, const Staged& staged) {
  if (heads.normed) {
    GPU_UNROLL_BY(1)
    for (int i = gpu::thread(); i < turning.dim; i += gpu::threads()) staged.norm[i] = heads.norm[i];
  }
}

// Rows first ... first + slots - 1, as they come.
template <int row_threads>
GPU_FN void stage_rows(const Heads& heads, const Turning& turning, const Staged& staged, int64_t first, int slots) {
  constexpr int at_once = block_threads(row_threads) / row_threads;
  const int start = gpu::thread() / row_threads, member = gpu::thread() % row_threads;
  GPU_UNROLL_BY(1)
  for (int slot = start; slot < slots; slot += at_once) {
    const Row r = heads.row(first + slot);
    if (!r.inside) continue;
    const auto from = heads.from.data + (r.token * heads.from.outer_stride + r.head * heads.from.inner_stride);
    const auto angle = turning.angles.row(r.token);
    const auto to = staged.row(slot), angles = staged.angles(slot);
    GPU_UNROLL_BY(1)
    for (int i = member; i < turning.dim; i += row_threads) to[i] = from[i];
    GPU_UNROLL_BY(1)
    for (int i = member; i < 2 * turning.turns; i += row_threads) angles[i] = angle[i];
  }
}

// Staged rows, normalised and turned: calls store(slot, row, i, number) for each number. A pair is read and stored by
// one thread.
template <int row_threads, class F>
GPU_FN void turn_rows(const Heads& heads, const Turning& turning, const Staged& staged, int64_t first, int slots,
                      const F& store) {
  constexpr int at_once = block_threads(row_threads) / row_threads;
  const int start = gpu::thread() / row_threads, member = gpu::thread() % row_threads;
  GPU_UNROLL_BY(1)
  for (int slot = start; slot < slots; slot += at_once) {
    const Row r = heads.row(first + slot);
    const auto x = staged.row(slot);
    float scale = 1;
    if (heads.normed) {
      scale = norm_scale(row_squares<row_threads>(x, turning.dim, r.inside), turning.dim, turning.epsilon);
    }
    if (!r.inside) continue;
    const auto number = [&](int i) -> float { return heads.normed ? x[i] * scale * staged.norm[i] : x[i]; };
    const auto angle = staged.angles(slot);
    GPU_UNROLL_BY(1)
    for (int i = member; i < turning.turns + turning.passes; i += row_threads) {
      if (i >= turning.turns) {
        store(slot, r, turning.turns + i, number(turning.turns + i));
        continue;
      }
      const int a = turning.neighbours ? 2 * i : i, b = turning.neighbours ? 2 * i + 1 : turning.turns + i;
      const Pair pair = turned(number(a), number(b), angle[i], angle[turning.turns + i]);
      store(slot, r, a, pair.first);
      store(slot, r, b, pair.second);
    }
  }
}

// Blocks of 32 of staged rows become the numbers that a q8_0 cache holds; their scales go to it.
GPU_FN void quantize_rows(const Heads& heads, const Target<int8_t>& to, const Places& places, const Staged& staged,
                          int64_t first, int slots) {
  const int parts = static_cast<int>(to.dim) / 32, lane = gpu::thread() % 32, at_once = gpu::threads() / 32;
  GPU_UNROLL_BY(1)
  for (int start = 0; start < slots * parts; start += at_once) {
    const int which = start + gpu::thread() / 32, slot = which / parts, part = which % parts;
    const Row r = heads.row(first + slot);
    const bool inside = slot < slots && r.inside;
    const auto x = staged.row(inside ? slot : 0) + (part * 32 + lane);
    const InBlock kept = in_block(inside ? static_cast<float>(x[0]) : 0.0f);
    if (!inside) continue;
    x[0] = static_cast<float>(kept.number);
    if (lane == 0) to.scales[to.scale(places.page(r.token), r.head, places.at(r.token), part)] = kept.scale;
  }
  gpu::sync();
}

template <class T>
GPU_FN T cached(float x) {
  if constexpr (std::is_same_v<T, int8_t>)
    return static_cast<int8_t>(x);
  else
    return rounded_to<T>(x);
}

// Neighbouring threads write neighbouring rows. `start`: of this thread's row in the cache.
template <class T>
GPU_FN void write_keys(const Target<T>& to, const Staged& staged, int64_t start, int slots) {
  const auto x = staged.row(gpu::thread() % slots);
  GPU_UNROLL_BY(1)
  for (int i = gpu::thread() / slots; i < staged.dim; i += gpu::threads() / slots)
    to.numbers[start + i * to.number_step] = cached<T>(x[i]);
}

template <class T, int row_threads>
GPU_FN void append_keys(const Heads& k, const Target<T>& to, const Places& places, const Turning& turning,
                        const Staged& staged, int64_t first, int slots) {
  // The page is looked up while the rows come, not after them.
  const Row mine = k.row(first + gpu::thread() % slots);
  const int position = mine.inside ? places.pos[mine.token] : 0, sequence = mine.inside ? places.seq[mine.token] : 0;
  stage_rows<row_threads>(k, turning, staged, first, slots);
  const int64_t page = mine.inside ? places.pages[sequence * places.pages_stride + position / kv_page] : 0;
  gpu::sync();
  turn_rows<row_threads>(k, turning, staged, first, slots,
                         [&](int slot, const Row&, int i, float number) { staged.row(slot)[i] = number; });
  gpu::sync();
  if constexpr (std::is_same_v<T, int8_t>) quantize_rows(k, to, places, staged, first, slots);
  if (mine.inside) write_keys(to, staged, to.number(page, mine.head, position % kv_page, 0), slots);
}

constexpr int value_threads = 64;  // of a row

template <class T>
GPU_FN void write_values(const Target<T>& to, const Places& places, int64_t block, int64_t tokens) {
  if constexpr (std::is_same_v<T, int8_t>) {
    append_blocks(to, places, block, tokens);
  } else {
    const int64_t row = block * (gpu::threads() / value_threads) + gpu::thread() / value_threads;
    if (row >= to.from.rows) return;
    const auto n = static_cast<unsigned>(row), heads = static_cast<unsigned>(to.heads), token = n / heads;
    const int64_t start = to.number(places.page(token), n % heads, places.at(token), 0);
    const auto x = to.from.row(row);
    GPU_UNROLL_BY(1)
    for (int i = gpu::thread() % value_threads; i < to.dim; i += value_threads) to.numbers[start + i] = cached<T>(x[i]);
  }
}

// Blocks of k come first, since they have most to do, then q's, then v's.
template <class T, int row_threads>
GPU_KERNEL void rope_append(Heads q, Rows<float> y, Heads k, Target<T> keys, Target<T> values, Places places,
                            Turning turning, int key_rows, int64_t key_blocks, int64_t query_blocks) {
  GPU_DYNAMIC_SHARED(float, memory);
  constexpr int query_rows = block_threads(row_threads) / row_threads;
  const Staged staged{memory, memory + turning.dim, turning.dim,
                      static_cast<int>(pitch_of(turning.dim, 2 * turning.turns))};
  const int64_t block = gpu::block();
  if (block < key_blocks) {
    stage_norm(k, turning, staged);
    gpu::wait_for_inputs();
    append_keys<T, row_threads>(k, keys, places, turning, staged, block * key_rows, key_rows);
  } else if (block < key_blocks + query_blocks) {
    stage_norm(q, turning, staged);
    gpu::wait_for_inputs();
    const int64_t first = (block - key_blocks) * query_rows;
    stage_rows<row_threads>(q, turning, staged, first, query_rows);
    gpu::sync();
    turn_rows<row_threads>(q, turning, staged, first, query_rows, [&](int, const Row& r, int i, float number) {
      y.data[r.token * y.outer_stride + r.head * y.inner_stride + i] = number;
    });
  } else {
    gpu::wait_for_inputs();
    write_values(values, places, block - key_blocks - query_blocks, k.tokens);
  }
}

Heads heads_of(const View& x, const View* norm, bool by_head) {
  Heads heads;
  heads.from = rows_of<const float>(x);
  heads.normed = norm != nullptr;
  if (norm) heads.norm = pointer<const float>(*norm);
  heads.tokens = static_cast<unsigned>(x.shape[0]), heads.heads = static_cast<unsigned>(x.shape[1]);
  heads.by_head = by_head;
  return heads;
}

int64_t shared_bytes(int64_t dim, int64_t turned, int64_t rows) {
  return (dim + rows * pitch_of(dim, turned)) * static_cast<int64_t>(sizeof(float));
}

template <class T, int row_threads>
void launch_with(const Args& args, Accelerator& device) {
  constexpr int threads = block_threads(row_threads);
  const auto& attr = args.attr<RopeAppendAttr>();
  const View &q = args.in[2], &k = args.in[3], &v = args.in[4];
  const int64_t tokens = k.shape[0], dim = k.last(), key_rows = rows_together(dim, tokens);
  const Heads queries = heads_of(q, attr.q_norm ? &args.in[9] : nullptr, false);
  const Heads keys = heads_of(k, attr.k_norm ? &args.in[attr.q_norm ? 10 : 9] : nullptr, true);
  const Places places{pointer<const int32_t>(args.in[6]), pointer<const int32_t>(args.in[7]),
                      pointer<const int32_t>(args.in[8]), args.in[8].strides[0]};
  const auto turns = static_cast<int>(attr.rope.dims / 2);
  const Turning turning{rows_of<const float>(args.in[5]),  static_cast<int>(dim), turns,
                        static_cast<int>(dim) - 2 * turns, attr.rope.neighbours,  attr.epsilon};
  const int64_t key_blocks = ceil_div(k.rows(), key_rows), query_blocks = ceil_div(q.rows(), threads / row_threads);
  const int64_t value_blocks = std::is_same_v<T, int8_t> ? ceil_div(v.rows() * (v.last() / 32), threads / 32)
                                                         : ceil_div(v.rows(), threads / value_threads);
  gpu::launch_early<rope_append<T, row_threads>, threads>(
      device, {key_blocks + query_blocks + value_blocks}, shared_bytes(dim, attr.rope.dims, key_rows), queries,
      rows_of<float>(args.out[0]), keys, target<T>(k, args.out[1], StateKind::keys),
      target<T>(v, args.out[2], StateKind::values), places, turning, static_cast<int>(key_rows), key_blocks,
      query_blocks);
}

void launch(const Args& args, Accelerator& device, std::byte*) {
  if (args.in[3].shape[0] == 0) return;
  with_cache_type(args.out[1].type, [&](auto number) {
    using T = decltype(number);
    const int row_threads = threads_of(args.in[3].last());
    if (row_threads == 64) return launch_with<T, 64>(args, device);
    row_threads == 256 ? launch_with<T, 256>(args, device) : launch_with<T, 1024>(args, device);
  });
}

Refusal can_run(const Node& node, const Limits& limits) {
  constexpr std::string_view roles[] = {"q", "k", "v"};
  for (size_t i = 0; i < 3; ++i)
    if (Refusal refusal = wants_head_rows(node.inputs[2 + i], roles[i])) return refusal;
  const Tensor& angles = node.inputs[5];
  if (angles.type() != DType::f32 || angles.node->outputs[static_cast<size_t>(angles.output)].strides[1] != 1)
    return {"angles must be f32 in contiguous rows"};
  const Shape &q = node.inputs[2].shape(), &k = node.inputs[3].shape(), &v = node.inputs[4].shape();
  if (q.rows() + k.rows() + v.rows() * ceil_div(v.last(), 32) > limits.grid)
    return {"more rows than a grid has blocks"};
  constexpr int64_t sums = 32 * sizeof(float);
  if (shared_bytes(k.last(), node.attr<RopeAppendAttr>().rope.dims, rows_together(k.last(), k[0])) + sums >
      limits.shared_bytes)
    return {fmt::format("heads of {} don't fit {} bytes of shared memory", k.last(), limits.shared_bytes)};
  return wants_cache(node.inputs[0], node.inputs[1]);
}

}  // namespace

GpuKernel rope_append_gpu() { return {"rope_append", Op::rope_append, can_run, nullptr, launch}; }

}  // namespace consonant::GPU_BUILD
