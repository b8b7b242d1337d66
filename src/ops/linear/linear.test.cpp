// SPDX-License-Identifier: Apache-2.0
#include "ops/linear/linear.hpp"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "ops/kernel.hpp"
#include "tensor/activations.hpp"
#include "tensor/convert.hpp"
#include "tensor/half.hpp"
#include "tensor/packed.hpp"

namespace consonant {

extern const Kernel linear_cpu, linear_ref, quantize_cpu;

namespace {

constexpr DType weight_types[] = {DType::f32,  DType::f16,    DType::bf16,   DType::q8_0, DType::q4_0, DType::q4_1,
                                  DType::q5_0, DType::q5_1,   DType::q2_k,   DType::q3_k, DType::q4_k, DType::q5_k,
                                  DType::q6_k, DType::iq4_nl, DType::iq4_xs, DType::mxfp4};

View view_of(const void* data, DType type, const Shape& shape, Layout layout = Layout::plain) {
  View view{static_cast<std::byte*>(const_cast<void*>(data)), type, shape, dense(type, shape).strides, layout};
  return view;
}

// Runs a kernel, chunks in a shuffled order.
void run_kernel(const Kernel& kernel, const Args& args, bool shuffled = false) {
  const Work work = kernel.work(args);
  std::vector<int64_t> order(static_cast<size_t>(work.chunks));
  std::iota(order.begin(), order.end(), 0);
  if (shuffled) std::shuffle(order.begin(), order.end(), std::mt19937(7));
  // Exactly the bytes asked for, full of NaNs: what a chunk reads it must have written.
  for (int64_t chunk : order) {
    std::vector<float> scratch(static_cast<size_t>(work.scratch / 4), NAN);
    kernel.run(args, chunk, reinterpret_cast<std::byte*>(scratch.data()));
  }
}

// Random blocks whose scales are sane: bytes of any value except in halves, which are kept small and finite.
std::vector<std::byte> random_weight(DType type, int64_t rows, int64_t k, std::mt19937& random) {
  std::normal_distribution<float> normal;
  std::vector<std::byte> out(static_cast<size_t>(rows * row_bytes(type, k)));
  if (!is_quantized(type)) {
    const auto size = static_cast<size_t>(info(type).block_bytes);
    for (size_t at = 0; at < out.size(); at += size) {
      const float x = normal(random);
      const Half half = to_half(x);
      const BFloat16 bfloat = to_bfloat16(x);
      const void* from = type == DType::f16 ? static_cast<const void*>(&half) : &bfloat;
      std::memcpy(out.data() + at, type == DType::f32 ? &x : from, size);
    }
    return out;
  }
  for (std::byte& b : out) b = static_cast<std::byte>(random());
  const DTypeInfo& t = info(type);
  const auto half_at = [&](size_t at) {  // 2^-8 ... 2^-5, either sign
    out[at + 1] = static_cast<std::byte>((random() % 2 << 7) | (0x1C + random() % 12));
  };
  for (size_t at = 0; at < out.size(); at += static_cast<size_t>(t.block_bytes)) {
    switch (type) {
      case DType::mxfp4:
        out[at] = static_cast<std::byte>(118 + random() % 8);
        break;
      case DType::q6_k:
        half_at(at + 208);
        break;
      case DType::q3_k:
        half_at(at + 108);
        break;
      case DType::q2_k:
        half_at(at + 80), half_at(at + 82);
        break;
      case DType::q4_1:
      case DType::q5_1:
      case DType::q4_k:
      case DType::q5_k:
        half_at(at), half_at(at + 2);
        break;
      default:
        half_at(at);
    }
  }
  return out;
}

struct Problem {
  DType type;
  int64_t tokens, outputs, k;
  bool int8, bias = false, residual = false, plain = false;
};

class Linear {
 public:
  explicit Linear(const Problem& p) : p_(p), random_(static_cast<uint32_t>(p.k * 31 + p.outputs)) {
    std::normal_distribution<float> normal;
    const auto fill = [&](std::vector<float>& x, int64_t n) {
      x.resize(static_cast<size_t>(n));
      for (float& v : x) v = normal(random_);
    };
    fill(x_, p.tokens * p.k);
    fill(bias_, p.outputs);
    fill(residual_, p.tokens * p.outputs);
    weight_ = random_weight(p.type, p.outputs, p.k, random_);
    const PackedShape shape = packed_shape(p.type, p.outputs, p.k);
    packed_.resize(static_cast<size_t>(shape.bytes()) + 64);
    pack_groups(shape, weight_.data(), aligned(), 0, shape.groups());
    if (p.int8) quantize_x();
  }

  // Rows first ... first + n of the output.
  std::vector<float> multiply(const Kernel& kernel, int64_t first, int64_t n, bool shuffled = false) {
    std::vector<float> y(static_cast<size_t>(n * p_.outputs) + 8, -1);
    Node node;
    node.op = id(Op::linear);
    node.attributes = LinearAttr{p_.bias, p_.residual};
    const Shape out{n, p_.outputs};
    const bool rows8 = !p_.plain;
    std::vector<View> in = {p_.int8 ? view_of(x8_.data() + first * row_bytes(DType::q8_x, p_.k), DType::q8_x, {n, p_.k})
                                    : view_of(x_.data() + first * p_.k, DType::f32, {n, p_.k}),
                            view_of(rows8 ? aligned() : weight_.data(), p_.type, {p_.outputs, p_.k},
                                    rows8 ? Layout::rows8 : Layout::plain)};
    if (p_.bias) in.push_back(view_of(bias_.data(), DType::f32, {p_.outputs}));
    if (p_.residual) in.push_back(view_of(residual_.data() + first * p_.outputs, DType::f32, out));
    const View to[] = {view_of(y.data(), DType::f32, out)};
    run_kernel(kernel, {&node, in, to}, shuffled);
    for (int i = 0; i < 8; ++i) {
      EXPECT_EQ(y.back(), -1) << "written past the end";
      y.pop_back();
    }
    return y;
  }

  const std::vector<float>& bias() const { return bias_; }
  const std::vector<float>& residual() const { return residual_; }
  void poison(int64_t token, int64_t at) {
    x_[static_cast<size_t>(token * p_.k + at)] = NAN;
    quantize_x();
  }

  // What rounding may do: a few steps of float32 for the sum of the magnitudes.
  std::vector<double> tolerance() {
    std::vector<double> out(static_cast<size_t>(p_.tokens * p_.outputs));
    std::vector<float> w(static_cast<size_t>(p_.k));
    for (int64_t r = 0; r < p_.outputs; ++r) {
      decode_row(p_.type, weight_.data() + r * row_bytes(p_.type, p_.k), w.data(), p_.k);
      double norm = 0;
      for (float v : w) norm += double{v} * v;
      for (int64_t t = 0; t < p_.tokens; ++t) {
        double length = 0;
        for (int64_t i = 0; i < p_.k; ++i) length += std::pow(x_[static_cast<size_t>(t * p_.k + i)], 2);
        out[static_cast<size_t>(t * p_.outputs + r)] = 1e-5 + 4e-6 * std::sqrt(norm * length);
      }
    }
    return out;
  }

 private:
  std::byte* aligned() {
    auto at = reinterpret_cast<uintptr_t>(packed_.data());
    return packed_.data() + ((at + 63) / 64 * 64 - at);
  }

  void quantize_x() {
    x8_.resize(static_cast<size_t>(p_.tokens * row_bytes(DType::q8_x, p_.k)));
    Node node;
    node.op = id(Op::quantize);
    const View in[] = {view_of(x_.data(), DType::f32, {p_.tokens, p_.k})};
    const View out[] = {view_of(x8_.data(), DType::q8_x, {p_.tokens, p_.k})};
    run_kernel(quantize_cpu, {&node, in, out});
  }

  Problem p_;
  std::mt19937 random_;
  std::vector<float> x_, bias_, residual_;
  std::vector<std::byte> weight_, packed_, x8_;
};

void agrees_with_reference(const Problem& p) {
  Linear linear(p);
  const std::vector<float> got = linear.multiply(linear_cpu, 0, p.tokens),
                           want = linear.multiply(linear_ref, 0, p.tokens);
  const std::vector<double> tolerance = linear.tolerance();
  for (size_t i = 0; i < want.size(); ++i)
    ASSERT_NEAR(got[i], want[i], tolerance[i]) << name(p.type) << " " << p.tokens << " x " << p.outputs << " x " << p.k
                                               << (p.int8 ? ", int8" : ", float") << ", element " << i;
}

class LinearTypes : public testing::TestWithParam<DType> {
 protected:
  DType type() const { return GetParam(); }
  int64_t block() const { return std::max(32, info(type()).block); }
  // Activations that go with the type.
  std::vector<bool> modes() const { return is_quantized(type()) ? std::vector{false, true} : std::vector{false}; }
};

TEST_P(LinearTypes, AgreesWithTheReference) {
  for (bool int8 : modes())
    for (int64_t k : {block(), 2 * block(), int64_t{768}, int64_t{2048}})
      for (int64_t outputs : {1, 8, 13, 40})
        for (int64_t tokens : {0, 1, 3, 7, 23}) agrees_with_reference({type(), tokens, outputs, k, int8});
}

TEST_P(LinearTypes, AgreesWithTheReferenceOnEveryInstructionSet) {
  for (int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    for (bool int8 : modes()) agrees_with_reference({type(), 7, 21, 3 * block(), int8});
    hwy::SetSupportedTargetsForTest(0);
  }
}

TEST_P(LinearTypes, ATokenDoesNotDependOnItsNeighboursNorOnTheOrderOfChunks) {
  for (bool int8 : modes()) {
    const Problem p{type(), 155, 75, std::max<int64_t>(block(), 288), int8};
    Linear linear({type(), p.tokens, p.outputs, p.k / block() * block(), int8});
    const std::vector<float> all = linear.multiply(linear_cpu, 0, p.tokens);
    EXPECT_EQ(all, linear.multiply(linear_cpu, 0, p.tokens, true));
    for (int64_t n : {1, 2, 5, 12})
      for (int64_t first : {int64_t{0}, int64_t{3}, p.tokens - n}) {
        const std::vector<float> some = linear.multiply(linear_cpu, first, n);
        EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin() + first * p.outputs))
            << n << " tokens at " << first;
      }
  }
}

TEST_P(LinearTypes, PlainWeightsGiveTheSameBits) {
  for (bool int8 : modes()) {
    Problem p{type(), 5, 27, 2 * block(), int8};
    Linear packed(p);
    p.plain = true;
    Linear plain(p);
    EXPECT_EQ(packed.multiply(linear_cpu, 0, 5), plain.multiply(linear_cpu, 0, 5));
    EXPECT_EQ(packed.multiply(linear_ref, 0, 5), plain.multiply(linear_ref, 0, 5));
  }
}

TEST_P(LinearTypes, BiasAndResidualAreAddedAsNodesWould) {
  for (bool int8 : modes()) {
    Linear bare({type(), 5, 27, block(), int8});
    Linear full({type(), 5, 27, block(), int8, true, true});
    Linear one({type(), 5, 27, block(), int8, false, true});
    agrees_with_reference({type(), 5, 27, block(), int8, true, true});
    agrees_with_reference({type(), 5, 27, block(), int8, true, false});
    agrees_with_reference({type(), 5, 27, block(), int8, false, true});
    const std::vector<float> product = bare.multiply(linear_cpu, 0, 5);
    const std::vector<float> with_both = full.multiply(linear_cpu, 0, 5), with_one = one.multiply(linear_cpu, 0, 5);
    for (size_t i = 0; i < product.size(); ++i) {
      ASSERT_EQ(with_both[i], product[i] + full.bias()[i % 27] + full.residual()[i]);
      ASSERT_EQ(with_one[i], product[i] + one.residual()[i]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, LinearTypes, testing::ValuesIn(weight_types),
                         [](const auto& test) { return std::string(name(test.param)); });

TEST(LinearCpu, LongRowsAndManyTokens) {
  for (DType type : {DType::q4_1, DType::q8_0, DType::q6_k}) {
    agrees_with_reference({type, 2, 9, 16384, true});
    agrees_with_reference({type, 513, 17, 512, true});
    agrees_with_reference({type, 145, 17, 512, false});
  }
}

// A block of x without numbers must show in everything it touches, and in nothing else.
TEST(LinearCpu, NanActivationsPoisonTheirTokenOnly) {
  for (DType type : {DType::q4_0, DType::q4_1, DType::q8_0, DType::q6_k}) {
    Linear linear({type, 3, 8, 256, true});
    linear.poison(1, 77);
    const std::vector<float> y = linear.multiply(linear_cpu, 0, 3);
    for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(std::isnan(y[i]), i / 8 == 1) << name(type) << " " << i;
  }
}

}  // namespace
}  // namespace consonant
