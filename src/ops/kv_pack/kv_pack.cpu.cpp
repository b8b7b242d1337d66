// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/kv_cache.hpp"
#include "ops/kv_pack/kv_pack.hpp"
#include "ops/work.hpp"

namespace consonant {

namespace {

Refusal can_run(const Node& node) {
  if (Refusal refusal = wants_head_rows(node.inputs[0], "k")) return refusal;
  return wants_head_rows(node.inputs[1], "v");
}

// A chunk is a page of a head.
Work work(const Args& args) { return {args.out[0].shape[0] * args.out[0].shape[1], 0}; }

void turn(const View& x, const View& packed, StateKind kind, int64_t page, int64_t head) {
  const int64_t heads = x.shape[1], dim = x.shape[2], first = page * kv_page;
  const int64_t positions = std::min(kv_page, x.shape[0] - first), size = info(packed.type).block_bytes;
  if (positions < kv_page)
    std::fill_n(packed.data + (page * heads + head) * dim * kv_page * size, dim * kv_page * size, std::byte{});
  KvPage(packed, kind, page).write_rows(head, 0, positions, x.row<float>(first * heads + head), x.strides[0]);
}

void run(const Args& args, int64_t chunk, std::byte*) {
  const int64_t heads = args.out[0].shape[1];
  turn(args.in[0], args.out[0], StateKind::keys, chunk / heads, chunk % heads);
  turn(args.in[1], args.out[1], StateKind::values, chunk / heads, chunk % heads);
}

}  // namespace

extern const Kernel kv_pack_cpu = {DeviceKind::cpu, Op::kv_pack, can_run, work, run};

}  // namespace consonant
