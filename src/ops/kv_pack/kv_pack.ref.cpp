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

void turn(const View& x, const View& packed, StateKind kind) {
  std::fill_n(packed.data, packed.shape.count() * info(packed.type).block_bytes, std::byte{});
  const int64_t heads = x.shape[1];
  for (int64_t p = 0; p < x.shape[0]; ++p) {
    const KvPage page(packed, kind, p / kv_page);
    for (int64_t head = 0; head < heads; ++head) page.write(head, p % kv_page, x.row<float>(p * heads + head));
  }
}

void run(const Args& args, int64_t, std::byte*) {
  turn(args.in[0], args.out[0], StateKind::keys);
  turn(args.in[1], args.out[1], StateKind::values);
}

}  // namespace

extern const Kernel kv_pack_ref = {DeviceKind::reference, Op::kv_pack, can_run, whole, run};

}  // namespace consonant
