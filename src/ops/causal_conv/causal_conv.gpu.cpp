// SPDX-License-Identifier: Apache-2.0
// A thread has a channel and some neighbouring tokens, and reads the inputs before them again. For one token it is
// bound by the latency of a launch; for many, by the bytes of x and y.
#include "ops/causal_conv/causal_conv.hpp"
#include "ops/activation_gpu.hpp"
#include "ops/slots_gpu.hpp"

namespace consonant::GPU_BUILD {

namespace {

constexpr int block_threads = 128;
constexpr int64_t tile_tokens = 8;

struct Channel {
  Rows<const float> x;
  Rows<float> y;
  gpu::Ptr<const float> w;  // of this channel
  gpu::Ptr<float> state;    // its first input in slot 0
  int64_t channels = 0, c = 0;
  int kernel = 0;
  float b = 0;

  GPU_FN gpu::Ptr<float> kept(int64_t slot, int64_t j) const { return state + (slot * (kernel - 1) + j) * channels; }

  // Input `back` positions before token t, of which `held` of its sequence are in the step before it.
  GPU_FN float input(const SlotTable& table, int64_t t, int64_t held, int64_t back) const {
    if (back <= held) return x.row(t - back)[c];
    if (back > table.pos[t]) return 0;
    return *kept(table.slots[table.seq[t]], kernel - 1 - back + held);
  }

  GPU_FN void write(const SlotTable& table, int64_t t, int64_t held) const {
    float sum = b;
    for (int k = 0; k < kernel; ++k) sum = gpu::fma(w[k], input(table, t, held, kernel - 1 - k), sum);
    y.row(t)[c] = activated<Activation::silu>(sum);
  }

  // The sequence's last inputs, of `count` tokens that end before `end`; ascending, so that none is lost that is still
  // to be moved.
  GPU_FN void keep(const SlotTable& table, int64_t end, int64_t count) const {
    for (int64_t j = 0; j < kernel - 1; ++j)
      *kept(table.slots[table.seq[end - 1]], j) = input(table, end - 1, count - 1, kernel - 2 - j);
  }
};

// Tokens of the sequence in the step before token t, as far as a convolution looks back.
GPU_FN int64_t held_before(const SlotTable& table, int64_t t, int64_t kernel) {
  int64_t held = 0;
  while (held < kernel - 1 && held < t && table.seq[t - held - 1] == table.seq[t]) ++held;
  return held;
}

// What a slot holds is read by the first tokens of a sequence: the tile in which it begins has all of them, and then
// replaces it.
GPU_KERNEL void causal_conv(Rows<const float> x, gpu::Ptr<const float> w, gpu::Ptr<const float> b, int kernel,
                            gpu::Ptr<float> state, SlotTable table, Rows<float> y, int64_t channel_blocks) {
  const int64_t c = gpu::block() % channel_blocks * gpu::threads() + gpu::thread();
  const int64_t first = gpu::block() / channel_blocks * tile_tokens, last = first + tile_tokens;
  if (c >= x.cols) return;
  const Channel channel{x, y, w + c * kernel, state + c, x.cols, c, kernel, b[c]};
  const auto begins_here = [&](int64_t t, int64_t held) {
    return held < kernel - 1 && t - held >= first && t - held < last;
  };
  for (int64_t t = first; t < last + kernel - 2 && t < table.tokens; ++t) {
    const int64_t held = held_before(table, t, kernel);
    if (begins_here(t, held) || (t < last && held == kernel - 1)) channel.write(table, t, held);
  }
  for (int64_t t = first; t < last && t < table.tokens; ++t) {
    if (t > 0 && table.seq[t - 1] == table.seq[t]) continue;
    const int64_t end = table.end_of_run(t);
    channel.keep(table, end, end - t);
  }
}

int64_t channel_blocks(int64_t channels) { return ceil_div(channels, block_threads); }

void launch(const Args& args, Accelerator& device, std::byte*) {
  const View& x = args.in[1];
  if (x.shape.count() == 0) return;
  const int64_t blocks = channel_blocks(x.last());
  gpu::launch<causal_conv, block_threads>(
      device, {blocks * ceil_div(x.rows(), tile_tokens)}, 0, rows_of<const float>(x), pointer<const float>(args.in[2]),
      pointer<const float>(args.in[3]), static_cast<int>(args.attr<CausalConvAttr>().kernel),
      pointer<float>(args.out[1]), slot_table(args, 4), rows_of<float>(args.out[0]), blocks);
}

Refusal can_run(const Node& node, const Limits& limits) {
  const Shape& x = node.inputs[1].shape();
  if (channel_blocks(x.last()) * ceil_div(x.rows(), tile_tokens) > limits.grid)
    return {"more tiles than a grid has blocks"};
  return wants_float_inputs(node, 4);
}

}  // namespace

GpuKernel causal_conv_gpu() { return {"causal_conv", Op::causal_conv, can_run, nullptr, launch}; }

}  // namespace consonant::GPU_BUILD
