// SPDX-License-Identifier: Apache-2.0
// A block has 32 elements of a head of a sequence, and their states in registers: thread t has element t % 32 and one
// of eight parts of the states. It takes the sequence's tokens one after another, some of them at a time from shared
// memory, so a token's numbers don't depend on how many come with it. For one token it is bound by the bytes of the
// states, read and written once; for many, by arithmetic: three operations a state and token.
#include "ops/slots_gpu.hpp"
#include "ops/ssm_scan/ssm_scan_node.hpp"

namespace consonant::GPU_BUILD {

namespace {

constexpr int tile_dims = 32, parts = 8, block_threads = tile_dims * parts;

struct Scan {
  Rows<const float> x, dt, b, c;
  gpu::Ptr<const float> dt_bias, a, d;
  gpu::Ptr<float> state;
  Rows<float> y;
  SlotTable table;
  int64_t heads = 0, groups = 0, states = 0, dim = 0;
};

GPU_FN float softplus(float x) { return (x > 0 ? x : 0) + gpu::log1p(gpu::exp(-gpu::abs(x))); }

// The tokens of a sequence: the first, and behind the last; none: two zeros.
GPU_FN void find_tokens(const SlotTable& table, int64_t sequence, int64_t& first, int64_t& last) {
  GPU_SHARED(int, found, 2);
  if (gpu::thread() < 2) found[gpu::thread()] = 0;
  gpu::sync();
  for (int64_t t = gpu::thread(); t < table.tokens; t += gpu::threads()) {
    if (table.seq[t] != sequence) continue;
    if (t == 0 || table.seq[t - 1] != sequence) found[0] = static_cast<int>(t);
    if (t + 1 == table.tokens || table.seq[t + 1] != sequence) found[1] = static_cast<int>(t + 1);
  }
  gpu::sync();
  first = found[0], last = found[1];
}

// `each`: states of a thread.
template <int each>
GPU_KERNEL void scan(Scan s) {
  constexpr int tile = each > 16 ? 8 : 16, width = parts * each;  // tokens at a time; states, padded with zeros
  GPU_SHARED(float, bs, tile* width);
  GPU_SHARED(float, cs, tile* width);
  GPU_SHARED(float, xs, tile* tile_dims);
  GPU_SHARED(float, steps, tile);
  GPU_SHARED(float, decays, tile);
  GPU_SHARED(float, sums, tile* block_threads);
  const int64_t dim_tiles = ceil_div(s.dim, tile_dims), head = gpu::block() / dim_tiles % s.heads;
  const int64_t sequence = gpu::block() / dim_tiles / s.heads, group = head / (s.heads / s.groups);
  int64_t first, last;
  find_tokens(s.table, sequence, first, last);
  if (first == last) return;

  const int element = gpu::thread() % tile_dims, part = gpu::thread() / tile_dims;
  const int64_t base = gpu::block() % dim_tiles * tile_dims, i = base + element;
  const auto states = s.state + ((s.table.slots[sequence] * s.heads + head) * s.states * s.dim + i);
  const bool inside = i < s.dim, begins = s.table.pos[first] == 0;
  float h[each];
  GPU_UNROLL
  for (int j = 0; j < each; ++j) {
    const int64_t n = part * each + j;
    h[j] = inside && n < s.states && !begins ? static_cast<float>(states[n * s.dim]) : 0.0f;
  }
  for (int64_t at = first; at < last; at += tile) {
    const int count = static_cast<int>(last - at < tile ? last - at : tile);
    for (int k = gpu::thread(); k < count * width; k += gpu::threads()) {
      const int64_t row = (at + k / width) * s.groups + group, n = k % width;
      bs[k] = n < s.states ? static_cast<float>(s.b.row(row)[n]) : 0.0f;
      cs[k] = n < s.states ? static_cast<float>(s.c.row(row)[n]) : 0.0f;
    }
    for (int k = gpu::thread(); k < count * tile_dims; k += gpu::threads()) {
      const int64_t n = base + k % tile_dims;
      xs[k] = n < s.dim ? static_cast<float>(s.x.row((at + k / tile_dims) * s.heads + head)[n]) : 0.0f;
    }
    for (int k = gpu::thread(); k < count; k += gpu::threads()) {
      const float step = softplus(s.dt.row(at + k)[head] + s.dt_bias[head]);
      steps[k] = step;
      decays[k] = gpu::exp(step * s.a[head]);
    }
    gpu::sync();
    for (int t = 0; t < count; ++t) {
      const float decay = decays[t], x = steps[t] * xs[t * tile_dims + element];
      float sum = 0;
      GPU_UNROLL
      for (int j = 0; j < each; ++j) {
        const int n = t * width + part * each + j;
        h[j] = gpu::fma(decay, h[j], bs[n] * x);
        sum = gpu::fma(cs[n], h[j], sum);
      }
      sums[t * block_threads + gpu::thread()] = sum;
    }
    gpu::sync();
    for (int k = gpu::thread(); k < count * tile_dims; k += gpu::threads()) {
      const int t = k / tile_dims, n = k % tile_dims;
      float sum = 0;
      for (int p = 0; p < parts; ++p) sum += sums[t * block_threads + p * tile_dims + n];
      if (base + n < s.dim) s.y.row((at + t) * s.heads + head)[base + n] = gpu::fma(s.d[head], xs[k], sum);
    }
    gpu::sync();  // before the next tokens replace these
  }
  GPU_UNROLL
  for (int j = 0; j < each; ++j) {
    const int64_t n = part * each + j;
    if (inside && n < s.states) states[n * s.dim] = h[j];
  }
}

template <int each>
void launch_with(const Scan& scan_args, Accelerator& device) {
  const int64_t blocks = scan_args.table.sequences * scan_args.heads * ceil_div(scan_args.dim, tile_dims);
  gpu::launch<scan<each>, block_threads>(device, {blocks}, 0, scan_args);
}

void launch(const Args& args, Accelerator& device, std::byte*) {
  const SsmArgs named(args);
  if (named.y.shape.count() == 0) return;
  Scan s;
  s.x = rows_of<const float>(named.x), s.dt = rows_of<const float>(named.dt);
  s.b = rows_of<const float>(named.b), s.c = rows_of<const float>(named.c);
  s.dt_bias = pointer<const float>(args.in[5]), s.a = pointer<const float>(args.in[6]);
  s.d = pointer<const float>(args.in[7]);
  s.state = pointer<float>(named.state), s.y = rows_of<float>(named.y), s.table = slot_table(args, 8);
  s.heads = named.heads(), s.groups = named.b.shape[1], s.states = named.states(), s.dim = named.dim();
  if (s.states <= parts) return launch_with<1>(s, device);
  if (s.states <= 2 * parts) return launch_with<2>(s, device);
  if (s.states <= 4 * parts) return launch_with<4>(s, device);
  if (s.states <= 8 * parts) return launch_with<8>(s, device);
  if (s.states <= 16 * parts) return launch_with<16>(s, device);
  static_assert(most_states <= 32 * parts);
  launch_with<32>(s, device);
}

Refusal can_run(const Node& node, const Limits& limits) {
  const Shape& state = node.inputs[0].shape();
  if (node.inputs[10].shape()[0] * state[1] * ceil_div(state[3], tile_dims) > limits.grid)
    return {"more heads than a grid has blocks"};
  return ssm_scan_can_run(node);
}

}  // namespace

GpuKernel ssm_scan_gpu() { return {"ssm_scan", Op::ssm_scan, can_run, nullptr, launch}; }

}  // namespace consonant::GPU_BUILD
