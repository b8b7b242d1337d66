// SPDX-License-Identifier: Apache-2.0
#include "ops/rope_angles/angles.hpp"

namespace consonant {

namespace {

void run(const Args& args, int64_t, std::byte*) {
  const View &pos = args.in[0], &y = args.out[0];
  const auto& rotary = args.attr<Rotary>();
  const float* divisors = args.in.size() > 1 ? args.in[1].as<float>() : nullptr;
  const int64_t half = rotary.dims / 2;
  for (int64_t i = 0; i < half; ++i) {
    const float frequency = rope_frequency(rotary, divisors, i);
    for (int64_t t = 0; t < y.rows(); ++t) {
      const double angle = double{static_cast<float>(pos.as<int32_t>()[t]) * frequency};
      y.row<float>(t)[i] = static_cast<float>(std::cos(angle) * rotary.magnitude);
      y.row<float>(t)[half + i] = static_cast<float>(std::sin(angle) * rotary.magnitude);
    }
  }
}

Refusal can_run(const Node&) { return {}; }

}  // namespace

extern const Kernel rope_angles_ref = {DeviceKind::reference, Op::rope_angles, can_run, whole, run};

}  // namespace consonant
