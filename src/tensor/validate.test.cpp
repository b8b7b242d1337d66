// SPDX-License-Identifier: Apache-2.0
#include "tensor/validate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "base/error.hpp"
#include "tensor/blocks.hpp"
#include "tensor/convert.hpp"
#include "tensor/quants_fixture.hpp"

namespace consonant {
namespace {

struct ScaleField {
  DType type;
  size_t offset;
};

// Where the half-precision scales stand, written out here by hand.
const ScaleField fields[] = {
    {DType::q8_0, 0}, {DType::q4_0, 0},  {DType::q4_1, 0},   {DType::q4_1, 2},   {DType::q5_0, 0},  {DType::q5_1, 0},
    {DType::q5_1, 2}, {DType::q2_k, 80}, {DType::q2_k, 82},  {DType::q3_k, 108}, {DType::q4_k, 0},  {DType::q4_k, 2},
    {DType::q5_k, 0}, {DType::q5_k, 2},  {DType::q6_k, 208}, {DType::iq4_nl, 0}, {DType::iq4_xs, 0}};

void put_half(std::vector<std::byte>& raw, size_t at, uint16_t bits) { std::memcpy(raw.data() + at, &bits, 2); }

// Random bytes with finite scales, starting at an odd address.
std::vector<std::byte> sound_blocks(DType type, int64_t count) {
  std::mt19937 random(7);
  const auto stride = static_cast<size_t>(info(type).block_bytes);
  std::vector<std::byte> raw(1 + static_cast<size_t>(count) * stride);
  for (auto& b : raw) b = static_cast<std::byte>(random());
  for (const ScaleField& field : fields)
    if (field.type == type)
      for (size_t i = 0; i < static_cast<size_t>(count); ++i)
        put_half(raw, 1 + i * stride + field.offset, static_cast<uint16_t>((random() & 0x8000) | random() % 0x7C00));
  return raw;
}

TEST(Validate, FindsEveryNonfiniteScaleAndNothingElse) {
  const int64_t count = 2500;
  for (const ScaleField& field : fields) {
    const auto stride = static_cast<size_t>(info(field.type).block_bytes);
    const auto sound = sound_blocks(field.type, count);
    EXPECT_EQ(find_nonfinite_scale(field.type, sound.data() + 1, count), std::nullopt) << name(field.type);
    for (uint16_t bits : {0x7C00, 0xFC00, 0x7C01, 0x7E00, 0xFFFF})
      for (int64_t at : {int64_t{0}, int64_t{1}, int64_t{1023}, int64_t{1024}, int64_t{2047}, count - 1}) {
        auto raw = sound;
        put_half(raw, 1 + static_cast<size_t>(at) * stride + field.offset, bits);
        EXPECT_EQ(find_nonfinite_scale(field.type, raw.data() + 1, count), at) << name(field.type) << " " << bits;
        EXPECT_EQ(find_nonfinite_scale(field.type, raw.data() + 1, at), std::nullopt) << name(field.type);
      }
    for (uint16_t bits : {0x7BFF, 0xFBFF, 0x0000, 0x8000, 0x0001, 0x03FF}) {
      auto raw = sound;
      put_half(raw, 1 + field.offset, bits);
      EXPECT_EQ(find_nonfinite_scale(field.type, raw.data() + 1, count), std::nullopt) << name(field.type);
    }
  }
}

TEST(Validate, Mxfp4RefusesItsNanExponentAlone) {
  std::vector<std::byte> raw(17 * 300, std::byte{0xFF});
  for (size_t i = 0; i < 255; ++i) raw[17 * i] = static_cast<std::byte>(i);
  EXPECT_EQ(find_nonfinite_scale(DType::mxfp4, raw.data(), 255), std::nullopt);
  EXPECT_EQ(find_nonfinite_scale(DType::mxfp4, raw.data(), 300), 255);
}

TEST(Validate, AgreesWithDecoding) {  // wherever a single scale is broken, decoding gives a NaN or an infinity
  for (const ScaleField& field : fields) {
    const int columns = info(field.type).block;
    auto raw = sound_blocks(field.type, 1);
    std::vector<float> x(static_cast<size_t>(columns));
    put_half(raw, 1 + field.offset, 0x7E01);
    decode_row(field.type, raw.data() + 1, x.data(), columns);
    bool finite = true;
    for (float v : x) finite = finite && std::isfinite(v);
    EXPECT_FALSE(finite) << name(field.type);
  }
}

TEST(Validate, NamesTensorRowAndBlock) {
  std::vector<std::byte> raw(static_cast<size_t>(5 * row_bytes(DType::q4_0, 96)));
  check_finite_scales("blk.0.attn_q.weight", DType::q4_0, raw, 96);
  put_half(raw, (2 * 3 + 1) * 18, 0x7E00);
  try {
    check_finite_scales("blk.0.attn_q.weight", DType::q4_0, raw, 96);
    FAIL() << "took a NaN scale";
  } catch (const Error& e) {
    EXPECT_EQ(e.exit(), Exit::input);
    EXPECT_THAT(e.what(), testing::AllOf(testing::HasSubstr("blk.0.attn_q.weight"), testing::HasSubstr("q4_0"),
                                         testing::HasSubstr("row 2, block 1")));
  }
}

TEST(Validate, TakesPlainTypesAndSoundFiles) {
  const std::vector<std::byte> nan(64, std::byte{0xFF});
  check_finite_scales("x", DType::f32, nan, 4);
  check_finite_scales("x", DType::f16, nan, 4);
  check_finite_scales("x", DType::q4_0, {}, 0);
  const test::QuantsFixture fixture;
  for (const ScaleField& field : fields)
    check_finite_scales("x", field.type, fixture.raw(field.type), test::QuantsFixture::columns);
  check_finite_scales("x", DType::mxfp4, fixture.raw(DType::mxfp4), test::QuantsFixture::columns);
}

}  // namespace
}  // namespace consonant
