// SPDX-License-Identifier: Apache-2.0
#include "tensor/packed.hpp"

#include <algorithm>
#include <cstring>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "tensor/blocks.hpp"
#include "tensor/convert.hpp"
#include "tensor/packed_layout.hpp"

namespace consonant {

namespace {

constexpr int lanes = 8;  // rows of a group

bool has_blocks(DType type) { return block_layout(type).base_bits != 0; }

bool is_plain(DType type) { return type == DType::f32 || type == DType::f16 || type == DType::bf16; }

uint32_t load_dword(const void* from) {
  uint32_t x;
  std::memcpy(&x, from, sizeof x);
  return x;
}

void store_dword(std::byte* to, uint32_t x) { std::memcpy(to, &x, sizeof x); }

// ---- quants of a file's block, one a byte

void nibble_pair(const uint8_t* from, uint8_t* q, int n) {
  for (int i = 0; i < n; ++i) q[i] = from[i] & 15;
  for (int i = 0; i < n; ++i) q[i + n] = from[i] >> 4;
}

void add_fifth_bits(const uint8_t* high, uint8_t* q) {
  for (int i = 0; i < 32; ++i) q[i] = static_cast<uint8_t>(q[i] | (high[i / 8] >> i % 8 & 1) << 4);
}

template <class Block>
void quants(const Block& b, uint8_t* q) {  // types that hold nothing but nibble pairs
  constexpr int pair = std::is_same_v<Block, BlockQ4_K> ? 32 : 16;
  for (int i = 0; i < Block::size; i += 2 * pair) nibble_pair(b.q + i / 2, q + i, pair);
}

void quants(const BlockQ8_0& b, uint8_t* q) { std::memcpy(q, b.q, sizeof b.q); }

void quants(const BlockQ5_0& b, uint8_t* q) {
  nibble_pair(b.q, q, 16);
  add_fifth_bits(b.high, q);
}

void quants(const BlockQ5_1& b, uint8_t* q) {
  nibble_pair(b.q, q, 16);
  add_fifth_bits(b.high, q);
}

void quants(const BlockQ2_K& b, uint8_t* q) {
  for (int i = 0; i < super_size; ++i) q[i] = static_cast<uint8_t>(two_bits(b.q, i));
}

void quants(const BlockQ3_K& b, uint8_t* q) {
  for (int i = 0; i < super_size; ++i)
    q[i] = static_cast<uint8_t>(two_bits(b.q, i) | (b.high[i % 32] >> i / 32 & 1) << 2);
}

void quants(const BlockQ5_K& b, uint8_t* q) {
  for (int i = 0; i < super_size; i += 64) nibble_pair(b.q + i / 2, q + i, 32);
  for (int i = 0; i < super_size; ++i) q[i] = static_cast<uint8_t>(q[i] | (b.high[i % 32] >> i / 32 & 1) << 4);
}

void quants(const BlockQ6_K& b, uint8_t* q) {
  for (int i = 0; i < super_size; i += 128) nibble_pair(b.q + i / 2, q + i, 64);
  for (int i = 0; i < super_size; ++i) q[i] = static_cast<uint8_t>(q[i] | two_bits(b.high, i) << 4);
}

// ---- scales of row r of a group, in the record of the block

void put_half(std::byte* record, int at, int r, Half x) { std::memcpy(record + at + 2 * r, &x, sizeof x); }

template <class T>
void put_byte(std::byte* record, int at, int r, T x) {
  record[at + r] = static_cast<std::byte>(x);
}

template <class Block>
void scales(const Block& b, std::byte* record, int r) {  // types with nothing but d
  put_half(record, 0, r, b.d);
}

void scales(const BlockQ4_1& b, std::byte* record, int r) {
  put_half(record, 0, r, b.d);
  put_half(record, 16, r, b.m);
}

void scales(const BlockQ5_1& b, std::byte* record, int r) {
  put_half(record, 0, r, b.d);
  put_half(record, 16, r, b.m);
}

void scales(const BlockMXFP4& b, std::byte* record, int r) { put_byte(record, 0, r, b.e); }

void scales(const BlockIQ4_XS& b, std::byte* record, int r) {
  put_half(record, 0, r, b.d);
  for (int j = 0; j < 8; ++j) put_byte(record, 16 + 8 * j, r, iq4_scale(b, j) - 32);
}

template <class Block>
void k_quant_scales(const Block& b, std::byte* record, int r) {
  put_half(record, 0, r, b.d);
  put_half(record, 16, r, b.dmin);
  for (int j = 0; j < 8; ++j) {
    const KScales s = k_scales(b.scales, j);
    put_byte(record, 32 + 16 * j, r, s.scale);
    put_byte(record, 40 + 16 * j, r, s.min);
  }
}

void scales(const BlockQ4_K& b, std::byte* record, int r) { k_quant_scales(b, record, r); }
void scales(const BlockQ5_K& b, std::byte* record, int r) { k_quant_scales(b, record, r); }

void scales(const BlockQ6_K& b, std::byte* record, int r) {
  put_half(record, 0, r, b.d);
  for (int j = 0; j < 16; ++j) put_byte(record, 16 + 8 * j, r, b.scales[j]);
}

void scales(const BlockQ3_K& b, std::byte* record, int r) {  // the file's 12 bytes have this very order
  put_half(record, 0, r, b.d);
  for (int j = 0; j < 12; ++j) put_byte(record, 16 + 8 * j, r, b.scales[j]);
}

void scales(const BlockQ2_K& b, std::byte* record, int r) {
  put_half(record, 0, r, b.d);
  put_half(record, 16, r, b.dmin);
  for (int j = 0; j < 16; ++j) put_byte(record, 32 + 8 * j, r, b.scales[j]);
}

// ---- planes: eight rows of 32 quants, rows `stride` apart, to a block's part of each plane and back

// `bits` bits of every byte from bit `shift` on.
constexpr uint32_t spread(int bits) { return 0x01010101u * ((1u << bits) - 1); }

void put_plane(int bits, int shift, const uint8_t* q, int stride, std::byte* plane) {
  const int held = 8 / bits;  // dwords of quants in a dword of the plane
  const uint32_t mask = spread(bits);
  for (int i = 0; i < bits; ++i)
    for (int r = 0; r < lanes; ++r) {
      uint32_t word = 0;
      for (int j = 0; j < held; ++j) {
        const int g = bits == 4 ? i + 4 * j : held * i + j;
        word |= (load_dword(q + r * stride + 4 * g) >> shift & mask) << bits * j;
      }
      store_dword(plane + (i * lanes + r) * 4, word);
    }
}

uint32_t get_plane(int bits, const std::byte* plane, int g, int r) {
  const int held = 8 / bits, i = bits == 4 ? g % 4 : g / held, j = bits == 4 ? g / 4 : g % held;
  return load_dword(plane + (i * lanes + r) * 4) >> bits * j & spread(bits);
}

void put_planes(const BlockLayout& layout, const uint8_t* q, int stride, std::byte* base, std::byte* upper) {
  // A constant number of bits lets the compiler unroll each.
  if (layout.base_bits == 8) put_plane(8, 0, q, stride, base);
  if (layout.base_bits == 4) put_plane(4, 0, q, stride, base);
  if (layout.base_bits == 2) put_plane(2, 0, q, stride, base);
  if (layout.upper_bits == 1) put_plane(1, layout.base_bits, q, stride, upper);
  if (layout.upper_bits == 2) put_plane(2, layout.base_bits, q, stride, upper);
}

// The rows that a group has.
int64_t rows_of(const PackedShape& shape, int64_t group) {
  return std::min<int64_t>(lanes, shape.rows - group % shape.matrix_groups() * lanes);
}

template <class Block>
void pack_group(const PackedShape& shape, const std::byte* plain, std::byte* packed, int64_t group) {
  const BlockLayout layout = block_layout(shape.type);
  const int64_t blocks = shape.k / 32, row_size = row_bytes(shape.type, shape.k);
  const int rows = static_cast<int>(rows_of(shape, group));
  const std::byte* from = plain + shape.first_row(group) * row_size;
  std::byte* to = packed + group * shape.group_bytes;
  const int64_t end = rows < lanes ? 0 : layout.end(blocks);
  std::memset(to + end, 0, static_cast<size_t>(shape.group_bytes - end));
  uint8_t q[lanes][Block::size] = {};
  for (int64_t i = 0; i < shape.k / Block::size; ++i) {
    std::byte* record = to + layout.scales_at(blocks) + i * layout.record_bytes();
    for (int r = 0; r < rows; ++r) {
      const Block block = load_block<Block>(from + r * row_size + i * static_cast<int64_t>(sizeof(Block)));
      quants(block, q[r]);
      scales(block, record, r);
    }
    for (int j = 0; j < Block::size / 32; ++j) {
      const int64_t b = i * (Block::size / 32) + j;
      put_planes(layout, q[0] + 32 * j, Block::size, to + b * layout.base_bytes(),
                 to + layout.upper_at(blocks) + b * layout.upper_bytes());
    }
  }
}

template <class T>
void pack_plain_group(const PackedShape& shape, const std::byte* plain, std::byte* packed, int64_t group) {
  constexpr auto size = static_cast<int64_t>(sizeof(T));
  const int64_t rows = rows_of(shape, group);
  const std::byte* from = plain + shape.first_row(group) * shape.k * size;
  T* to = reinterpret_cast<T*>(packed + group * shape.group_bytes);
  if (rows < lanes) std::memset(to, 0, static_cast<size_t>(shape.group_bytes));
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = 0; i < shape.k; ++i) to[i * lanes + r] = load_block<T>(from + (r * shape.k + i) * size);
}

using PackGroup = void (*)(const PackedShape&, const std::byte*, std::byte*, int64_t);

PackGroup packer(DType type) {
  switch (type) {
    case DType::f32:
      return pack_plain_group<uint32_t>;
    case DType::f16:
    case DType::bf16:
      return pack_plain_group<uint16_t>;
    case DType::q8_0:
      return pack_group<BlockQ8_0>;
    case DType::q4_0:
      return pack_group<BlockQ4_0>;
    case DType::q4_1:
      return pack_group<BlockQ4_1>;
    case DType::q5_0:
      return pack_group<BlockQ5_0>;
    case DType::q5_1:
      return pack_group<BlockQ5_1>;
    case DType::q2_k:
      return pack_group<BlockQ2_K>;
    case DType::q3_k:
      return pack_group<BlockQ3_K>;
    case DType::q4_k:
      return pack_group<BlockQ4_K>;
    case DType::q5_k:
      return pack_group<BlockQ5_K>;
    case DType::q6_k:
      return pack_group<BlockQ6_K>;
    case DType::iq4_nl:
      return pack_group<BlockIQ4_NL>;
    case DType::iq4_xs:
      return pack_group<BlockIQ4_XS>;
    case DType::mxfp4:
      return pack_group<BlockMXFP4>;
    default:
      return nullptr;
  }
}

// ---- decoding

struct ScaleMin {
  float scale, min;
};

float half_at(const std::byte* record, int64_t at, int r) { return to_float(load_block<Half>(record + at + 2 * r)); }
int byte_at(const std::byte* record, int64_t at, int r) { return static_cast<int>(record[at + r]); }
int signed_at(const std::byte* record, int64_t at, int r) { return static_cast<int8_t>(record[at + r]); }

// Of half `h` (16 elements) of block `b` of 32 in its record; products are rounded as decode_row's.
ScaleMin scale_min(Scales kind, const std::byte* record, int b, int h, int r) {
  const int j = 2 * b + h;
  switch (kind) {
    case Scales::half:
      return {half_at(record, 0, r), 0};
    case Scales::half_min:
      return {half_at(record, 0, r), half_at(record, 16, r)};
    case Scales::e8m0:
      return {e8m0_half(static_cast<uint8_t>(record[r])), 0};
    case Scales::k32:
      return {half_at(record, 0, r) * static_cast<float>(signed_at(record, 16 + 8 * b, r)), 0};
    case Scales::k32_min:
      return {half_at(record, 0, r) * static_cast<float>(byte_at(record, 32 + 16 * b, r)),
              -(half_at(record, 16, r) * static_cast<float>(byte_at(record, 40 + 16 * b, r)))};
    case Scales::k16:
      return {half_at(record, 0, r) * static_cast<float>(signed_at(record, 16 + 8 * j, r)), 0};
    case Scales::k16_six: {
      const int low = byte_at(record, 16 + 8 * (j % 8), r) >> j / 8 * 4 & 15;
      const int high = byte_at(record, 80 + 8 * (j % 4), r) >> j / 4 * 2 & 3;
      return {half_at(record, 0, r) * static_cast<float>((low | high << 4) - 32), 0};
    }
    case Scales::k16_min: {
      const int both = byte_at(record, 32 + 8 * j, r);
      return {half_at(record, 0, r) * static_cast<float>(both & 15),
              -(half_at(record, 16, r) * static_cast<float>(both >> 4))};
    }
  }
  return {};
}

float number(const BlockLayout& layout, uint8_t q) {
  switch (layout.quant) {
    case Quant::offset:
      return static_cast<float>(q - layout.offset);
    case Quant::signed_byte:
      return static_cast<float>(static_cast<int8_t>(q));
    case Quant::iq4:
      return static_cast<float>(iq4_values[q]);
    case Quant::fp4:
      return static_cast<float>(fp4_doubled[q]);
  }
  return 0;
}

void decode_packed_blocks(const BlockLayout& layout, int64_t blocks, const std::byte* group, int r, float* to) {
  for (int64_t b = 0; b < blocks; ++b, to += 32) {
    uint8_t q[32];
    const std::byte* upper = group + layout.upper_at(blocks) + b * layout.upper_bytes();
    for (int g = 0; g < 8; ++g) {
      uint32_t four = get_plane(layout.base_bits, group + b * layout.base_bytes(), g, r);
      if (layout.upper_bits != 0) four |= get_plane(layout.upper_bits, upper, g, r) << layout.base_bits;
      std::memcpy(q + 4 * g, &four, sizeof four);
    }
    const int64_t record = layout.super() ? b / 8 : b;
    const std::byte* at = group + layout.scales_at(blocks) + record * layout.record_bytes();
    for (int h = 0; h < 2; ++h) {
      const ScaleMin s = scale_min(layout.scales, at, static_cast<int>(b % 8), h, r);
      for (int i = 16 * h; i < 16 * h + 16; ++i) {
        const float product = s.scale * number(layout, q[i]);
        to[i] = layout.minimum() ? product + s.min : product;
      }
    }
  }
}

}  // namespace

PackedShape packed_shape(DType type, int64_t rows, int64_t k) {
  if (!is_plain(type) && !has_blocks(type)) bad_input("a weight can't be of type {}", name(type));
  const int64_t plain = row_bytes(type, k);  // refuses broken blocks
  const int64_t group = has_blocks(type) ? block_layout(type).end(k / 32) : checked_mul(plain, lanes);
  const PackedShape shape{type, rows, k, (group + 31) / 32 * 32};
  checked_mul(shape.groups(), shape.group_bytes);
  return shape;
}

PackedShape packed_shape(DType type, std::span<const int64_t> sizes) {
  if (sizes.size() != 2 && sizes.size() != 3)
    throw_error(Exit::failed, "a weight of {} dimensions is neither a matrix nor a stack of them", sizes.size());
  PackedShape shape = packed_shape(type, sizes[sizes.size() - 2], sizes.back());
  if (sizes.size() == 3) shape.matrices = sizes[0];
  checked_mul(shape.matrices, shape.matrix_bytes());
  return shape;
}

void pack_groups(const PackedShape& shape, const std::byte* plain, std::byte* packed, int64_t first, int64_t last) {
  const PackGroup pack = packer(shape.type);
  for (int64_t group = first; group < last; ++group) pack(shape, plain, packed, group);
}

void decode_packed_row(const PackedShape& shape, const std::byte* packed, int64_t row, float* to) {
  const int64_t in_matrix = row % shape.rows;
  const std::byte* group = packed + row / shape.rows * shape.matrix_bytes() + in_matrix / lanes * shape.group_bytes;
  const int r = static_cast<int>(in_matrix % lanes);
  if (has_blocks(shape.type)) return decode_packed_blocks(block_layout(shape.type), shape.k / 32, group, r, to);
  const int64_t size = info(shape.type).block_bytes;
  for (int64_t i = 0; i < shape.k; ++i) decode_row(shape.type, group + (i * lanes + r) * size, to + i, 1);
}

}  // namespace consonant
