// SPDX-License-Identifier: Apache-2.0
#include "graph/inputs.hpp"

#include "base/checked.hpp"

namespace consonant {

int64_t kv_page_bytes(DType type, int64_t heads, int64_t dim) {
  const int64_t numbers = checked_mul(checked_mul(heads, dim), kv_page);
  if (type != DType::q8_0) return checked_mul(numbers, info(type).block_bytes);
  if (dim % 32 != 0) bad_usage("a q8_0 cache wants heads whose size is a multiple of 32; this model has {}", dim);
  return checked_add(numbers, numbers / 32 * 2);
}

}  // namespace consonant
