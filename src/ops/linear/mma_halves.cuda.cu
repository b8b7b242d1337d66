// SPDX-License-Identifier: Apache-2.0
#include "ops/linear/mma_launch.hpp"

namespace consonant::GPU_BUILD::mma {

namespace {

// In outputs of a wide tile that a processor makes one after the other: tiles are spread as evenly as they can be.
template <class T>
double time_of(const HalvesProduct& p, const Limits& limits, double cost) {
  if (T::shared_bytes > limits.shared_bytes) return HUGE_VAL;
  const int64_t tiles = ceil_div(p.x.rows, T::tokens) * ceil_div(p.w.rows, T::rows);
  return static_cast<double>(ceil_div(tiles, limits.processors) * T::tokens * T::rows) * cost;
}

}  // namespace

void launch_halves(const HalvesProduct& p, const PlainOutputs& outputs, Accelerator& device) {
  const Limits& limits = device.limits();
  const double wide = time_of<WideTile>(p, limits, 1), even = time_of<EvenTile>(p, limits, even_cost),
               small = time_of<SmallTile>(p, limits, small_cost);
  if (wide <= even && wide <= small)
    launch_tiles<WideTile>(p, outputs, device);
  else if (even <= small)
    launch_tiles<EvenTile>(p, outputs, device);
  else
    launch_tiles<SmallTile>(p, outputs, device);
}

}  // namespace consonant::GPU_BUILD::mma
