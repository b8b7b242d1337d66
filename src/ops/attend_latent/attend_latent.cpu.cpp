// SPDX-License-Identifier: Apache-2.0
// The arithmetic is attend's: a page's rows are decoded and turned to keys and values once for all query rows that meet
// it.
#include <algorithm>
#include <limits>

#include "ops/attend/tile.hpp"
#include "ops/attend_latent/attend_latent.hpp"
#include "ops/kv_cache.hpp"
#include "ops/work.hpp"

namespace consonant {

namespace {

// A chunk is a run of tokens and some of the heads: few enough that threads share a token's, and enough that a page's
// decoding is a small part of the work.
struct Cut {
  static constexpr int64_t heads_together = 12;

  int64_t heads, parts, part_heads;
  AttendRuns runs;

  explicit Cut(const Args& args)
      : heads(args.in[0].shape[1]),
        parts(std::max<int64_t>(1, ceil_div(heads, heads_together))),
        part_heads(ceil_div(heads, parts)),
        runs{args.in[4].as<int32_t>(), args.in[0].shape[0],
             std::max<int64_t>(1, AttendRuns::tile_rows / std::max<int64_t>(1, part_heads))} {}

  int64_t chunks() const { return runs.count() * parts; }
  int64_t most_rows() const { return std::min(runs.tile_tokens, runs.tokens) * part_heads; }
};

// Scratch memory behind the tile's.
struct Room {
  float* queries;  // [row, n + m]
  float* page;     // [kv_page, n + m]

  static int64_t bytes(int64_t rows, int64_t dim) { return (rows + kv_page) * dim * int64_t{sizeof(float)}; }
};

Work work(const Args& args) {
  const Cut cut(args);
  const int64_t dim = args.in[2].last();
  return {cut.chunks(),
          AttendTile::scratch_bytes(cut.most_rows(), dim, args.in[0].last()) + Room::bytes(cut.most_rows(), dim)};
}

// Rows [kv_page, dim] as keys [dim, kv_page] and values [kv_page, value_dim].
void spread(const float* page, const AttendTile& tile) {
  constexpr int64_t together = 16;
  for (int64_t p = 0; p < kv_page; p += together)
    for (int64_t i = 0; i < tile.dim; ++i)
      for (int64_t j = 0; j < together; ++j) tile.keys[i * kv_page + p + j] = page[(p + j) * tile.dim + i];
  for (int64_t p = 0; p < kv_page; ++p)
    std::copy_n(page + p * tile.dim, tile.value_dim, tile.values + p * tile.value_dim);
}

void run(const Args& args, int64_t chunk, std::byte* scratch) {
  const View &q = args.in[0], &turned = args.in[1], &rows = args.in[2], &y = args.out[0];
  const auto& attr = args.attr<AttendAttr>();
  const Cut cut(args);
  const int64_t head = chunk % cut.parts * cut.part_heads, heads = std::min(cut.part_heads, cut.heads - head);
  const int64_t first = cut.runs.start(chunk / cut.parts), last = cut.runs.end(first), n = q.last(), dim = rows.last();
  const int32_t* page_of = args.in[5].row<int32_t>(cut.runs.seq[first]);

  AttendTile tile((last - first) * heads, dim, n, attr.scale, scratch);
  auto* behind = reinterpret_cast<float*>(scratch + AttendTile::scratch_bytes(tile.rows, dim, n));
  const Room room{behind, behind + tile.rows * dim};
  int64_t lowest = std::numeric_limits<int64_t>::max(), highest = 0;
  for (int64_t r = 0; r < tile.rows; ++r) {
    const int64_t token = first + r / heads, at = token * cut.heads + head + r % heads;
    const int64_t position = args.in[3].as<int32_t>()[token];
    float* query = room.queries + r * dim;
    std::copy_n(turned.row<float>(at), dim - n, std::copy_n(q.row<float>(at), n, query));
    tile.q[r] = query;
    tile.row[r].first = attr.window > 0 ? std::max<int64_t>(0, position - attr.window + 1) : 0;
    tile.row[r].last = position + 1;
    lowest = std::min(lowest, tile.row[r].first), highest = std::max(highest, tile.row[r].last);
  }
  for (int64_t p = lowest / kv_page; p < ceil_div(highest, kv_page); ++p) {
    KvPage(rows, StateKind::values, page_of[p]).decode(0, room.page);
    spread(room.page, tile);
    attend_page(tile, tile.keys, tile.values, p * kv_page);
  }
  for (int64_t r = 0; r < tile.rows; ++r) {
    float* to = y.row<float>((first + r / heads) * cut.heads + head + r % heads);
    for (int64_t i = 0; i < n; ++i) to[i] = tile.sums[r * n + i] / tile.row[r].sum;
  }
}

Refusal can_run(const Node& node) {
  if (Refusal refusal = wants_head_rows(node.inputs[0], "q")) return refusal;
  if (Refusal refusal = wants_head_rows(node.inputs[1], "turned")) return refusal;
  return wants_cache(node.inputs[2], node.inputs[2]);
}

}  // namespace

extern const Kernel attend_latent_cpu = {DeviceKind::cpu, Op::attend_latent, can_run, work, run};

}  // namespace consonant
