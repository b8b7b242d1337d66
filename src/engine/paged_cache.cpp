// SPDX-License-Identifier: Apache-2.0
#include "engine/paged_cache.hpp"

#include <algorithm>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "device/accelerator.hpp"

namespace consonant {

int64_t CacheLayout::pages_per_sequence() const { return ceil_div(positions, kv_page); }

int64_t CacheLayout::pages() const { return checked_mul(pages_per_sequence(), sequences); }

int64_t CacheLayout::bytes() const {
  int64_t bytes = 0;
  for (const KvShape& kv : layers)
    bytes = checked_add(bytes, checked_mul(pages(), kv_page_bytes(type, kv.heads, kv.key_dim) +
                                                        kv_page_bytes(type, kv.heads, kv.value_dim)));
  return bytes;
}

int64_t CacheLayout::bytes_per_position() const {
  int64_t bytes = 0;
  for (const KvShape& kv : layers)
    bytes += kv_page_bytes(type, kv.heads, kv.key_dim) + kv_page_bytes(type, kv.heads, kv.value_dim);
  return bytes / kv_page;
}

Shape CacheLayout::shape(size_t layer, StateKind kind) const {
  const KvShape& kv = layers[layer];
  return kind == StateKind::keys ? Shape{pages(), kv.heads, kv.key_dim, kv_page}
                                 : Shape{pages(), kv.heads, kv_page, kv.value_dim};
}

std::vector<KvState> CacheLayout::states() const {
  std::vector<KvState> states;
  for (size_t i = 0; i < layers.size(); ++i) {
    const auto of = [&](StateKind kind) { return state({kind, static_cast<int>(i), role}, type, shape(i, kind)); };
    states.push_back({layers[i].key_dim > 0 ? of(StateKind::keys) : Tensor{}, of(StateKind::values)});
  }
  return states;
}

View CacheLayout::view(const StateAttr& state) const {
  const Output out = dense(type, shape(static_cast<size_t>(state.layer), state.kind));
  return {nullptr, out.type, out.shape, out.strides, Layout::plain};
}

PagedCache::PagedCache(CacheLayout layout, Accelerator* accelerator)
    : layout_(std::move(layout)), pages_per_sequence_(layout_.pages_per_sequence()) {
  const int64_t pages = layout_.pages();
  if (pages > (int64_t{1} << 30))
    bad_usage("a context of {} tokens for {} sequences", layout_.positions, layout_.sequences);
  for (const KvShape& kv : layout_.layers) {
    keys_.emplace_back(checked_mul(pages, kv_page_bytes(layout_.type, kv.heads, kv.key_dim)), accelerator);
    values_.emplace_back(checked_mul(pages, kv_page_bytes(layout_.type, kv.heads, kv.value_dim)), accelerator);
  }
  users_.resize(static_cast<size_t>(pages));
  for (int64_t page = pages - 1; page >= 0; --page) free_.push_back(static_cast<int32_t>(page));
  sequences_.resize(static_cast<size_t>(layout_.sequences));
}

int PagedCache::open() {
  const auto place = std::find_if(sequences_.begin(), sequences_.end(), [](const Sequence& s) { return !s.open; });
  if (place == sequences_.end()) throw_error(Exit::failed, "all {} sequences are in use", sequences_.size());
  place->open = true;
  return static_cast<int>(place - sequences_.begin());
}

void PagedCache::close(int sequence) {
  truncate(sequence, 0);
  sequences_[static_cast<size_t>(sequence)].open = false;
}

int PagedCache::fork(int sequence) {
  const int copy = open();
  Sequence& to = sequences_[static_cast<size_t>(copy)];
  to.length = at(sequence).length;
  to.pages = at(sequence).pages;
  for (const int32_t page : to.pages) ++users_[static_cast<size_t>(page)];
  return copy;
}

void PagedCache::truncate(int sequence, int64_t length) {
  Sequence& s = sequences_[static_cast<size_t>(sequence)];
  if (length >= s.length) return;
  s.length = length;
  while (static_cast<int64_t>(s.pages.size()) > ceil_div(length, kv_page)) {
    drop_page(s.pages.back());
    s.pages.pop_back();
  }
}

void PagedCache::extend(int sequence, int64_t count) {
  Sequence& s = sequences_[static_cast<size_t>(sequence)];
  if (count <= 0) return;
  if (s.length % kv_page != 0) {  // the last page will be written to
    int32_t& last = s.pages.back();
    if (users_[static_cast<size_t>(last)] > 1) {
      const int32_t own = take_page();
      copy_page(last, own);
      drop_page(last);
      last = own;
    }
  }
  while (static_cast<int64_t>(s.pages.size()) < ceil_div(s.length + count, kv_page)) s.pages.push_back(take_page());
  s.length += count;
}

void PagedCache::write_pages(int sequence, std::span<int32_t> row) const {
  const auto& pages = at(sequence).pages;
  std::fill(std::copy(pages.begin(), pages.end(), row.begin()), row.end(), -1);
}

int32_t PagedCache::take_page() {
  if (free_.empty()) throw_error(Exit::memory, "no page of the cache is left");
  const int32_t page = free_.back();
  free_.pop_back();
  users_[static_cast<size_t>(page)] = 1;
  return page;
}

void PagedCache::drop_page(int32_t page) {
  if (--users_[static_cast<size_t>(page)] == 0) free_.push_back(page);
}

void PagedCache::copy_page(int32_t from, int32_t to) {
  const auto copy = [&](const Buffer& buffer, int64_t bytes) {
    if (bytes == 0) return;  // a layer without keys
    if (Accelerator* accelerator = buffer.accelerator())
      accelerator->copy(buffer.data() + to * bytes, buffer.data() + from * bytes, bytes);
    else
      std::copy_n(buffer.data() + from * bytes, bytes, buffer.data() + to * bytes);
  };
  for (size_t i = 0; i < layout_.layers.size(); ++i) {
    copy(keys_[i], kv_page_bytes(layout_.type, layout_.layers[i].heads, layout_.layers[i].key_dim));
    copy(values_[i], kv_page_bytes(layout_.type, layout_.layers[i].heads, layout_.layers[i].value_dim));
  }
}

std::vector<std::span<std::byte>> PagedCache::parts(int sequence) const {
  std::vector<std::span<std::byte>> parts;
  const auto add = [&](const Buffer& buffer, int32_t page, int64_t bytes) {
    parts.emplace_back(buffer.data() + page * bytes, static_cast<size_t>(bytes));
  };
  for (const int32_t page : at(sequence).pages)
    for (size_t i = 0; i < layout_.layers.size(); ++i) {
      add(keys_[i], page, kv_page_bytes(layout_.type, layout_.layers[i].heads, layout_.layers[i].key_dim));
      add(values_[i], page, kv_page_bytes(layout_.type, layout_.layers[i].heads, layout_.layers[i].value_dim));
    }
  return parts;
}

View PagedCache::view(const StateAttr& state) const {
  const auto layer = static_cast<size_t>(state.layer);
  View view = layout_.view(state);
  view.data = (state.kind == StateKind::keys ? keys_[layer] : values_[layer]).data();
  return view;
}

}  // namespace consonant
