// SPDX-License-Identifier: Apache-2.0
#include "engine/stream_states.hpp"

#include <numeric>

#include "base/checked.hpp"

namespace consonant {

StreamStates::StreamStates(const std::vector<KvShape>& kv, const std::vector<KeptRows>& kept, int64_t positions,
                           int streams, const Target& device)
    : cache_({CacheRole::self, kv, DType::f32, positions, streams}, device.accelerator.get()), kept_(kept) {
  for (const KeptRows& k : kept_)
    rows_.emplace_back(checked_mul(checked_mul(checked_mul(k.rows, k.n), streams), int64_t{sizeof(float)}),
                       device.accelerator.get());
}

int64_t StreamStates::bytes() const {
  int64_t bytes = cache_.layout().bytes();
  for (const Buffer& rows : rows_) bytes = checked_add(bytes, rows.size());
  return bytes;
}

StreamInputs StreamStates::inputs(int64_t positions) const {
  StreamInputs s;
  s.slot = input("slot", DType::i32, {1});
  s.mask.pos = input("position", DType::i32, {positions});
  s.mask.seq = input("sequence", DType::i32, {positions});
  s.mask.pages = input("own_pages", DType::i32, {1, cache_.pages_per_sequence()});
  s.kv = cache_.layout().states();
  for (size_t i = 0; i < kept_.size(); ++i)
    s.kept.push_back(
        state({StateKind::conv, static_cast<int>(i)}, DType::f32, {cache_.sequences(), kept_[i].rows, kept_[i].n}));
  return s;
}

void StreamStates::add_outputs(const StreamInputs& s, std::vector<Tensor>& outputs) {
  for (const KvState& kv : s.kv) outputs.insert(outputs.end(), {kv.keys, kv.values});
  outputs.insert(outputs.end(), s.kept.begin(), s.kept.end());
}

View StreamStates::view(const StateAttr& state) const {
  if (state.kind != StateKind::conv) return cache_.view(state);
  const auto i = static_cast<size_t>(state.layer);
  const Output out = dense(DType::f32, {cache_.sequences(), kept_[i].rows, kept_[i].n});
  return {rows_[i].data(), out.type, out.shape, out.strides, Layout::plain};
}

void StreamStates::next(int stream, int64_t positions, Batch& batch) {
  const auto count = static_cast<size_t>(positions);
  pos_.resize(count);
  std::iota(pos_.begin(), pos_.end(), static_cast<int32_t>(cache_.length(stream)));
  seq_.assign(count, 0);
  pages_.resize(static_cast<size_t>(cache_.pages_per_sequence()));
  slot_.assign(1, stream);
  cache_.extend(stream, positions);
  cache_.write_pages(stream, pages_);
  batch.more.push_back({"position", std::as_bytes(std::span(pos_))});
  batch.more.push_back({"sequence", std::as_bytes(std::span(seq_))});
  batch.more.push_back({"own_pages", std::as_bytes(std::span(pages_))});
  batch.more.push_back({"slot", std::as_bytes(std::span(slot_))});
}

}  // namespace consonant
