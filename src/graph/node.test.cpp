// SPDX-License-Identifier: Apache-2.0
#include "graph/node.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "graph/inputs.hpp"

namespace consonant {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A node without an op of its own: the graph doesn't care.
Tensor node(std::string_view label, std::vector<Tensor> inputs, Location at = Location::current()) {
  const Shape shape = inputs.front().shape();
  return {make_node(first_op, label, std::move(inputs), {dense(DType::f32, shape)}, {}, at), 0};
}

Tensor leaf(const std::string& name, const Shape& shape = {2, 6}) { return input(name, DType::f32, shape); }

std::vector<std::string> names(const std::vector<Tensor>& outputs) {
  std::vector<std::string> out;
  for (const Node* n : walk(outputs)) out.push_back(n->name);
  return out;
}

template <class F>
std::string message_of(F f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Walk, FollowsOperandsWhateverTheOrderOfMaking) {
  const auto expected = ElementsAre("x", "a", "y", "b", "sum");
  const Tensor x = leaf("x"), y = leaf("y");
  {
    const Tensor a = node("a", {x}), b = node("b", {y});
    EXPECT_THAT(names({node("sum", {a, b})}), expected);
  }
  const Tensor b = node("b", {y}), a = node("a", {x});
  EXPECT_THAT(names({node("sum", {a, b})}), expected);
}

TEST(Walk, VisitsANodeOnceAndOutputsInOrder) {
  const Tensor x = leaf("x"), a = node("a", {x}), twice = node("twice", {a, a}), other = node("other", {x});
  EXPECT_THAT(names({other, twice, a}), ElementsAre("x", "other", "a", "twice"));
  EXPECT_TRUE(names({}).empty());
}

TEST(Walk, GoesDeeperThanAStackWould) {
  Tensor x = leaf("x");
  const Tensor kept = x;
  for (int i = 0; i < 300000; ++i) x = node("n", {x, x});
  EXPECT_EQ(walk({x}).size(), 300001u);
  x = {};  // frees the chain
  EXPECT_EQ(kept.node.use_count(), 1);
}

TEST(Scope, NamesTheNodesMadeInsideIt) {
  const Tensor x = leaf("x"), w = weight("blk.3.attn_q.weight", DType::q4_1, {6, 6}, 0),
               norm = weight("output_norm.weight", DType::f32, {6}, 1);
  EXPECT_EQ(node("add", {x}).name(), "add");
  {
    Scope blk("blk", 3);
    EXPECT_EQ(node("linear", {x, w}).name(), "blk.3/linear(attn_q)");
    {
      Scope inner("mlp");
      EXPECT_EQ(node("add", {x}).name(), "blk.3/mlp/add");
    }
    EXPECT_EQ(node("rms_norm", {x, norm}).name(), "blk.3/rms_norm(output_norm)");
  }
  EXPECT_EQ(node("linear", {x, w}).name(), "linear(attn_q)");
  try {
    Scope lost("lost");
    throw 1;
  } catch (int) {
  }
  EXPECT_EQ(node("add", {x}).name(), "add");
}

TEST(Location, IsTheCallers) {
  const Tensor x = node("n", {leaf("x")});
  EXPECT_STREQ(x.node->location.file_name(), "node.test.cpp");
  EXPECT_EQ(x.node->location.line, __LINE__ - 2);
}

TEST(Views, SplitHeadsAndMergeThemAgain) {
  const Tensor x = leaf("x", Shape({5, 12}, Axis::token));
  const Tensor heads = split_heads(x, 3);
  EXPECT_EQ(heads.shape(), Shape({5, 3, 4}, Axis::token));
  const Output& seen = heads.node->outputs[0];
  EXPECT_THAT(seen.strides, ElementsAre(12, 4, 1, 0));
  EXPECT_EQ(seen.alias, 0);
  const Tensor merged = merge_heads(heads);
  EXPECT_EQ(merged.shape(), x.shape());
  EXPECT_THAT(merged.node->outputs[0].strides, ElementsAre(12, 1, 0, 0));
}

TEST(Views, SplitGivesPartsThatLieInTheWhole) {
  const Tensor x = leaf("x", Shape({5, 12}, Axis::token));
  const std::vector<Tensor> parts = split(x, {3, 0, 9});
  ASSERT_EQ(parts.size(), 3u);
  const int64_t offsets[] = {0, 3, 3}, sizes[] = {3, 0, 9};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(parts[i].shape(), Shape({5, sizes[i]}, Axis::token));
    EXPECT_EQ(parts[i].node->outputs[0].offset, offsets[i]);
    EXPECT_THAT(parts[i].node->outputs[0].strides, ElementsAre(12, 1, 0, 0));
  }
  // A part of a part, as heads: offsets count from the storage that each view aliases.
  const Tensor part = split_heads(split(parts[2], {5, 4})[1], 2);
  EXPECT_EQ(part.shape(), Shape({5, 2, 2}, Axis::token));
  EXPECT_THAT(part.node->outputs[0].strides, ElementsAre(12, 2, 1, 0));
  EXPECT_EQ(merge_heads(part).shape(), Shape({5, 4}, Axis::token));
  // Parts of each head.
  const std::vector<Tensor> of_heads = split(split_heads(x, 3), {3, 1});
  ASSERT_EQ(of_heads.size(), 2u);
  EXPECT_EQ(of_heads[1].shape(), Shape({5, 3, 1}, Axis::token));
  EXPECT_EQ(of_heads[1].node->outputs[0].offset, 3);
  EXPECT_THAT(of_heads[1].node->outputs[0].strides, ElementsAre(12, 4, 1, 0));
}

TEST(Views, RefuseWhatDoesNotFitWithTheShapeAndTheLine) {
  const Tensor x = leaf("x", Shape({5, 12}, Axis::token));
  std::string text = message_of([&] { split_heads(x, 5); });
  EXPECT_THAT(text, HasSubstr("split_heads: wants 5 heads; got x f32[token<=5, 12]"));
  EXPECT_THAT(text, HasSubstr(fmt::format("(node.test.cpp:{})", __LINE__ - 2)));
  EXPECT_THAT(message_of([&] { split_heads(split_heads(x, 3), 3); }), HasSubstr("f32[token<=5, 3, 4]"));
  EXPECT_THAT(message_of([&] { split_heads(x, 0); }), HasSubstr("0 heads"));
  EXPECT_THAT(message_of([&] { merge_heads(x); }), HasSubstr("merge_heads: wants heads that lie side by side"));
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{3, 8}, {3, 10}, {13, -1}, {}})
    EXPECT_THAT(message_of([&] { split(x, sizes); }),
                HasSubstr("split: wants parts that add up to the last size; got x f32[token<=5, 12]"));
  EXPECT_THAT(message_of([&] { split(leaf("v", Shape{12}), {6, 6}); }), HasSubstr("v f32[12]"));
}

TEST(Shapes, CountAndPrint) {
  const Shape s({5, 3, 4}, Axis::wanted);
  EXPECT_EQ(s.count(), 60);
  EXPECT_EQ(s.rows(), 15);
  EXPECT_EQ(to_string(s), "[wanted<=5, 3, 4]");
  EXPECT_EQ(to_string(Shape{7}), "[7]");
  EXPECT_NE(Shape({5}, Axis::token), Shape{5});
  EXPECT_EQ((Shape{4, 0}).rows(), 0);
  EXPECT_EQ(Shape().count(), 1);
  EXPECT_EQ(Shape().rows(), 1) << "a scalar is a row of one";
  EXPECT_EQ(s.with_last(9), Shape({5, 3, 9}, Axis::wanted));
  EXPECT_EQ(s.with_lead(2, Axis::token), Shape({2, 3, 4}, Axis::token));
  EXPECT_THROW((Shape{int64_t{1} << 40, int64_t{1} << 40}).count(), Error);
  EXPECT_THROW((Shape{1, 2, 3, 4, 5}), Error);
}

TEST(KvPages, HaveTheirBytes) {
  EXPECT_EQ(kv_page_bytes(DType::f32, 3, 64), 3 * 64 * 64 * 4);
  EXPECT_EQ(kv_page_bytes(DType::f16, 3, 64), 3 * 64 * 64 * 2);
  EXPECT_EQ(kv_page_bytes(DType::q8_0, 3, 64), 3 * 64 * 64 / 32 * 34);
  try {
    kv_page_bytes(DType::q8_0, 3, 80);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit(), Exit::usage);
    EXPECT_THAT(error.what(), HasSubstr("this model has 80"));
  }
}

}  // namespace
}  // namespace consonant
