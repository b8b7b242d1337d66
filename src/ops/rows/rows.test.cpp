// SPDX-License-Identifier: Apache-2.0
#include "ops/rows/rows.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "ops/kernel.hpp"
#include "tensor/convert.hpp"

namespace consonant {

extern const Kernel rows_cpu, rows_ref;

namespace {

std::vector<float> gathered(const Kernel& kernel, const View& x, const std::vector<int32_t>& index) {
  const auto n = static_cast<int64_t>(index.size());
  std::vector<float> y(index.size() * static_cast<size_t>(x.last()));
  Node node;
  node.op = id(Op::rows);
  const View in[] = {x, {reinterpret_cast<std::byte*>(const_cast<int32_t*>(index.data())), DType::i32, {n}, {1}}};
  const View out[] = {{reinterpret_cast<std::byte*>(y.data()), DType::f32, {n, x.last()}, {x.last(), 1}}};
  const Args args{&node, in, out};
  const Work work = kernel.work(args);
  for (int64_t chunk = work.chunks; chunk-- > 0;) kernel.run(args, chunk, nullptr);
  return y;
}

TEST(Rows, OfWeightsAreDecodedWhateverTheirLayout) {
  const int64_t n = 21, k = 512;
  const std::vector<int32_t> index = {20, 0, 7, 8, 7, 13, 1, 2, 3, 4, 5, 6, 19};
  for (DType type : {DType::f32, DType::bf16, DType::q8_0, DType::q4_1, DType::q3_k, DType::q6_k}) {
    const int64_t stride = row_bytes(type, k);
    std::vector<std::byte> plain(static_cast<size_t>(n * stride));
    std::mt19937 random(11);
    for (std::byte& b : plain) b = static_cast<std::byte>(random() % 100);  // no infinities
    const PackedShape shape = packed_shape(type, n, k);
    std::vector<std::byte> packed(static_cast<size_t>(shape.bytes()));
    pack_groups(shape, plain.data(), packed.data(), 0, shape.groups());
    std::vector<float> want(index.size() * k);
    for (size_t i = 0; i < index.size(); ++i)
      decode_row(type, plain.data() + index[i] * stride, want.data() + i * k, k);
    for (const Kernel* kernel : {&rows_cpu, &rows_ref}) {
      EXPECT_EQ(gathered(*kernel, {plain.data(), type, {n, k}, {k, 1}}, index), want) << name(type);
      EXPECT_EQ(gathered(*kernel, {packed.data(), type, {n, k}, {k, 1}, Layout::rows8}, index), want) << name(type);
    }
  }
}

TEST(Rows, OfValuesMayLieApart) {
  std::vector<float> x(5 * 10);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  const View view{reinterpret_cast<std::byte*>(x.data()), DType::f32, {5, 3}, {10, 1}};
  for (const Kernel* kernel : {&rows_cpu, &rows_ref}) {
    EXPECT_EQ(gathered(*kernel, view, {4, 1}), (std::vector<float>{40, 41, 42, 10, 11, 12}));
    EXPECT_TRUE(gathered(*kernel, view, {}).empty());
  }
}

}  // namespace
}  // namespace consonant
