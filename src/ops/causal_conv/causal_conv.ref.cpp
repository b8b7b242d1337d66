// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "ops/activation.hpp"
#include "ops/causal_conv/causal_conv.hpp"
#include "ops/slots.hpp"

namespace consonant {

namespace {

void run_sequence(const Args& args, const SequenceRun& s) {
  const View &x = args.in[1], &y = args.out[0], &state = args.out[1];
  const auto *w = args.in[2].as<float>(), *b = args.in[3].as<float>();
  const int64_t kernel = args.attr<CausalConvAttr>().kernel, channels = y.last();
  float* slot = state.row<float>(s.slot * (kernel - 1));
  std::vector<float> inputs(
      static_cast<size_t>(kernel - 1 + s.count()));  // of one channel, those before the step first
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t j = 0; j < kernel - 1; ++j)
      inputs[static_cast<size_t>(j)] = s.position - (kernel - 1) + j < 0 ? 0 : slot[j * channels + c];
    for (int64_t t = 0; t < s.count(); ++t) inputs[static_cast<size_t>(kernel - 1 + t)] = x.row<float>(s.first + t)[c];
    for (int64_t t = 0; t < s.count(); ++t) {
      double sum = b[c];
      for (int64_t k = 0; k < kernel; ++k) sum += double{w[c * kernel + k]} * inputs[static_cast<size_t>(t + k)];
      y.row<float>(s.first + t)[c] = static_cast<float>(exact_silu(sum));
    }
    for (int64_t j = 0; j < kernel - 1; ++j) slot[j * channels + c] = inputs[static_cast<size_t>(s.count() + j)];
  }
}

void run(const Args& args, int64_t, std::byte*) {
  for_sequences(args.in[4], args.in[5], args.in[6], [&](const SequenceRun& s) { run_sequence(args, s); });
}

Refusal can_run(const Node& node) { return wants_float_inputs(node, 4); }

}  // namespace

extern const Kernel causal_conv_ref = {DeviceKind::reference, Op::causal_conv, can_run, whole, run};

}  // namespace consonant
