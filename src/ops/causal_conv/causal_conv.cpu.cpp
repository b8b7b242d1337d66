// SPDX-License-Identifier: Apache-2.0
// A chunk has some of the channels, for all tokens: it alone reads and writes their state. Every output is
//   acc = b[c], then acc += w[c, k] input[k] for k ascending
// wherever its inputs come from, so cutting a sequence into steps changes no bit.
#include <algorithm>

#include "ops/activation.hpp"
#include "ops/causal_conv/causal_conv.hpp"
#include "ops/slots.hpp"

namespace consonant {

namespace {

constexpr int64_t chunk_channels = 128;

// Scratch: the chunk's taps [kernel, channel], and the inputs before the step [kernel - 1, channel].
struct Scratch {
  int64_t kernel;
  float *taps, *before;

  explicit Scratch(const Args& args, std::byte* scratch = nullptr)
      : kernel(args.attr<CausalConvAttr>().kernel),
        taps(reinterpret_cast<float*>(scratch)),
        before(taps + kernel * chunk_channels) {}
  int64_t bytes() const { return (2 * kernel - 1) * chunk_channels * static_cast<int64_t>(sizeof(float)); }
};

Work work(const Args& args) { return {ceil_div(args.out[0].last(), chunk_channels), Scratch(args).bytes()}; }

void run_sequence(const Args& args, const SequenceRun& s, const Scratch& scratch, int64_t first, int64_t n) {
  const View &x = args.in[1], &y = args.out[0], &state = args.out[1];
  const float* b = args.in[3].as<float>() + first;
  const int64_t held = scratch.kernel - 1;
  const auto slot = [&](int64_t j) { return state.row<float>(s.slot * held + j) + first; };
  for (int64_t j = 0; j < held; ++j) {
    float* to = scratch.before + j * chunk_channels;
    if (s.position - held + j < 0)
      std::fill_n(to, n, 0.0f);
    else
      std::copy_n(slot(j), n, to);
  }
  // Input number i, counted from the first one before the step.
  const auto input = [&](int64_t i) -> const float* {
    return i < held ? scratch.before + i * chunk_channels : x.row<float>(s.first + i - held) + first;
  };
  for (int64_t t = 0; t < s.count(); ++t) {
    float* to = y.row<float>(s.first + t) + first;
    std::copy_n(b, n, to);
    for (int64_t k = 0; k <= held; ++k) {
      const float *from = input(t + k), *tap = scratch.taps + k * chunk_channels;
      for (int64_t i = 0; i < n; ++i) to[i] += tap[i] * from[i];
    }
    activate(Activation::silu, to, nullptr, to, n);
  }
  for (int64_t j = 0; j < held; ++j) std::copy_n(input(s.count() + j), n, slot(j));
}

void run(const Args& args, int64_t chunk, std::byte* memory) {
  const Scratch scratch(args, memory);
  const int64_t first = chunk * chunk_channels, n = std::min(args.out[0].last() - first, chunk_channels);
  const float* w = args.in[2].as<float>() + first * scratch.kernel;
  for (int64_t k = 0; k < scratch.kernel; ++k)
    for (int64_t i = 0; i < n; ++i) scratch.taps[k * chunk_channels + i] = w[i * scratch.kernel + k];
  for_sequences(args.in[4], args.in[5], args.in[6],
                [&](const SequenceRun& s) { run_sequence(args, s, scratch, first, n); });
}

Refusal can_run(const Node& node) { return wants_float_inputs(node, 4); }

}  // namespace

extern const Kernel causal_conv_cpu = {DeviceKind::cpu, Op::causal_conv, can_run, work, run};

}  // namespace consonant
