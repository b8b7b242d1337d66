// SPDX-License-Identifier: Apache-2.0
#include "ops/quantize/quantize.hpp"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "ops/kernel.hpp"
#include "tensor/activations.hpp"

namespace consonant {

extern const Kernel quantize_cpu, quantize_ref;

namespace {

struct Quantized {
  std::vector<std::byte> bytes;
  int64_t k;
  ActivationRow row(int64_t r) const { return ActivationRow::at(bytes.data() + r * ActivationRow::bytes(k, 1), k, 1); }
};

Quantized quantized(const Kernel& kernel, const std::vector<float>& x, int64_t rows, int64_t k, int64_t stride) {
  Quantized out{std::vector<std::byte>(static_cast<size_t>(rows * ActivationRow::bytes(k, 1))), k};
  Node node;
  node.op = id(Op::quantize);
  const Shape shape{rows, k};
  const View in[] = {{reinterpret_cast<std::byte*>(const_cast<float*>(x.data())), DType::f32, shape, {stride, 1}}};
  const View to[] = {{out.bytes.data(), DType::q8_x, shape, {k, 1}}};
  const Args args{&node, in, to};
  const Work work = kernel.work(args);
  for (int64_t chunk = work.chunks; chunk-- > 0;) kernel.run(args, chunk, nullptr);
  return out;
}

std::vector<float> random_floats(int64_t n, float spread) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  std::vector<float> x(static_cast<size_t>(n));
  for (float& v : x) v = normal(random) * std::exp(spread * normal(random));
  return x;
}

TEST(Quantize, IsNearestAndFollowsTheEquation) {
  const int64_t k = 96;
  const std::vector<float> x = random_floats(7 * k, 2);
  const Quantized out = quantized(quantize_cpu, x, 7, k, k);
  for (int64_t r = 0; r < 7; ++r)
    for (int64_t b = 0; b < k / 32; ++b) {
      const ActivationRow row = out.row(r);
      const float* from = x.data() + r * k + b * 32;
      float greatest = 0;
      for (int i = 0; i < 32; ++i) greatest = std::max(greatest, std::fabs(from[i]));
      ASSERT_EQ(row.scale[b], greatest / 127);
      int total[2] = {};
      for (int i = 0; i < 32; ++i) {
        ASSERT_EQ(row.q[b * 32 + i], std::nearbyint(from[i] / row.scale[b]));
        total[i / 16] += row.q[b * 32 + i];
      }
      for (int h = 0; h < 2; ++h) ASSERT_EQ(row.sum[2 * b + h], row.scale[b] * static_cast<float>(total[h]));
    }
}

TEST(Quantize, GivesTheBitsOfTheReferenceOnEveryInstructionSet) {
  const int64_t k = 320, stride = 352;
  std::vector<float> x = random_floats(9 * stride, 3);
  std::fill(x.begin(), x.begin() + 64, 0.0f);                                                // zeros
  for (int i = 64; i < 96; ++i) x[static_cast<size_t>(i)] = static_cast<float>(i - 80) / 2;  // ties
  for (int i = 96; i < 128; ++i) x[static_cast<size_t>(i)] *= 1e-42f;  // a scale without precision
  for (int i = 128; i < 160; ++i) x[static_cast<size_t>(i)] = 1e-45f;  // a scale that is zero
  for (int i = 160; i < 192; ++i) x[static_cast<size_t>(i)] = std::numeric_limits<float>::max();
  const Quantized want = quantized(quantize_ref, x, 9, k, stride);
  for (int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    EXPECT_EQ(quantized(quantize_cpu, x, 9, k, stride).bytes, want.bytes) << hwy::TargetName(target);
    hwy::SetSupportedTargetsForTest(0);
  }
}

TEST(Quantize, NanAndInfinityPoisonTheirBlock) {
  for (float bad : {NAN, -NAN, INFINITY, -INFINITY})
    for (const Kernel* kernel : {&quantize_cpu, &quantize_ref}) {
      std::vector<float> x = random_floats(96, 1);
      x[32 + 17] = bad;
      const Quantized out = quantized(*kernel, x, 1, 96, 96);
      for (int b = 0; b < 3; ++b) {
        EXPECT_EQ(std::isnan(out.row(0).scale[b]), b == 1);
        for (int h = 0; h < 2; ++h) EXPECT_EQ(std::isnan(out.row(0).sum[2 * b + h]), b == 1);
      }
    }
}

}  // namespace
}  // namespace consonant
