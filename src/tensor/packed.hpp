// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tensor/dtype.hpp"

namespace consonant {

// How a weight lies in a device's memory.
enum class Layout : uint8_t {
  plain,  // as in the file
  rows8,  // eight rows interleaved, so that a vector lane is a row and every load is whole and aligned
};

// A matrix [rows, k] in rows8: groups of eight rows, one after another, each `group_bytes` long; the last group is
// padded with zero rows. A stack [matrices, rows, k], such as the experts of a layer, is one such matrix after another:
// no group has rows of two. Groups are independent, so threads pack and read them freely. What a group holds is
// documented, a type at a time, in packed_layout.hpp.
struct PackedShape {
  DType type;
  int64_t rows, k;      // of one matrix
  int64_t group_bytes;  // multiple of 32
  int64_t matrices = 1;

  int64_t matrix_groups() const { return (rows + 7) / 8; }
  int64_t matrix_bytes() const { return matrix_groups() * group_bytes; }
  int64_t groups() const { return matrices * matrix_groups(); }
  int64_t bytes() const { return groups() * group_bytes; }
  // The first row of a group, counted over all matrices; that of the group behind the last is their number.
  int64_t first_row(int64_t group) const {
    return rows == 0 ? 0 : group / matrix_groups() * rows + group % matrix_groups() * 8;
  }
};

// Bad input if a row of k elements isn't whole blocks of `type`.
PackedShape packed_shape(DType type, int64_t rows, int64_t k);
// Of a weight [rows, k] or [matrices, rows, k].
PackedShape packed_shape(DType type, std::span<const int64_t> sizes);

// Packs groups `first` to `last` (exclusive) of plain rows at `plain` (as in the file; no alignment asked) into
// `packed`, the start of the whole packed matrix or stack.
void pack_groups(const PackedShape& shape, const std::byte* plain, std::byte* packed, int64_t first, int64_t last);

// One row, counted over all matrices, as floats: bit-equal to decode_row of the plain row.
void decode_packed_row(const PackedShape& shape, const std::byte* packed, int64_t row, float* to);

}  // namespace consonant
