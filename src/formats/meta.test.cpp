// SPDX-License-Identifier: Apache-2.0
#include "formats/meta.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace consonant {
namespace {

using testing::HasSubstr;

template <class F>
std::string refusal(F&& f, Exit exit = Exit::input) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit(), exit);
    return error.what();
  }
  return "accepted";
}

Meta sample() {
  Meta meta;
  meta.source = "x.gguf";
  meta.add("n", {MetaType::u32, false, int64_t{7}});
  meta.add("f", {MetaType::f32, false, 0.5});
  meta.add("b", {MetaType::boolean, false, true});
  meta.add("s", {MetaType::string, false, std::string_view("text")});
  meta.add("ints", {MetaType::u8, true, MetaInts{1, 2}});
  meta.add("floats", {MetaType::f32, true, MetaFloats{1}});
  meta.add("strings", {MetaType::string, true, MetaStrings{"a", "b", "c"}});
  return meta;
}

TEST(Meta, ReadsTheKindsAskedFor) {
  const Meta meta = sample();
  EXPECT_EQ(meta.integer("n"), 7);
  EXPECT_EQ(meta.number("n"), 7.0);
  EXPECT_EQ(meta.number("f"), 0.5);
  EXPECT_TRUE(meta.boolean("b"));
  EXPECT_EQ(meta.string("s"), "text");
  EXPECT_THAT(meta.integers("ints"), testing::ElementsAre(1, 2));
  EXPECT_THAT(meta.strings("strings"), testing::SizeIs(3));
  EXPECT_EQ(meta.integer("absent", 3), 3);
  EXPECT_EQ(meta.string("absent", "x"), "x");
  EXPECT_EQ(meta.entries().front().first, "n");
}

TEST(Meta, NamesKeyAndBothKinds) {
  const Meta meta = sample();
  EXPECT_EQ(refusal([&] { meta.integer("absent"); }), "x.gguf: metadata \"absent\" is missing");
  EXPECT_EQ(refusal([&] { meta.integer("s"); }), "x.gguf: \"s\" is string, should be an integer");
  EXPECT_EQ(refusal([&] { meta.integer("f"); }), "x.gguf: \"f\" is f32, should be an integer");
  EXPECT_EQ(refusal([&] { meta.number("b", 1); }), "x.gguf: \"b\" is bool, should be a number");
  EXPECT_EQ(refusal([&] { meta.boolean("n", true); }), "x.gguf: \"n\" is u32, should be a bool");
  EXPECT_EQ(refusal([&] { meta.numbers("ints"); }),
            "x.gguf: \"ints\" is array of u8 [2], should be an array of floats");
  EXPECT_EQ(refusal([&] { meta.integers("strings"); }),
            "x.gguf: \"strings\" is array of string [3], should be an array of integers");
}

TEST(Meta, RefusesEmptyAndDuplicateKeys) {
  Meta meta = sample();
  EXPECT_THAT(refusal([&] { meta.add("", {MetaType::u8, false, int64_t{1}}); }), HasSubstr("empty"));
  EXPECT_THAT(refusal([&] { meta.add("n", {MetaType::u8, false, int64_t{1}}); }), HasSubstr("\"n\" stands twice"));
  EXPECT_EQ(meta.integer("n"), 7);
}

TEST(Meta, Overrides) {
  Meta meta = sample();
  apply_override(meta, "n=int:-3");
  apply_override(meta, "new.key=str:a=b:c");
  apply_override(meta, "f=float:2.5e-1");
  apply_override(meta, "b=bool:false");
  EXPECT_EQ(meta.integer("n"), -3);
  EXPECT_EQ(meta.string("new.key"), "a=b:c");
  EXPECT_EQ(meta.number("f"), 0.25);
  EXPECT_FALSE(meta.boolean("b"));
  EXPECT_EQ(meta.entries().size(), 8u);
  apply_override(meta, "f=int:2");
  EXPECT_EQ(meta.number("f"), 2);
  for (const char* bad : {"", "n", "n=", "n=int", "=int:3", "n=int:", "n=int:3x", "n=int:9223372036854775808",
                          "n=float:x", "n=float:inf", "b=bool:1", "n=u8:3", "n=str:\xFF"})
    EXPECT_THAT(refusal([&] { apply_override(meta, bad); }, Exit::usage), HasSubstr("--override-kv")) << bad;
}

TEST(Meta, OverridesKeepTheKindOfTheirKey) {
  Meta meta = sample();
  EXPECT_EQ(refusal([&] { apply_override(meta, "n=str:7"); }),
            "x.gguf: \"n\" is u32, which --override-kv can't make string");
  for (const char* bad : {"n=float:7", "n=bool:true", "b=int:1", "ints=int:1"})
    EXPECT_THAT(refusal([&] { apply_override(meta, bad); }), HasSubstr("--override-kv can't make")) << bad;
  EXPECT_EQ(meta.integer("n"), 7);
}

TEST(Meta, OverridesOfKeysThatNobodyKnowsAreRefused) {
  Meta meta = sample();
  apply_override(meta, "new.key=int:1");
  EXPECT_EQ(meta.integer("new.key", 0), 1);
  meta.check_overrides();
  apply_override(meta, "other=int:1");
  EXPECT_EQ(meta.integer("new.key"), 1);
  EXPECT_EQ(refusal([&] { meta.check_overrides(); }),
            "x.gguf: --override-kv other: neither the file nor the model that it holds knows this key");
}

}  // namespace
}  // namespace consonant
