// SPDX-License-Identifier: Apache-2.0
#include "engine/slot_store.hpp"

#include <algorithm>

#include "base/checked.hpp"
#include "device/accelerator.hpp"

namespace consonant {

namespace {

Shape shape_of(const MambaShape& m, StateKind kind, int64_t slots) {
  return kind == StateKind::conv ? Shape{slots, m.kernel - 1, m.channels} : Shape{slots, m.heads, m.states, m.dim};
}

int64_t slot_bytes(const MambaShape& m, StateKind kind) {
  const int64_t numbers = kind == StateKind::conv ? checked_mul(m.kernel - 1, m.channels)
                                                  : checked_mul(checked_mul(m.heads, m.states), m.dim);
  return checked_mul(numbers, sizeof(float));
}

constexpr StateKind kinds[] = {StateKind::conv, StateKind::ssm};

}  // namespace

int64_t SlotLayout::bytes_per_slot() const {
  int64_t bytes = 0;
  for (const MambaShape& m : layers)
    for (const StateKind kind : kinds) bytes = checked_add(bytes, slot_bytes(m, kind));
  return bytes;
}

int64_t SlotLayout::bytes() const { return checked_mul(bytes_per_slot(), slots); }

std::vector<MambaState> SlotLayout::states() const {
  std::vector<MambaState> states;
  for (size_t i = 0; i < layers.size(); ++i) {
    const auto of = [&](StateKind kind) {
      return state({kind, static_cast<int>(i)}, DType::f32, shape_of(layers[i], kind, slots));
    };
    states.push_back({of(StateKind::conv), of(StateKind::ssm)});
  }
  return states;
}

View SlotLayout::view(const StateAttr& state) const {
  const Output out = dense(DType::f32, shape_of(layers[static_cast<size_t>(state.layer)], state.kind, slots));
  return {nullptr, out.type, out.shape, out.strides, Layout::plain};
}

SlotStore::SlotStore(SlotLayout layout, Accelerator* accelerator) : layout_(std::move(layout)) {
  for (const MambaShape& m : layout_.layers) {
    conv_.emplace_back(checked_mul(slot_bytes(m, StateKind::conv), layout_.slots), accelerator);
    ssm_.emplace_back(checked_mul(slot_bytes(m, StateKind::ssm), layout_.slots), accelerator);
  }
}

View SlotStore::view(const StateAttr& state) const {
  View view = layout_.view(state);
  view.data = (state.kind == StateKind::conv ? conv_ : ssm_)[static_cast<size_t>(state.layer)].data();
  return view;
}

std::vector<std::span<std::byte>> SlotStore::parts(int slot) const {
  std::vector<std::span<std::byte>> parts;
  for (size_t i = 0; i < layout_.layers.size(); ++i)
    for (const StateKind kind : kinds) {
      const int64_t bytes = slot_bytes(layout_.layers[i], kind);
      const Buffer& buffer = (kind == StateKind::conv ? conv_ : ssm_)[i];
      parts.emplace_back(buffer.data() + slot * bytes, static_cast<size_t>(bytes));
    }
  return parts;
}

void SlotStore::copy(int from, int to) {
  const auto source = parts(from), target = parts(to);
  Accelerator* const accelerator = conv_.empty() ? nullptr : conv_.front().accelerator();
  for (size_t i = 0; i < source.size(); ++i) {
    if (accelerator)
      accelerator->copy(target[i].data(), source[i].data(), static_cast<int64_t>(source[i].size()));
    else
      std::copy(source[i].begin(), source[i].end(), target[i].begin());
  }
}

}  // namespace consonant
