// SPDX-License-Identifier: Apache-2.0
// The kernels of linear for CUDA's tensor cores, on an emulator that plays the tensor cores: their indices, their use
// of shared memory, and that all forms for few and some tokens give a token the same bits, and all for many.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <type_traits>

#include "ops/linear/float_rows.hpp"
#include "ops/rms_norm/rms_norm.hpp"
#include "tensor/convert.hpp"

namespace consonant::GPU_BUILD {

GpuKernel rms_norm_gpu();

namespace {

View view(std::byte* data, DType type, Shape shape, Layout layout = Layout::plain) {
  return {data, type, shape, dense(type, shape).strides, layout};
}

class TensorCores : public testing::Test {
 protected:
  TensorCores() {
    const_cast<Limits&>(device->limits()).shared_bytes = 227 * 1024;  // what a card with them has
  }

  template <class T>
  std::byte* upload(const std::vector<T>& values) {
    const auto bytes = static_cast<int64_t>(values.size() * sizeof(T));
    std::byte* const data = device->allocate(bytes);
    device->upload_now(data, reinterpret_cast<const std::byte*>(values.data()), bytes);
    return data;
  }
  std::vector<float> numbers(int64_t n, float scale) {
    std::normal_distribution<float> normal(0, scale);
    std::vector<float> values(static_cast<size_t>(n));
    for (float& x : values) x = normal(random);
    return values;
  }

  // A product with bias and residual of `tokens` by w [rows, k].
  template <DType Type>
  void prepare(int64_t tokens, int64_t rows, int64_t k) {
    const std::vector<float> x = numbers(tokens * k, 1), bias = numbers(rows, weight_scale),
                             added = numbers(tokens * rows, weight_scale);
    const int64_t size = row_bytes(Type, k);
    std::vector<std::byte> plain(static_cast<size_t>(rows * size));
    std::vector<float> decoded(static_cast<size_t>(rows * k));
    for (int64_t r = 0; r < rows; ++r) {
      encode_row(Type, numbers(k, weight_scale).data(), plain.data() + r * size, k);
      decode_row(Type, plain.data() + r * size, decoded.data() + r * k, k);
    }
    Layout layout = Layout::plain;
    if (is_quantized(Type)) {
      const PackedShape shape = packed_shape(Type, rows, k);
      std::vector<std::byte> packed(static_cast<size_t>(shape.bytes()));
      pack_groups(shape, plain.data(), packed.data(), 0, shape.groups());
      plain = packed, layout = Layout::rows8;
    }
    in = {view(upload(x), DType::f32, {tokens, k}), view(upload(plain), Type, {rows, k}, layout),
          view(upload(bias), DType::f32, {rows}), view(upload(added), DType::f32, {tokens, rows})};
    node.attributes = LinearAttr{true, true};
    expected.assign(static_cast<size_t>(tokens * rows), 0), spread = expected;
    for (int64_t t = 0; t < tokens; ++t)
      for (int64_t r = 0; r < rows; ++r) {
        const auto at = static_cast<size_t>(t * rows + r);
        for (int64_t i = 0; i < k; ++i) {
          const double product = double{x[static_cast<size_t>(t * k + i)]} * decoded[static_cast<size_t>(r * k + i)];
          expected[at] += product, spread[at] += product * product;
        }
        expected[at] += double{bias[static_cast<size_t>(r)]} + added[at];
      }
  }

  template <class Form>
  std::vector<float> results(const Form& form) {
    const std::vector<float> empty(expected.size(), NAN);
    const View out[] = {view(upload(empty), DType::f32, {in[0].shape[0], in[1].shape[0]})};
    form(Args{&node, in, out});
    device->wait();
    std::vector<float> y(expected.size());
    std::byte* const pinned = device->allocate_pinned(out[0].shape.count() * 4);
    device->download(pinned, out[0].data, out[0].shape.count() * 4);
    device->wait();
    std::copy_n(pinned, y.size() * 4, reinterpret_cast<std::byte*>(y.data()));
    device->release_pinned(pinned);
    return y;
  }

  template <DType Type>
  void check(int64_t k) {
    prepare<Type>(most_few_tokens, 21, k);
    const auto few = results([&](const Args& args) {
      const View *const weights[] = {&args.in[1]}, *const biases[] = {&args.in[2]}, *const y[] = {&args.out[0]};
      mma::launch_few<Type>({.x = &args.in[0], .weights = weights, .biases = biases, .residual = &args.in[3], .y = y},
                            *device);
    });
    for (size_t i = 0; i < few.size(); ++i)  // rounding to 11 bits adds up like noise
      ASSERT_NEAR(few[i], expected[i], 4 * 0x1p-11 * std::sqrt(spread[i])) << name(Type) << ", element " << i;
    check_one_by_one<Type>(few);
    std::byte* const scratch = device->allocate(mma::records_scratch<Type>(most_few_tokens, k));
    const auto with_records = [&](const auto& form) {
      return results([&](const Args& args) { form(args, mma::launch_records<Type>(args.in[0], *device, scratch)); });
    };
    const auto check_tiles = [&]<class T>(std::type_identity<T>) {
      // Bfloats' two parts of 32 tokens are too much for a block of eight teams.
      if (mma::split_memory < Type, T >> device->limits().shared_bytes) return;
      EXPECT_EQ(few, with_records([&](const Args& args, const mma::Records& records) {
                  EXPECT_TRUE((mma::launch_some_as<Type, T>(args, *device, records)));
                }));
    };
    check_tiles(std::type_identity<mma::Small<Type, 8>>());
    check_tiles(std::type_identity<mma::Small<Type, 16>>());
    check_tiles(std::type_identity<mma::Narrow<8>>());
    check_tiles(std::type_identity<mma::Narrow<16>>());
    check_tiles(std::type_identity<mma::Narrow<32>>());
  }

  // A token alone has a form of its own.
  template <DType Type>
  void check_one_by_one(const std::vector<float>& few) {
    const std::vector<View> all = in;
    const auto rows = static_cast<size_t>(all[1].shape[0]);
    for (int64_t t = 0; t < all[0].shape[0]; ++t) {
      for (const size_t i : {0, 3}) {
        in[i].shape = {1, all[i].shape[1]};
        in[i].data = all[i].data + t * all[i].shape[1] * 4;
      }
      std::vector<float> one = results([&](const Args& args) {
        const View *const weights[] = {&args.in[1]}, *const biases[] = {&args.in[2]}, *const y[] = {&args.out[0]};
        mma::launch_few<Type>({.x = &args.in[0], .weights = weights, .biases = biases, .residual = &args.in[3], .y = y},
                              *device);
      });
      one.resize(rows);
      const auto from = few.begin() + t * static_cast<int64_t>(rows);
      EXPECT_EQ(one, std::vector<float>(from, from + static_cast<int64_t>(rows))) << "token " << t;
    }
    in = all;
  }

  // Many tokens, in slabs of 24 rows or, of halves, as they are.
  template <DType Type, class T>
  std::vector<float> many(int64_t slab) {
    const int64_t tokens = in[0].shape[0], k = in[0].shape[1];
    const std::vector<uint8_t> poison(static_cast<size_t>(mma::HalvesScratch(tokens, slab, k).end), 0xFF);
    std::byte* const scratch = upload(poison);
    return results([&](const Args& args) {
      mma::launch_many<Type>(args, *device, scratch, slab,
                             [&](const mma::HalvesProduct& p, const mma::PlainOutputs& outputs) {
                               mma::launch_tiles<T>(p, outputs, *device);
                             });
    });
  }
  template <DType Type>
  void check_many(int64_t tokens, int64_t rows, int64_t k) {
    prepare<Type>(tokens, rows, k);
    const auto small = many<Type, mma::SmallTile>(Type == DType::f16 ? 0 : 24);
    for (size_t i = 0; i < small.size(); ++i)
      ASSERT_NEAR(small[i], expected[i], 4 * 0x1p-11 * std::sqrt(spread[i])) << name(Type) << ", element " << i;
    const int64_t all = mma::slab_of<Type>(rows, k);
    EXPECT_EQ(small, (many<Type, mma::EvenTile>(all)));
    EXPECT_EQ(small, (many<Type, mma::WideTile>(all)));
  }

  std::unique_ptr<Accelerator> device = gpu::open_device(0);
  std::mt19937 random{1};
  float weight_scale = 0.1f;
  Node node{};
  std::vector<View> in;
  std::vector<double> expected, spread;  // and the sum of the products' squares
};

TEST_F(TensorCores, many_with_super_blocks) { check_many<DType::q4_k>(133, 70, 512); }
TEST_F(TensorCores, many_with_every_kind_of_blocks) {
  check_many<DType::q8_0>(9, 21, 352);
  check_many<DType::q4_0>(9, 21, 96);
  check_many<DType::q4_1>(9, 21, 64);
  check_many<DType::q5_0>(1, 1, 32);
  check_many<DType::q5_1>(9, 21, 352);
  check_many<DType::q2_k>(9, 33, 512);
  check_many<DType::q3_k>(9, 33, 256);
  check_many<DType::q5_k>(9, 33, 256);
  check_many<DType::q6_k>(9, 33, 256);
  check_many<DType::iq4_nl>(9, 21, 96);
  check_many<DType::iq4_xs>(9, 33, 256);
  check_many<DType::mxfp4>(9, 21, 288);
}
TEST_F(TensorCores, many_with_plain_weights) {
  check_many<DType::f16>(70, 131, 264);
  check_many<DType::bf16>(17, 261, 72);
}
TEST_F(TensorCores, many_with_weights_that_halves_cannot_hold) {
  for (const float scale : {1e-20f, 1e20f}) {
    weight_scale = scale;
    check_many<DType::bf16>(3, 9, 64);
    check_many<DType::mxfp4>(3, 9, 64);
  }
  weight_scale = 5e4f;
  check_many<DType::q4_k>(3, 9, 256);
  check_many<DType::q6_k>(3, 9, 256);
}

TEST_F(TensorCores, super_blocks_with_minima) { check<DType::q4_k>(512); }
TEST_F(TensorCores, super_blocks_of_sixteens) { check<DType::q6_k>(256); }
TEST_F(TensorCores, super_blocks_of_sixteens_with_minima) { check<DType::q2_k>(512); }
TEST_F(TensorCores, blocks_with_minima_and_a_broken_unit) { check<DType::q5_1>(352); }
TEST_F(TensorCores, blocks_of_levels) { check<DType::mxfp4>(288); }
TEST_F(TensorCores, bfloats) { check<DType::bf16>(264); }
TEST_F(TensorCores, halves) { check<DType::f16>(520); }

// Rows of float32, and their tokens normalised.
TEST_F(TensorCores, float_rows) {
  for (const int64_t k : {8, 264, 2560}) {
    prepare<DType::f32>(11, 21, k);
    const auto product = [&](const View* norm) {
      return results([&](const Args& args) {
        mma::FloatProduct p = mma::float_product(args.in[0], args.in[1], args.out[0]);
        p.bias = pointer<const float>(args.in[2]), p.residual = mma::lines_of<const float>(args.in[3]);
        if (norm) p.norm = pointer<const float>(*norm), p.epsilon = 1e-5f;
        mma::launch_floats(p, *device);
      });
    };
    const std::vector<float> all = product(nullptr);
    for (size_t i = 0; i < all.size(); ++i)
      ASSERT_NEAR(all[i], expected[i], 4 * 0x1p-23 * std::sqrt(spread[i]) + 1e-5) << "element " << i;
    const View norm = view(upload(numbers(k, 1)), DType::f32, {k}), x = in[0];
    const View normed = view(device->allocate(11 * k * 4), DType::f32, {11, k});
    Node of_norm{};
    of_norm.attributes = RmsNormAttr{1e-5f};
    const View from[] = {x, norm};
    rms_norm_gpu().launch({&of_norm, from, {&normed, 1}}, *device, nullptr);
    const std::vector<float> fused = k > short_norm ? product(&norm) : std::vector<float>();
    in[0] = normed;
    const std::vector<float> apart = product(nullptr);
    if (k > short_norm) EXPECT_EQ(fused, apart);
    in[0].shape = {1, k}, in[3].shape = {1, 21};
    std::vector<float> one = product(nullptr);
    one.resize(21);
    EXPECT_EQ(one, std::vector<float>(apart.begin(), apart.begin() + 21));
  }
}

}  // namespace
}  // namespace consonant::GPU_BUILD
