// SPDX-License-Identifier: Apache-2.0
#include "engine/taps.hpp"

#include "tensor/convert.hpp"

namespace consonant {

TapRows& TapStore::of(const Plan::Tap& tap) {
  for (TapRows& known : taps_)
    if (known.name == tap.name) return known;
  taps_.push_back({tap.name, tap.source, {}, {}});
  return taps_.back();
}

void TapStore::keep(const Program& program) {
  const auto& planned = program.plan().taps;
  for (size_t i = 0; i < planned.size(); ++i) {
    const View view = program.tap(i);
    TapRows& kept = of(planned[i]);
    if (kept.rows.empty()) {
      kept.sizes.clear();
      for (int d = 1; d < view.shape.rank(); ++d) kept.sizes.push_back(view.shape[d]);
    }
    const size_t before = kept.rows.size();
    kept.rows.resize(before + static_cast<size_t>(view.shape.count()));
    for (int64_t r = 0; r < view.rows(); ++r)
      decode_row(view.type, view.data + r * row_bytes(view.type, view.last()),
                 kept.rows.data() + before + static_cast<size_t>(r * view.last()), view.last());
  }
}

}  // namespace consonant
