// SPDX-License-Identifier: Apache-2.0
#include "ops/rope_angles/angles.hpp"

namespace consonant {

namespace {

void run(const Args& args, int64_t, std::byte*) {
  const View &pos = args.in[0], &y = args.out[0];
  const auto& rotary = args.attr<Rotary>();
  const float* divisors = args.in.size() > 1 ? args.in[1].as<float>() : nullptr;
  const int64_t half = rotary.dims / 2;
  const auto magnitude = static_cast<float>(rotary.magnitude);
  for (int64_t i = 0; i < half; ++i) {
    const float frequency = rope_frequency(rotary, divisors, i);
    for (int64_t t = 0; t < y.rows(); ++t) {
      const float angle = static_cast<float>(pos.as<int32_t>()[t]) * frequency;
      y.row<float>(t)[i] = std::cos(angle) * magnitude;
      y.row<float>(t)[half + i] = std::sin(angle) * magnitude;
    }
  }
}

Refusal can_run(const Node&) { return {}; }

}  // namespace

extern const Kernel rope_angles_cpu = {DeviceKind::cpu, Op::rope_angles, can_run, whole, run};

}  // namespace consonant
