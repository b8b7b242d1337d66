// SPDX-License-Identifier: Apache-2.0
#include "ops/linear/mma_launch.hpp"

namespace consonant::GPU_BUILD::mma {

namespace {

// What a processor's tiles cost, which it makes one after the other: they are spread as evenly as they can be.
template <class Priced>
int64_t cost_of(const HalvesProduct& p, const Limits& limits) {
  using T = typename Priced::Tile;
  if (T::shared_bytes > limits.shared_bytes) return INT64_MAX;
  const int64_t tiles = ceil_div(p.x.rows, T::tokens) * ceil_div(p.w.rows, T::rows);
  return ceil_div(tiles, limits.processors) * T::tokens * T::rows * Priced::cost;
}

template <class... Priced>
void launch_cheapest(Choices<Priced...>, const HalvesProduct& p, const PlainOutputs& outputs, Accelerator& device) {
  const int64_t least = std::min({cost_of<Priced>(p, device.limits())...});
  const auto launch_if_cheapest = [&]<class One>() {
    if (cost_of<One>(p, device.limits()) != least) return false;
    launch_tiles<typename One::Tile>(p, outputs, device);
    return true;
  };
  (launch_if_cheapest.template operator()<Priced>() || ...);
}

}  // namespace

void launch_halves(const HalvesProduct& p, const PlainOutputs& outputs, Accelerator& device) {
  launch_cheapest(TileChoices(), p, outputs, device);
}

}  // namespace consonant::GPU_BUILD::mma
