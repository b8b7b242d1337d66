// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/paged_cache.hpp"
#include "models/stream_convolutions.hpp"
#include "runtime/batch.hpp"
#include "runtime/plan.hpp"

namespace consonant {

// What streams keep between the steps of a network of causal convolutions and attention: its convolutions' last rows,
// a slot a stream, and the cache of its attention.
class StreamStates {
 public:
  // Room for `streams` of up to `positions` each.
  StreamStates(const std::vector<KvShape>& kv, const std::vector<KeptRows>& kept, int64_t positions, int streams,
               const Target& device);

  int open() { return cache_.open(); }
  void close(int stream) { cache_.close(stream); }
  void restart(int stream) { cache_.truncate(stream, 0); }
  int64_t length(int stream) const { return cache_.length(stream); }
  int64_t positions() const { return cache_.layout().positions; }
  int64_t bytes() const;

  // A step of so many positions as values of a graph.
  StreamInputs inputs(int64_t positions) const;
  // The states' last values, which a graph ends in.
  static void add_outputs(const StreamInputs& s, std::vector<Tensor>& outputs);
  View view(const StateAttr& state) const;

  // The numbers of a stream's next step, which counts as made; they lie here until the next one.
  void next(int stream, int64_t positions, Batch& batch);

 private:
  PagedCache cache_;
  std::vector<KeptRows> kept_;
  std::vector<Buffer> rows_;  // a convolution each: [stream, rows, n]
  std::vector<int32_t> pos_, seq_, pages_, slot_;
};

}  // namespace consonant
