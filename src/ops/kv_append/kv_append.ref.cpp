// SPDX-License-Identifier: Apache-2.0
#include "ops/kv_cache.hpp"
#include "ops/work.hpp"

namespace consonant {

namespace {

void append(const Args& args, int64_t t) {
  const View &k = args.in[2], &v = args.in[3], &pages = args.in[6];
  const int32_t position = args.in[4].as<int32_t>()[t], sequence = args.in[5].as<int32_t>()[t];
  const int32_t page = pages.row<int32_t>(sequence)[position / kv_page];
  const KvPage keys(args.out[0], StateKind::keys, page), values(args.out[1], StateKind::values, page);
  for (int64_t head = 0; head < keys.heads(); ++head) {
    keys.write(head, position % kv_page, k.row<float>(t * keys.heads() + head));
    values.write(head, position % kv_page, v.row<float>(t * keys.heads() + head));
  }
}

void run(const Args& args, int64_t, std::byte*) {
  for (int64_t t = 0; t < args.in[2].shape[0]; ++t) append(args, t);
}
Refusal can_run(const Node& node) {
  for (int i = 2; i < 4; ++i)
    if (node.inputs[static_cast<size_t>(i)].type() != DType::f32) return {"k and v must be f32"};
  return {};
}

}  // namespace

extern const Kernel kv_append_ref = {DeviceKind::reference, Op::kv_append, can_run, whole, run};

}  // namespace consonant
