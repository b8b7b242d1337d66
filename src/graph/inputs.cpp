// SPDX-License-Identifier: Apache-2.0
#include "graph/inputs.hpp"

#include "base/checked.hpp"

namespace consonant {

void check_mask(std::string_view op, const Mask& mask, const Tensor& x, Location at) {
  const Shape tokens({x.shape()[0]}, x.shape().axis());
  const auto whole = [](const Tensor& t) { return t.type() == DType::i32; };
  if (mask.pos.shape() != tokens || mask.seq.shape() != tokens || mask.pages.shape().rank() != 2 || !whole(mask.pos) ||
      !whole(mask.seq) || !whole(mask.pages))
    shape_error(op, "pos [token], seq [token] and pages [sequence, page] in i32", {x, mask.pos, mask.seq, mask.pages},
                at);
}

void check_slots(std::string_view op, const Slots& slots, const Tensor& x, Location at) {
  const Shape tokens({x.shape()[0]}, x.shape().axis());
  const auto whole = [](const Tensor& t) { return t.type() == DType::i32; };
  if (slots.pos.shape() != tokens || slots.seq.shape() != tokens || slots.slots.shape().rank() != 1 ||
      !whole(slots.pos) || !whole(slots.seq) || !whole(slots.slots))
    shape_error(op, "pos [token], seq [token] and slots [sequence] in i32", {x, slots.pos, slots.seq, slots.slots}, at);
}

int64_t kv_page_bytes(DType type, int64_t heads, int64_t dim) {
  const int64_t numbers = checked_mul(checked_mul(heads, dim), kv_page);
  if (type != DType::q8_0) return checked_mul(numbers, info(type).block_bytes);
  if (dim % 32 != 0) bad_usage("a q8_0 cache wants heads whose size is a multiple of 32; this model has {}", dim);
  return checked_add(numbers, numbers / 32 * 2);
}

}  // namespace consonant
