// SPDX-License-Identifier: Apache-2.0
#include "verify/compare.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.hpp"
#include "formats/safetensors.hpp"

namespace consonant {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();

TensorDistance of(const std::vector<float>& a, const std::vector<float>& b, double tie_margin = 0) {
  return distance("x", a, b, 2, 0.999, tie_margin);
}

TEST(Distance, CountsTheWorstRow) {
  const TensorDistance d = of({3, 4, 1, 0}, {3, 4, 0, 1});
  EXPECT_EQ(d.rows, 2);
  EXPECT_EQ(d.cosine, 0);
  EXPECT_EQ(d.max_abs, 1);
  EXPECT_EQ(d.max_rel, 1);
  EXPECT_EQ(d.argmax_changes, 1);
  EXPECT_EQ(d.argmax_disagreements, 1);
  EXPECT_FALSE(d.within_tolerance);
  const TensorDistance same = of({3, 4, 0, 0}, {3, 4, 0, 0});
  EXPECT_TRUE(same.within_tolerance);
  EXPECT_EQ(same.cosine, 1);
  EXPECT_FALSE(of({0, 0}, {0, 1}).within_tolerance) << "nothing is near to zero but zero";
}

TEST(Distance, WhatIsNotFiniteNeverAgrees) {
  for (const float odd : {nan_value, HUGE_VALF, -HUGE_VALF}) {
    for (const auto& [a, b] : {std::pair(std::vector<float>{odd, 1, 1, 1}, std::vector<float>{odd, 1, 1, 1}),
                               std::pair(std::vector<float>{1, 1, 1, 1}, std::vector<float>{1, 1, 1, odd})}) {
      const TensorDistance d = of(a, b);
      EXPECT_FALSE(d.within_tolerance);
      EXPECT_TRUE(std::isnan(d.cosine));
    }
  }
}

// [1, 0.99]: a margin of 0.01, of a root mean square of about 1.
TEST(Distance, TiesOfTheReferenceAreNoDecisions) {
  const std::vector<float> a = {1, 0.99f}, b = {0.99f, 1};
  EXPECT_EQ(of(a, b, 0.02).argmax_changes, 1);
  EXPECT_EQ(of(a, b, 0.02).argmax_disagreements, 0);
  EXPECT_EQ(of(a, b, 0.005).argmax_disagreements, 1);
}

struct Recording {
  std::vector<int32_t> tokens = {5, 6};
  Sizes logits_sizes = {2, 3};
  std::vector<float> logits = {1, 2, 3, 4, 5, 7};
  std::vector<std::string> taps;
  std::string control = "passed", precision = "f32";
  std::vector<float> sound;
};

HostTensor tensor(DType type, const Sizes& sizes, const void* data) {
  HostTensor t = HostTensor::allocate(type, sizes);
  if (!t.bytes.empty()) std::memcpy(t.mutable_bytes().data(), data, t.bytes.size());
  return t;
}

class Recordings : public testing::Test {
 protected:
  std::filesystem::path write(const std::string& name, const Recording& r) const {
    std::vector<NamedTensor> tensors = {
        {"tokens", tensor(DType::i32, {static_cast<int64_t>(r.tokens.size())}, r.tokens.data())},
        {"logits", tensor(DType::f32, r.logits_sizes, r.logits.data())}};
    if (!r.sound.empty())
      tensors.push_back({"sound", tensor(DType::f32, {static_cast<int64_t>(r.sound.size())}, r.sound.data())});
    std::map<std::string, std::string> header = {{"positive_control", r.control}, {"precision", r.precision}};
    for (const std::string& tap : r.taps) {
      tensors.push_back({tap, tensor(DType::f32, {2, 3}, r.logits.data())});
      header["source:" + tap] = "llama.cpp:1";
    }
    write_safetensors(folder_ / name, tensors, header);
    return folder_ / name;
  }
  RecordingDistance compare(const Recording& a, const Recording& b) const {
    return compare_recordings(write("a", a), write("b", b));
  }
  std::string refusal(const Recording& a, const Recording& b) const {
    try {
      compare(a, b);
    } catch (const Error& error) {
      EXPECT_EQ(error.exit(), Exit::input);
      return error.what();
    }
    return "compared";
  }

  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) /
      fmt::format("{}-{}", testing::UnitTest::GetInstance()->current_test_info()->name(), ::getpid());
};

TEST_F(Recordings, CompareWhatBothHave) {
  const RecordingDistance d =
      compare({.taps = {"blk.0/mul", "blk.0/add"}}, {.taps = {"blk.0/add", "blk.0/gated"}, .precision = "auto"});
  ASSERT_EQ(d.tensors.size(), 2u);
  EXPECT_EQ(d.tensors[0].name, "logits");
  EXPECT_EQ(d.tensors[0].max_abs, 0);
  EXPECT_EQ(d.tensors[1].name, "blk.0/add");
  EXPECT_EQ(d.tensors[1].source, "llama.cpp:1");
  EXPECT_THAT(d.only_in_one, ElementsAre("blk.0/mul", "blk.0/gated"));
  EXPECT_TRUE(d.controlled);
  EXPECT_LT(d.least_cosine, compare({}, {}).least_cosine) << "8-bit activations are given more room";
}

// What was heard is what was given, no node: it needn't be near, but equal.
TEST_F(Recordings, OfOneSoundAreCompared) {
  const RecordingDistance d = compare({.sound = {0.5f, 0}}, {.sound = {0.5f, 0}});
  ASSERT_EQ(d.tensors.size(), 1u);
  EXPECT_EQ(d.tensors[0].name, "logits");
  EXPECT_THAT(refusal({.sound = {0.5f, 0}}, {.sound = {0.5f, 1e-6f}}), HasSubstr("different sounds"));
  EXPECT_THAT(refusal({.sound = {0.5f, 0}}, {.sound = {0.5f}}), HasSubstr("different sounds"));
  EXPECT_THAT(compare({.sound = {0.5f}}, {}).only_in_one, testing::IsEmpty()) << "where none was kept, none differs";
  EXPECT_THAT(compare({}, {.sound = {0.5f}}).only_in_one, testing::IsEmpty());
}

TEST_F(Recordings, AreNothingWithoutTheirPositiveControl) {
  EXPECT_FALSE(compare({.control = "failed"}, {}).controlled);
  EXPECT_FALSE(compare({}, {.control = ""}).controlled);
}

TEST_F(Recordings, OfOtherThingsAreRefused) {
  EXPECT_THAT(refusal({}, {.tokens = {5, 7}}), HasSubstr("different tokens"));
  EXPECT_THAT(refusal({}, {.logits_sizes = {3, 2}}), HasSubstr("'logits' is [2, 3]"));
  EXPECT_THAT(refusal({.tokens = {}, .logits_sizes = {0, 3}}, {.tokens = {}, .logits_sizes = {0, 3}}),
              HasSubstr("tokens are [0], logits [0, 3]"));
  EXPECT_THAT(refusal({.logits_sizes = {3, 2}}, {.logits_sizes = {3, 2}}), HasSubstr("tokens are [2], logits [3, 2]"));
}

}  // namespace
}  // namespace consonant
