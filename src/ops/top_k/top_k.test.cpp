// SPDX-License-Identifier: Apache-2.0
#include "ops/top_k/top_k.hpp"

#include <cmath>

#include "ops/test_support.hpp"

namespace consonant {
namespace {

using namespace testing_ops;

TEST(TopK, GivesTheGreatestInOrder) {
  expect_exactly(
      [](CaseBuilder& b) {
        return top_k(b.numbers("x", {2, 4}, {1, 4, -2, 3, 9, 9, 8, 10}), 2).first;
      },
      {4, 3, 10, 9});
}

// Only float32 can be fetched: the columns are seen as its bits.
std::vector<int32_t> columns(DeviceKind device, const std::vector<float>& numbers, int64_t k) {
  ThreadPool pool(1);
  CaseBuilder b;
  const Tensor x = b.numbers("x", {1, static_cast<int64_t>(numbers.size())}, numbers);
  const Tensor top = top_k(x, k).second;
  std::vector<float> row = numbers, values(static_cast<size_t>(k));
  std::vector<int32_t> result(static_cast<size_t>(k));
  const auto view = [](auto& data, DType type) {
    const int64_t n = static_cast<int64_t>(data.size());
    return View{reinterpret_cast<std::byte*>(data.data()), type, {1, n}, {n, 1}, Layout::plain};
  };
  const View in[] = {view(row, DType::f32)}, out[] = {view(values, DType::f32), view(result, DType::i32)};
  const Kernel* kernel = choose_kernel(*top.node, device).kernel;
  const Args args{top.node.get(), in, out};
  std::vector<uint64_t> scratch(static_cast<size_t>(kernel->work(args).scratch) / 8 + 1);
  kernel->run(args, 0, reinterpret_cast<std::byte*>(scratch.data()));
  return result;
}

TEST(TopK, PrefersTheLowerColumnAndPutsNaNLast) {
  for (const DeviceKind device : both_devices) {
    EXPECT_THAT(columns(device, {1, 7, 0, 7, 7}, 2), testing::ElementsAre(1, 3));
    EXPECT_THAT(columns(device, {NAN, 7, INFINITY, -INFINITY}, 4), testing::ElementsAre(2, 1, 3, 0));
  }
}

TEST(TopK, RefusesMoreThanThereAre) {
  EXPECT_THAT(refusal_of([](CaseBuilder& b) {
                return top_k(b.values("x", {2, 3}), 4).first;
              }),
              HasSubstr("top_k: wants x [..., n] f32, n below 2^31 and at least 4"));
}

}  // namespace
}  // namespace consonant
