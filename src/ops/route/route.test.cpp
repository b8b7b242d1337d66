// SPDX-License-Identifier: Apache-2.0
#include "ops/route/route.hpp"

#include <algorithm>
#include <cmath>

#include "ops/kernel.hpp"
#include "ops/test_support.hpp"

namespace consonant {
namespace {

using namespace testing_ops;
using testing::ElementsAre;

struct Choice {
  std::vector<int32_t> ids;
  std::vector<float> weights;
};

// One token's; only float32 first outputs can be fetched by `compute`.
Choice chosen(DeviceKind device, std::vector<float> logits, std::vector<float> bias, const RouteAttr& attr) {
  CaseBuilder b;
  const auto n = static_cast<int64_t>(logits.size());
  const Tensor ids = route(b.values("logits", {1, n}), bias.empty() ? Tensor{} : b.vector("bias", n), attr).ids;
  Choice result{std::vector<int32_t>(static_cast<size_t>(attr.used)),
                std::vector<float>(static_cast<size_t>(attr.used))};
  const auto view = [](auto& data, DType type, const Shape& shape) {
    return View{reinterpret_cast<std::byte*>(data.data()), type, shape, dense(type, shape).strides, Layout::plain};
  };
  std::vector<View> in = {view(logits, DType::f32, {1, n})};
  if (!bias.empty()) in.push_back(view(bias, DType::f32, {n}));
  const View out[] = {view(result.ids, DType::i32, {1, attr.used}), view(result.weights, DType::f32, {1, attr.used})};
  const Kernel* kernel = choose_kernel(*ids.node, device).kernel;
  const Args args{ids.node.get(), in, out};
  std::vector<uint64_t> scratch(static_cast<size_t>(kernel->work(args).scratch) / 8 + 1);
  kernel->run(args, 0, reinterpret_cast<std::byte*>(scratch.data()));
  return result;
}

void expect_weights(const Choice& choice, const std::vector<double>& want) {
  ASSERT_EQ(choice.weights.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(choice.weights[i], want[i], 1e-6 * (1 + want[i])) << i;
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

TEST(Route, SoftmaxIsOverAllExperts) {
  const double all = std::exp(1) + std::exp(3) + std::exp(2) + std::exp(-1);
  for (const DeviceKind device : both_devices) {
    const Choice plain = chosen(device, {1, 3, 2, -1}, {}, {2, Scoring::softmax, 1, 1, false, 1.5f});
    EXPECT_THAT(plain.ids, ElementsAre(1, 2));
    expect_weights(plain, {1.5 * std::exp(3) / all, 1.5 * std::exp(2) / all});
    const Choice normalised = chosen(device, {1, 3, 2, -1}, {}, {2});
    expect_weights(normalised, {std::exp(3) / (std::exp(3) + std::exp(2)), std::exp(2) / (std::exp(3) + std::exp(2))});
  }
}

TEST(Route, TheBiasCountsForTheChoiceAlone) {
  for (const DeviceKind device : both_devices) {
    const Choice choice = chosen(device, {1, 3, 2, -1}, {0, -1, 0, 1}, {2, Scoring::sigmoid, 1, 1, true, 2.5f});
    EXPECT_THAT(choice.ids, ElementsAre(3, 2));
    const double sum = sigmoid(-1) + sigmoid(2);
    expect_weights(choice, {2.5 * sigmoid(-1) / sum, 2.5 * sigmoid(2) / sum});
  }
}

TEST(Route, GroupsCompeteByTheirTwoBestOrTheirBest) {
  // Two best: group 1 has the better sum, group 0 the best expert.
  const std::vector<float> logits = {3, -9, -9, 2, 2, -9, -8, -8, -8};
  for (const DeviceKind device : both_devices) {
    EXPECT_THAT(chosen(device, logits, {}, {3, Scoring::sigmoid, 3, 1}).ids, ElementsAre(3, 4, 5));
    EXPECT_THAT(chosen(device, logits, {}, {3, Scoring::softmax, 3, 1}).ids, ElementsAre(0, 1, 2));
    EXPECT_THAT(chosen(device, logits, {}, {4, Scoring::sigmoid, 3, 2}).ids, ElementsAre(0, 3, 4, 1));
    // What isn't in a used group is not taken, however low the others are.
    EXPECT_THAT(chosen(device, logits, {-1, -1, -1, -3, -3, -3, -9, -9, -9}, {3, Scoring::sigmoid, 3, 1}).ids,
                ElementsAre(0, 1, 2));
  }
}

TEST(Route, EqualExpertsAreTakenByTheirNumberAndNaNLast) {
  for (const DeviceKind device : both_devices)
    for (const Scoring scoring : {Scoring::softmax, Scoring::sigmoid}) {
      EXPECT_THAT(chosen(device, {0, 1, -0.0f, 1, 0}, {}, {5, scoring}).ids, ElementsAre(1, 3, 0, 2, 4));
      const Choice choice = chosen(device, {NAN, 1, INFINITY, -INFINITY}, {}, {4, scoring});
      EXPECT_THAT(choice.ids, ElementsAre(2, 1, 3, 0));
      EXPECT_TRUE(std::isnan(choice.weights[3]));
    }
}

// What decides has the same bits on every device, where experts are as near to each other as can be.
TEST(Route, DevicesAgreeOnNearTies) {
  std::vector<float> logits = {0.3f}, bias(64, 0.125f);
  while (logits.size() < 64) logits.push_back(std::nextafter(logits.back(), logits.size() % 3 == 0 ? -1.0f : 1.0f));
  for (const Scoring scoring : {Scoring::softmax, Scoring::sigmoid})
    for (const bool biased : {false, true}) {
      const auto with = biased ? bias : std::vector<float>{};
      const RouteAttr attr = {8, scoring};
      EXPECT_EQ(chosen(DeviceKind::cpu, logits, with, attr).ids, chosen(DeviceKind::reference, logits, with, attr).ids);
    }
}

TEST(Route, RefusesWhatCannotBeChosen) {
  const auto of = [](int64_t experts, const RouteAttr& attr, int64_t bias = 0) {
    return refusal_of([=](CaseBuilder& b) {
      return route(b.values("logits", {2, experts}), bias ? b.vector("bias", bias) : Tensor{}, attr).ids;
    });
  };
  EXPECT_EQ(of(8, {8}), "no error");
  EXPECT_THAT(of(8, {9}), HasSubstr("at least 9 experts to choose from"));
  EXPECT_THAT(of(8, {0}), HasSubstr("at least 0 experts"));
  EXPECT_THAT(of(8, {2, Scoring::softmax, 3, 1}), HasSubstr("experts in 3 equal groups, 1 of them used"));
  EXPECT_THAT(of(8, {2, Scoring::softmax, 4, 5}), HasSubstr("experts in 4 equal groups, 5 of them used"));
  EXPECT_THAT(of(8, {3, Scoring::softmax, 4, 1}), HasSubstr("at least 3 experts to choose from"));
  EXPECT_THAT(of(8, {1, Scoring::sigmoid, 8, 1}), HasSubstr("two experts or more in each of 8 groups"));
  EXPECT_THAT(of(8, {2}, 7), HasSubstr("bias [expert]"));
}

}  // namespace
}  // namespace consonant
