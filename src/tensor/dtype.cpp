// SPDX-License-Identifier: Apache-2.0
#include "tensor/dtype.hpp"

#include <array>

#include "base/checked.hpp"

namespace consonant {

namespace {

constexpr std::array<DTypeInfo, dtype_count> table = {{
    {"f32", 1, 4},      {"f16", 1, 2},        {"bf16", 1, 2},     {"f64", 1, 8},      {"i8", 1, 1},
    {"i16", 1, 2},      {"i32", 1, 4},        {"i64", 1, 8},      {"u8", 1, 1},       {"bool", 1, 1},
    {"q8_0", 32, 34},   {"q4_0", 32, 18},     {"q4_1", 32, 20},   {"q5_0", 32, 22},   {"q5_1", 32, 24},
    {"q2_k", 256, 84},  {"q3_k", 256, 110},   {"q4_k", 256, 144}, {"q5_k", 256, 176}, {"q6_k", 256, 210},
    {"iq4_nl", 32, 18}, {"iq4_xs", 256, 136}, {"mxfp4", 32, 17},  {"q8_x", 32, 44},   {"q16_x", 32, 76},
}};

}  // namespace

const DTypeInfo& info(DType type) { return table[static_cast<size_t>(type)]; }

std::optional<DType> find_dtype(std::string_view name) {
  for (int i = 0; i < dtype_count; ++i)
    if (table[static_cast<size_t>(i)].name == name) return static_cast<DType>(i);
  return std::nullopt;
}

int64_t row_bytes(DType type, int64_t columns) {
  const DTypeInfo& t = info(type);
  if (columns < 0) bad_input("a row of {} elements", columns);
  if (columns % t.block != 0)
    bad_input("a row of {} elements can't be {}: not a multiple of {}", columns, t.name, t.block);
  return checked_mul(columns / t.block, t.block_bytes);
}

}  // namespace consonant
