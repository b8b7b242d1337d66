// SPDX-License-Identifier: Apache-2.0
#include "ops/kv_cache.hpp"
#include "ops/work.hpp"

namespace consonant {

namespace {

constexpr int64_t chunk_tokens = 16;

// Neighbours in the batch that are neighbours on a page are written together.
int64_t run_end(const Args& args, int64_t first, int64_t end) {
  const auto *pos = args.in[4].as<int32_t>(), *seq = args.in[5].as<int32_t>();
  int64_t t = first + 1;
  while (t < end && seq[t] == seq[first] && pos[t] == pos[first] + (t - first) && pos[t] % kv_page != 0) ++t;
  return t;
}

Work work(const Args& args) { return {ceil_div(args.in[2].shape[0], chunk_tokens), 0}; }

void run(const Args& args, int64_t chunk, std::byte*) {
  const View &k = args.in[2], &v = args.in[3], &pages = args.in[6];
  const int64_t end = std::min(k.shape[0], (chunk + 1) * chunk_tokens);
  for (int64_t t = chunk * chunk_tokens, next = t; t < end; t = next) {
    next = run_end(args, t, end);
    const int32_t position = args.in[4].as<int32_t>()[t], sequence = args.in[5].as<int32_t>()[t];
    const int32_t page = pages.row<int32_t>(sequence)[position / kv_page];
    const KvPage keys(args.out[0], StateKind::keys, page), values(args.out[1], StateKind::values, page);
    for (int64_t head = 0; head < keys.heads(); ++head) {
      keys.write_rows(head, position % kv_page, next - t, k.row<float>(t * keys.heads() + head), k.strides[0]);
      values.write_rows(head, position % kv_page, next - t, v.row<float>(t * keys.heads() + head), v.strides[0]);
    }
  }
}

Refusal can_run(const Node& node) {
  for (int i = 2; i < 4; ++i)
    if (node.inputs[static_cast<size_t>(i)].type() != DType::f32) return {"k and v must be f32"};
  return {};
}

}  // namespace

extern const Kernel kv_append_cpu = {DeviceKind::cpu, Op::kv_append, can_run, work, run};

}  // namespace consonant
