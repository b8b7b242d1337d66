// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "device/device.hpp"
#include "models/language_model.hpp"
#include "ops/kernel.hpp"

namespace consonant {

// The sizes of a paged cache, all that a plan needs to know of it.
struct CacheLayout {
  CacheRole role;
  std::vector<KvShape> layers;
  DType type;
  int64_t positions;  // of a sequence
  int sequences;

  int64_t pages_per_sequence() const;
  int64_t pages() const;
  int64_t bytes() const;
  int64_t bytes_per_position() const;
  // The cache as values of a graph, and as views without data.
  std::vector<KvState> states() const;
  View view(const StateAttr& state) const;

 private:
  Shape shape(size_t layer, StateKind kind) const;
};

// Keys and values of all layers in pages of `kv_page` positions, and the sequences that hold them. A page may belong to
// several sequences that were forked from one; the one that writes to it gets a copy first.
class PagedCache {
 public:
  // Room for `sequences` of up to `positions` each; memory is committed as it fills.
  // On an accelerator, which must outlive the cache, all of it is taken at once.
  explicit PagedCache(CacheLayout layout, Accelerator* accelerator = nullptr);
  const CacheLayout& layout() const { return layout_; }

  int open();  // a new, empty sequence; an error if all are taken
  void close(int sequence);
  int fork(int sequence);                       // a copy, which shares the pages
  void truncate(int sequence, int64_t length);  // forgets all positions from `length` on
  int64_t length(int sequence) const { return at(sequence).length; }

  // Makes room for `count` positions after those that `sequence` holds, and counts them as held.
  void extend(int sequence, int64_t count);

  // Page numbers of a sequence into `row`, as many as it has places for (at least as many as the sequence has pages),
  // -1 past the last.
  void write_pages(int sequence, std::span<int32_t> row) const;
  int64_t pages_of(int sequence) const { return static_cast<int64_t>(at(sequence).pages.size()); }
  int64_t pages_per_sequence() const { return pages_per_sequence_; }
  int sequences() const { return static_cast<int>(sequences_.size()); }

  // A sequence's memory on the device: of each of its pages, keys and values of each layer.
  std::vector<std::span<std::byte>> parts(int sequence) const;

  // Where a device finds a layer's keys or values.
  View view(const StateAttr& state) const;

 private:
  struct Sequence {
    bool open = false;
    int64_t length = 0;
    std::vector<int32_t> pages;
  };

  const Sequence& at(int sequence) const { return sequences_[static_cast<size_t>(sequence)]; }
  int32_t take_page();
  void drop_page(int32_t page);
  void copy_page(int32_t from, int32_t to);

  CacheLayout layout_;
  int64_t pages_per_sequence_;
  std::vector<Buffer> keys_, values_;  // a layer each
  std::vector<int> users_;             // of a page: sequences that hold it
  std::vector<int32_t> free_;
  std::vector<Sequence> sequences_;
};

}  // namespace consonant
