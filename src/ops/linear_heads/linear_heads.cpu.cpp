// SPDX-License-Identifier: Apache-2.0
#include "ops/kv_cache.hpp"
#include "ops/linear/product.hpp"
#include "ops/work.hpp"

namespace consonant {

namespace {

// The product of one head: what linear computes, in its order.
Product product_of(const Args& args, int64_t head) {
  const View &x = args.in[0], &w = args.in[1], &y = args.out[0];
  Product p;
  p.weights = packed_shape(w.type, w.shape[1], w.shape[2]);
  if (w.layout == Layout::rows8)
    p.packed = w.data + head * p.weights.bytes();
  else
    p.plain = w.data + head * w.shape[1] * row_bytes(w.type, w.shape[2]);
  p.x = reinterpret_cast<const std::byte*>(x.as<float>() + head * x.strides[1]);
  p.x_stride = x.strides[0] * int64_t{sizeof(float)};
  p.tokens = x.shape[0];
  p.y = y.as<float>() + head * y.strides[1], p.y_stride = y.strides[0];
  return p;
}

// Chunks of one head after those of another.
int64_t chunks_a_head(const Cut& cut) { return cut.token_blocks * cut.group_blocks; }

Work work(const Args& args) {
  const Product p = product_of(args, 0);
  const Cut cut(p);
  return {args.in[0].shape[1] * chunks_a_head(cut), float_scratch(p, cut)};
}

void run(const Args& args, int64_t chunk, std::byte* scratch) {
  const Cut cut(product_of(args, 0));
  const Product p = product_of(args, chunk / chunks_a_head(cut));
  multiply_float(p, cut.patch(p, chunk % chunks_a_head(cut)), scratch);
}

Refusal can_run(const Node& node) {
  if (Refusal refusal = wants_head_rows(node.inputs[0], "x")) return refusal;
  return wants_matrix(node.inputs[1], "w");
}

}  // namespace

extern const Kernel linear_heads_cpu = {DeviceKind::cpu, Op::linear_heads, can_run, work, run};

}  // namespace consonant
