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

// A row's scratch memory: its adjusted logits, and two lists of tokens by turns.
struct Workspace {
  gpu::Ptr<float> values;
  gpu::Ptr<int32_t> lists;
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

GPU_FN Scan scan_list(const Board& board, const TokenList& list) {
  Scan scan;
  for_tokens(list, [&](int64_t, int32_t token, float value) {
    if (token >= 0) scan.see(value, token);
  });
  return over_block(board, scan);
}

// Copies the logits and adjusts those of the slots' tokens; whether there were any.
GPU_FN bool adjust(const Board& board, const Inputs& in, int64_t row, const TokenList& raw, gpu::Ptr<float> values) {
  for_tokens(raw, [&](int64_t, int32_t token, float value) {
    if (token >= 0) values[token] = value;
  });
  gpu::sync();
  const auto numbers = in.numbers.row(row);
  const auto bias = in.bias.row(row);
  uint64_t changed = 0;
  for (int64_t s = gpu::thread(); s < in.bias.cols; s += gpu::threads()) {
    const auto slot = in.adjusted.row(row * in.bias.cols + s);
    const int32_t token = slot[SampleAdjustment::token];
    if (token < 0 || token >= raw.count) continue;
    values[token] = adjusted_logit(raw.values[token], bias[s], slot[SampleAdjustment::times],
                                   numbers[SampleNumbers::repeat_penalty], numbers[SampleNumbers::frequency_penalty],
                                   numbers[SampleNumbers::presence_penalty]);
    ++changed;
  }
  return block_total(board, changed) > 0;
}

// The stages between the greatest logit and the draw. A list that is kept in one half of `lists` is cut into the other.
struct Filter {
  Board board;
  Workspace work;
  int64_t n;
  float top;  // the greatest logit
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
      const float greatest = top;
      const auto bin = [=](float value) {
        const float below = rounded_add(greatest, -value) * 64;  // the greatest share that a bin can have is e^(-1/64)
        return below < bin_count - 1 ? static_cast<int>(below) : bin_count - 1;
      };
      const auto last = static_cast<int>(cross(board, list, bin, mass, target).at);
      keep_if([&](int64_t, float value) { return bin(value) <= last; });
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
    if (top_p < 1) cut_by_logit(mass, part_of(top_p, total_of(board, list, mass)));
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
GPU_KERNEL void sample(Inputs in, gpu::Ptr<float> values, gpu::Ptr<int32_t> lists, gpu::Ptr<int32_t> tokens,
                       gpu::Ptr<float> log_probabilities) {
  GPU_SHARED(uint64_t, bins, bin_count);
  GPU_SHARED(uint64_t, parts, 32);
  GPU_SHARED(uint64_t, found, 2);
  const Board board{bins, parts, found};
  const int64_t row = gpu::block(), n = in.logits.cols;
  const Workspace work{values + row * n, lists + 2 * row * n};
  const auto numbers = in.numbers.row(row);
  const auto integers = in.integers.row(row);
  const TokenList raw{in.logits.row(row), nullptr, n, true}, adjusted{work.values, nullptr, n, true};
  const bool changed = adjust(board, in, row, raw, work.values);
  const Scan first = scan_list(board, raw), scan = changed ? scan_list(board, adjusted) : first;
  int32_t token = index_of(scan.best);
  float log_probability = NAN;
  const float top = work.values[token];
  if (scan.broken || top == -INFINITY) {
    token = scan.broken ? broken_logits : all_excluded;
  } else {
    if (numbers[SampleNumbers::temperature] > 0) {
      Filter filter{board, work, n, top, adjusted};
      filter.run(numbers, integers[SampleIntegers::top_k]);
      const uint64_t number = uint64_t{static_cast<uint32_t>(integers[SampleIntegers::number_high])} << 32 |
                              static_cast<uint32_t>(integers[SampleIntegers::number_low]);
      token = draw(board, filter.list, numbers[SampleNumbers::temperature], number);
    }
    const float greatest = raw.values[index_of(first.best)];
    const uint64_t sum = total_of(board, raw, [=](float value) { return share_of(weight_of(value, greatest)); });
    log_probability = log_share(raw.values[token], greatest, sum);
  }
  if (gpu::thread() > 0) return;
  tokens[row] = token;
  log_probabilities[row] = log_probability;
}

constexpr int64_t scratch_per_token = sizeof(float) + 2 * sizeof(int32_t);

Refusal can_run(const Node& node, const Limits& limits) {
  const Refusal refusal = wants_gpu_shapes(node, limits);
  return refusal ? refusal
                 : wants_rows_of(node, {DType::f32, DType::f32, DType::i32, DType::i32, DType::f32},
                                 {DType::i32, DType::f32});
}

int64_t scratch_bytes(const Node& node, const Limits&) { return node.inputs[0].shape().count() * scratch_per_token; }

// With a vocabulary of 150,000 each pass over all of it takes one multiprocessor 6 us (it reads 64 bytes a clock from
// the cache); top-k, top-p and greedy take five to seven, and what they leave is a few hundred tokens. The typical
// stage alone works on a whole vocabulary: with no top-k before it it takes ten more.
void launch(const Args& args, Accelerator& device, std::byte* scratch) {
  const View& logits = args.in[0];
  const Inputs in{rows_of<const float>(logits), rows_of<const float>(args.in[1]), rows_of<const int32_t>(args.in[2]),
                  rows_of<const int32_t>(args.in[3]), rows_of<const float>(args.in[4])};
  const int64_t count = logits.shape.count();
  const auto values = gpu::pointer<float>(scratch, count * 4);
  const auto lists = gpu::pointer<int32_t>(scratch + count * 4, count * 8);
  const auto tokens = pointer<int32_t>(args.out[0]);
  const auto log_probabilities = pointer<float>(args.out[1]);
  if (logits.last() <= 8192)
    gpu::launch<sample, 256>(device, {logits.rows()}, 0, in, values, lists, tokens, log_probabilities);
  else
    gpu::launch<sample, 1024>(device, {logits.rows()}, 0, in, values, lists, tokens, log_probabilities);
}

}  // namespace

GpuKernel sample_gpu() { return {"sample", Op::sample, can_run, scratch_bytes, launch}; }

}  // namespace consonant::GPU_BUILD
