// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace consonant {

// A run of text that is one token so far (or, with id -1, no token). The runs of a word form a linked list in place.
struct Symbol {
  uint32_t start, length;  // bytes of the text; length 0: merged into its left neighbour
  int32_t previous, next;  // -1 at the ends
  int32_t id;
};

// What two neighbours make: lower priority goes first, id -1 means they don't merge.
struct Merge {
  uint32_t priority = 0;
  int32_t id = -1;
};

// Merges neighbours, the lowest priority first and the leftmost among equals, until no pair merges: n symbols take
// O(n log n). `rule(left, right)` gives the Merge of two symbols.
class Merger {
 public:
  void clear() { symbols_.clear(); }
  void add(uint32_t start, uint32_t length, int32_t id) {
    const auto at = static_cast<int32_t>(symbols_.size());
    if (at > 0) symbols_.back().next = at;
    symbols_.push_back({start, length, at - 1, -1, id});
  }

  template <class Rule>
  void run(const Rule& rule) {
    queue_.clear();
    for (size_t i = 1; i < symbols_.size(); ++i) offer(rule, static_cast<int32_t>(i - 1), static_cast<int32_t>(i));
    std::make_heap(queue_.begin(), queue_.end(), later);
    while (!queue_.empty()) {
      const Candidate best = queue_.front();
      std::pop_heap(queue_.begin(), queue_.end(), later);
      queue_.pop_back();
      const auto at = static_cast<int32_t>(static_cast<uint32_t>(best.order));
      Symbol& left = symbols_[static_cast<size_t>(at)];
      if (left.length == 0 || left.next < 0) continue;
      Symbol& right = symbols_[static_cast<size_t>(left.next)];
      // Symbols only grow: the pair is the one that was offered exactly if it still spans as much.
      if (left.length + right.length != best.length || left.id != best.left_id) continue;
      left.length = best.length;
      left.id = best.id;
      right.length = 0;
      left.next = right.next;
      if (left.next >= 0) symbols_[static_cast<size_t>(left.next)].previous = at;
      const int32_t previous = left.previous, next = left.next;
      if (previous >= 0 && offer(rule, previous, at)) std::push_heap(queue_.begin(), queue_.end(), later);
      if (next >= 0 && offer(rule, at, next)) std::push_heap(queue_.begin(), queue_.end(), later);
    }
  }

  template <class Use>
  void each(const Use& use) const {
    for (int32_t i = symbols_.empty() ? -1 : 0; i >= 0; i = symbols_[static_cast<size_t>(i)].next)
      use(symbols_[static_cast<size_t>(i)]);
  }

 private:
  struct Candidate {
    uint64_t order;   // priority, then place
    uint32_t length;  // of both symbols when the pair was offered
    int32_t left_id, id;
  };
  static bool later(const Candidate& a, const Candidate& b) { return a.order > b.order; }

  template <class Rule>
  bool offer(const Rule& rule, int32_t left, int32_t right) {
    const Symbol &a = symbols_[static_cast<size_t>(left)], &b = symbols_[static_cast<size_t>(right)];
    const Merge merge = rule(a, b);
    if (merge.id < 0) return false;
    queue_.push_back({static_cast<uint64_t>(merge.priority) << 32 | static_cast<uint32_t>(left), a.length + b.length,
                      a.id, merge.id});
    return true;
  }

  std::vector<Symbol> symbols_;
  std::vector<Candidate> queue_;
};

}  // namespace consonant
