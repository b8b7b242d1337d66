// SPDX-License-Identifier: Apache-2.0
#include "ops/sample/sample.hpp"
#include "ops/order.hpp"
#include "ops/sample/gpu_list.hpp"
#include "ops/sample/shares.hpp"
#include "ops/work.hpp"

namespace consonant::GPU_BUILD {

namespace {

struct Inputs {
  Rows<const float> logits, numbers;
  Rows<const int32_t> integers, adjusted;
  Rows<const float> bias;
};

// The vocabulary is cut into chunks, a block each, before one block a row takes what they found.
constexpr int64_t chunk_tokens = 2048;
constexpr int chunk_threads = 256, each_tokens = chunk_tokens / chunk_threads;  // of a thread

// What is known of a chunk, in words.
struct ChunkWords {
  enum : int { raw_best, best, raw_broken, broken, raw_mass, mass, count };
};

// A row's scratch memory: its adjusted logits, two lists of tokens by turns, its chunks' words, and their bins.
struct Workspace {
  gpu::Ptr<float> values;
  gpu::Ptr<int32_t> lists;
  gpu::Ptr<uint64_t> chunks, bins;
};

struct Scratch {
  Workspace all;
  int64_t n, chunks;

  GPU_FN Workspace of_row(int64_t row) const {
    return {all.values + row * n, all.lists + 2 * row * n, all.chunks + row * chunks * ChunkWords::count,
            all.bins + row * chunks * bin_count};
  }
};

GPU_FN float weight_of(float logit, float top) { return exp_of_negative(rounded_add(logit, -top)); }

// What a scan of the logits finds.
struct Scan {
  uint64_t best = last_key;  // of the greatest, the lower token first
  bool broken = false;

  GPU_FN void see(float x, int64_t token) {
    const uint64_t key = sort_key(gpu::to_bits(x), token, true);
    best = key < best ? key : best;
    broken = broken || !(x < INFINITY);
  }
};

GPU_FN Scan over_block(const Board& board, Scan scan) {
  for (int mask = gpu::lane_width / 2; mask > 0; mask /= 2) {
    const uint64_t other = shfl64(scan.best, gpu::lane() ^ mask);
    scan.best = other < scan.best ? other : scan.best;
  }
  const bool broken = block_total(board, scan.broken) > 0;
  gpu::sync();
  if (gpu::lane() == 0) board.parts[gpu::warp()] = scan.best;
  gpu::sync();
  for (int w = 0; w < gpu::warps(); ++w)
    scan.best = board.parts[w] < scan.best ? static_cast<uint64_t>(board.parts[w]) : scan.best;
  scan.broken = broken;
  return scan;
}

// What the chunks found together.
struct Found {
  Scan raw, adjusted;
  uint64_t raw_mass = 0, mass = 0;
};

GPU_FN Found gather(const Board& board, gpu::Ptr<const uint64_t> chunks, int64_t count, bool masses) {
  Found found;
  uint64_t raw_mass = 0, mass = 0;
  for (int64_t c = gpu::thread(); c < count; c += gpu::threads()) {
    const auto words = chunks + c * ChunkWords::count;
    const auto take = [&](Scan& scan, int best, int broken) {
      scan.best = words[best] < scan.best ? static_cast<uint64_t>(words[best]) : scan.best;
      scan.broken = scan.broken || words[broken] != 0;
    };
    take(found.raw, ChunkWords::raw_best, ChunkWords::raw_broken);
    take(found.adjusted, ChunkWords::best, ChunkWords::broken);
    if (masses) raw_mass += words[ChunkWords::raw_mass], mass += words[ChunkWords::mass];
  }
  found.raw = over_block(board, found.raw), found.adjusted = over_block(board, found.adjusted);
  if (masses) found.raw_mass = block_total(board, raw_mass), found.mass = block_total(board, mass);
  return found;
}

// Copies a chunk's logits, adjusts those of the slots' tokens, and finds the greatest.
GPU_KERNEL void scan_chunks(Inputs in, Scratch scratch) {
  GPU_SHARED(uint64_t, parts, 32);
  const Board board{parts, parts, parts};
  const int64_t row = gpu::block(), first = gpu::block_y() * chunk_tokens,
                end = first + chunk_tokens < scratch.n ? first + chunk_tokens : scratch.n;
  const Workspace work = scratch.of_row(row);
  const auto logits = in.logits.row(row);
  const auto numbers = in.numbers.row(row), bias = in.bias.row(row);
  Scan raw, adjusted;
  const float temperature = numbers[SampleNumbers::first_temperature];
  float x[each_tokens];  // all asked for before the first is waited for
  const auto token_of = [=](int i) { return first + gpu::thread() + i * chunk_threads; };
  GPU_UNROLL
  for (int i = 0; i < each_tokens; ++i) x[i] = token_of(i) < end ? logits[token_of(i)] : -INFINITY;
  GPU_UNROLL
  for (int i = 0; i < each_tokens; ++i) {
    if (token_of(i) >= end) break;
    work.values[token_of(i)] = x[i] / temperature;
    raw.see(x[i], token_of(i));
  }
  gpu::sync();
  for (int64_t s = gpu::thread(); s < in.bias.cols; s += gpu::threads()) {
    const auto slot = in.adjusted.row(row * in.bias.cols + s);
    const int32_t token = slot[SampleAdjustment::token];
    if (token < first || token >= end) continue;
    const float adjusted =
        adjusted_logit(logits[token], bias[s], slot[SampleAdjustment::times], numbers[SampleNumbers::repeat_penalty],
                       numbers[SampleNumbers::frequency_penalty], numbers[SampleNumbers::presence_penalty]);
    work.values[token] = adjusted / temperature;
  }
  gpu::sync();
  GPU_UNROLL
  for (int i = 0; i < each_tokens; ++i)
    if (token_of(i) < end) adjusted.see(work.values[token_of(i)], token_of(i));
  raw = over_block(board, raw), adjusted = over_block(board, adjusted);
  if (gpu::thread() > 0) return;
  const auto words = work.chunks + gpu::block_y() * ChunkWords::count;
  words[ChunkWords::raw_best] = raw.best, words[ChunkWords::raw_broken] = raw.broken;
  words[ChunkWords::best] = adjusted.best, words[ChunkWords::broken] = adjusted.broken;
}

// By how much a logit lies below the greatest, in steps of which the greatest share that one can have is e^(-1/64).
GPU_FN int bin_of(float value, float top) {
  const float below = rounded_add(top, -value) * 64;
  return below < bin_count - 1 ? static_cast<int>(below) : bin_count - 1;
}

// What the first cut of a whole vocabulary sums in its bins.
enum class Cut : uint8_t { none, tokens, shares };
GPU_FN Cut first_cut(gpu::Ptr<const float> numbers, int32_t top_k, int64_t n) {
  if (!(numbers[SampleNumbers::temperature] > 0)) return Cut::none;
  if (top_k > 0 && top_k < n) return Cut::tokens;
  return numbers[SampleNumbers::top_p] < 1 && !(numbers[SampleNumbers::typical] < 1) ? Cut::shares : Cut::none;
}

// Sums a chunk's shares, and bins them.
GPU_KERNEL void share_chunks(Inputs in, Scratch scratch) {
  GPU_SHARED(uint64_t, bins, bin_count);
  GPU_SHARED(uint64_t, parts, 32);
  const Board board{bins, parts, parts};
  const int64_t row = gpu::block(), first = gpu::block_y() * chunk_tokens,
                end = first + chunk_tokens < scratch.n ? first + chunk_tokens : scratch.n;
  const Workspace work = scratch.of_row(row);
  const Found found = gather(board, work.chunks, scratch.chunks, false);
  const auto logits = in.logits.row(row);
  const float raw_top = logits[index_of(found.raw.best)], top = work.values[index_of(found.adjusted.best)];
  const bool usable = !found.adjusted.broken && top != -INFINITY;
  const Cut cut = first_cut(in.numbers.row(row), in.integers.row(row)[SampleIntegers::top_k], scratch.n);
  for (int i = gpu::thread(); i < bin_count; i += gpu::threads()) bins[i] = 0;
  gpu::sync();
  uint64_t raw_mass = 0, mass = 0;
  float x[each_tokens], values[each_tokens];
  const auto token_of = [=](int i) { return first + gpu::thread() + i * chunk_threads; };
  GPU_UNROLL
  for (int i = 0; i < each_tokens; ++i) {
    const bool there = token_of(i) < end;
    x[i] = there ? logits[token_of(i)] : -INFINITY, values[i] = there ? work.values[token_of(i)] : -INFINITY;
  }
  GPU_UNROLL
  for (int i = 0; i < each_tokens; ++i) {
    if (!usable || token_of(i) >= end) break;
    raw_mass += share_of(weight_of(x[i], raw_top));
    if (cut == Cut::none) continue;
    const uint64_t share = share_of(weight_of(values[i], top)), m = cut == Cut::tokens ? 1 : share;
    mass += share;
    if (m > 0) gpu::atomic_add(bins + bin_of(values[i], top), m);
  }
  raw_mass = block_total(board, raw_mass), mass = block_total(board, mass);
  if (cut != Cut::none)
    for (int i = gpu::thread(); i < bin_count; i += gpu::threads()) work.bins[gpu::block_y() * bin_count + i] = bins[i];
  if (gpu::thread() > 0) return;
  const auto words = work.chunks + gpu::block_y() * ChunkWords::count;
  words[ChunkWords::raw_mass] = raw_mass, words[ChunkWords::mass] = mass;
}

// The stages between the greatest logit and the draw. A list that is kept in one half of `lists` is cut into the other.
struct Filter {
  Board board;
  Workspace work;
  int64_t n, chunks;
  float top;      // the greatest logit
  uint64_t mass;  // of all tokens, if the first cut is by shares
  TokenList list;
  int half = 0;

  template <class Stays>
  GPU_FN void keep_if(const Stays& stays) {
    list = keep(board, list, work.lists + half * n, stays);
    half = 1 - half;
  }

  // Keeps the tokens that rank first by key and then by token and whose masses reach `target`.
  template <class Key, class Mass>
  GPU_FN void cut(const Key& key, const Mass& mass, uint64_t target) {
    const Crossing edge = cross_key(board, list, key, mass, target);
    const auto at_edge = [&](float value) { return key(value) == edge.at ? mass(value) : uint64_t{0}; };
    const Position last = locate(board, list, at_edge, target - edge.before - 1);
    keep_if([&](int64_t i, float value) {
      const uint64_t k = key(value);
      return k < edge.at || (k == edge.at && i <= last.at);
    });
  }

  // The same, ranked by logit. Of a whole vocabulary those far from the greatest are dropped first.
  template <class Mass>
  GPU_FN void cut_by_logit(const Mass& mass, uint64_t target) {
    if (list.all) {
      gpu::sync();
      for (int i = gpu::thread(); i < bin_count; i += gpu::threads()) {
        uint64_t sum = 0;
        GPU_UNROLL_BY(8)
        for (int64_t c = 0; c < chunks; ++c) sum += work.bins[c * bin_count + i];
        board.bins[i] = sum;
      }
      gpu::sync();
      const auto last = static_cast<int>(cross_bins(board, target).at);
      const float greatest = top;
      keep_if([=](int64_t, float value) { return bin_of(value, greatest) <= last; });
    }
    cut([](float value) { return uint64_t{place_of(gpu::to_bits(value), true)}; }, mass, target);
  }

  GPU_FN void typical(float share) {
    const float greatest = top;
    const auto mass = [=](float value) { return share_of(weight_of(value, greatest)); };
    const uint64_t all = total_of(board, list, mass);
    const uint64_t moment = total_of(
        board, list, [=](float value) { return moment_of(weight_of(value, greatest), rounded_add(greatest, -value)); });
    const double mean = mean_of(moment, all);
    const auto key = [=](float value) {
      return uint64_t{place_of(gpu::to_bits(gap_of(mean, rounded_add(greatest, -value))), false)};
    };
    cut(key, mass, part_of(share, all));
  }

  GPU_FN void run(gpu::Ptr<const float> numbers, int32_t top_k) {
    const float greatest = top, top_p = numbers[SampleNumbers::top_p], min_p = numbers[SampleNumbers::min_p];
    const auto mass = [=](float value) { return share_of(weight_of(value, greatest)); };
    if (top_k > 0 && top_k < n) cut_by_logit([](float) { return uint64_t{1}; }, static_cast<uint64_t>(top_k));
    if (numbers[SampleNumbers::typical] < 1) typical(numbers[SampleNumbers::typical]);
    if (top_p < 1) cut_by_logit(mass, part_of(top_p, list.all ? this->mass : total_of(board, list, mass)));
    if (min_p > 0) {
      const float best = greatest_of(list, [=](float value) { return weight_of(value, greatest); });
      const float least = rounded_mul(min_p, best);
      keep_if([=](int64_t, float value) { return weight_of(value, greatest) >= least; });
    }
  }
};

GPU_FN int32_t draw(const Board& board, const TokenList& list, float temperature, uint64_t number) {
  const float greatest = greatest_of(list, [](float value) { return value; });
  const auto mass = [=](float value) { return share_of(exp_of_negative(rounded_add(value, -greatest) / temperature)); };
  return locate(board, list, mass, place_in(total_of(board, list, mass), number)).token;
}

// A block a row.
GPU_KERNEL void sample(Inputs in, Scratch scratch, gpu::Ptr<int32_t> tokens, gpu::Ptr<float> log_probabilities) {
  GPU_SHARED(uint64_t, bins, bin_count);
  GPU_SHARED(uint64_t, parts, 32);
  GPU_SHARED(uint64_t, words, 2);
  const Board board{bins, parts, words};
  const int64_t row = gpu::block(), n = scratch.n;
  const Workspace work = scratch.of_row(row);
  const auto numbers = in.numbers.row(row);
  const auto integers = in.integers.row(row);
  const Found found = gather(board, work.chunks, scratch.chunks, true);
  const auto logits = in.logits.row(row);
  int32_t token = index_of(found.adjusted.best);
  float log_probability = NAN;
  const float top = work.values[token];
  if (found.adjusted.broken || top == -INFINITY) {
    token = found.adjusted.broken ? broken_logits : all_excluded;
  } else {
    if (numbers[SampleNumbers::temperature] > 0) {
      Filter filter{board, work, n, scratch.chunks, top, found.mass, {work.values, nullptr, n, true}};
      filter.run(numbers, integers[SampleIntegers::top_k]);
      const uint64_t number = uint64_t{static_cast<uint32_t>(integers[SampleIntegers::number_high])} << 32 |
                              static_cast<uint32_t>(integers[SampleIntegers::number_low]);
      token = draw(board, filter.list, numbers[SampleNumbers::temperature], number);
    }
    log_probability = log_share(logits[token], logits[index_of(found.raw.best)], found.raw_mass);
  }
  if (gpu::thread() > 0) return;
  tokens[row] = token;
  log_probabilities[row] = log_probability;
}

// Where the parts of the scratch memory for `rows` rows begin.
struct Room {
  int64_t lists, chunks, bins, end;

  Room(int64_t rows, int64_t n) {
    lists = rows * n * static_cast<int64_t>(sizeof(float));
    chunks = round_up(lists + 2 * rows * n * static_cast<int64_t>(sizeof(int32_t)), 16);
    const int64_t all = rows * ceil_div(n, chunk_tokens);
    bins = chunks + all * ChunkWords::count * static_cast<int64_t>(sizeof(uint64_t));
    end = bins + all * bin_count * static_cast<int64_t>(sizeof(uint64_t));
  }
};

Refusal can_run(const Node& node, const Limits& limits) {
  const Refusal refusal = wants_gpu_shapes(node, limits);
  return refusal ? refusal
                 : wants_rows_of(node, {DType::f32, DType::f32, DType::i32, DType::i32, DType::f32},
                                 {DType::i32, DType::f32});
}

int64_t scratch_bytes(const Node& node, const Limits&) {
  const Shape& logits = node.inputs[0].shape();
  return Room(logits.rows(), logits.last()).end;
}

// Two passes over the vocabulary are spread over the processors. What is left for a row's block is to look at the
// chunks' results, and, unless it is greedy, to copy the tokens near the greatest: twice 6 us for a vocabulary of
// 150,000 (it reads 64 bytes a clock from the cache); top-k and top-p leave a few hundred. The typical stage alone
// works on a whole vocabulary: with no top-k before it it takes ten more.
void launch(const Args& args, Accelerator& device, std::byte* scratch) {
  const View& logits = args.in[0];
  const int64_t rows = logits.rows(), n = logits.last(), chunks = ceil_div(n, chunk_tokens);
  if (rows == 0) return;
  const Inputs in{rows_of<const float>(logits), rows_of<const float>(args.in[1]), rows_of<const int32_t>(args.in[2]),
                  rows_of<const int32_t>(args.in[3]), rows_of<const float>(args.in[4])};
  const Room room(rows, n);
  const Scratch work{
      {gpu::pointer<float>(scratch, room.lists), gpu::pointer<int32_t>(scratch + room.lists, room.chunks - room.lists),
       gpu::pointer<uint64_t>(scratch + room.chunks, room.bins - room.chunks),
       gpu::pointer<uint64_t>(scratch + room.bins, room.end - room.bins)},
      n,
      chunks};
  const auto tokens = pointer<int32_t>(args.out[0]);
  const auto log_probabilities = pointer<float>(args.out[1]);
  gpu::launch<scan_chunks, chunk_threads>(device, {rows, chunks}, 0, in, work);
  gpu::launch<share_chunks, chunk_threads>(device, {rows, chunks}, 0, in, work);
  if (n <= 8192)
    gpu::launch<sample, 256>(device, {rows}, 0, in, work, tokens, log_probabilities);
  else
    gpu::launch<sample, 1024>(device, {rows}, 0, in, work, tokens, log_probabilities);
}

}  // namespace

GpuKernel sample_gpu() { return {"sample", Op::sample, can_run, scratch_bytes, launch}; }

}  // namespace consonant::GPU_BUILD
