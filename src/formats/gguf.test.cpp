// SPDX-License-Identifier: Apache-2.0
#include "formats/gguf.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <rapidcheck.h>
#include <fstream>
#include <limits>

#include "base/error.hpp"
#include "formats/gguf_bytes.hpp"

namespace consonant {
namespace {

using testing::HasSubstr;
using testing_gguf::Bytes;

constexpr const char* models = CONSONANT_TEST_DATA "/llm/models/";
constexpr MetaType array = MetaType::array;
constexpr uint32_t f32 = 0, q8_0 = 8;

std::string refusal(std::shared_ptr<const MappedFile> file) {
  try {
    parse_gguf(std::move(file));
  } catch (const Error& error) {
    EXPECT_EQ(error.exit(), Exit::input);
    return error.what();
  }
  return "accepted";
}
std::string refusal(const Bytes& bytes) { return refusal(bytes.file()); }

template <class F>
std::string refusal_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit(), Exit::input);
    return error.what();
  }
  return "accepted";
}

// A fresh folder, removed at the end.
struct Folder {
  std::filesystem::path path =
      std::filesystem::path(testing::TempDir()) /
      fmt::format("{}-{}", testing::UnitTest::GetInstance()->current_test_info()->name(), ::getpid());
  Folder() { std::filesystem::create_directories(path); }
  ~Folder() { std::filesystem::remove_all(path); }

  std::filesystem::path write(const std::string& name, const Bytes& bytes) const {
    std::ofstream(path / name, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.bytes().data()), static_cast<std::streamsize>(bytes.bytes().size()));
    return path / name;
  }
};

TEST(Gguf, ReadsPublishedFiles) {
  const ModelFile model = open_model(std::string(models) + "llama_q256/model-Q4_K_M.gguf");
  EXPECT_EQ(model.format, "GGUF v3");
  EXPECT_EQ(model.meta->string("general.architecture"), "llama");
  EXPECT_EQ(model.meta->integer("llama.embedding_length"), 256);
  EXPECT_EQ(model.meta->strings("tokenizer.ggml.tokens").size(), 512u);
  EXPECT_EQ(model.meta->strings("tokenizer.ggml.merges").size(), 253u);
  EXPECT_TRUE(model.meta->boolean("tokenizer.ggml.add_bos_token"));
  EXPECT_EQ(static_cast<float>(model.meta->number("llama.attention.layer_norm_rms_epsilon")), 1e-5f);
  ASSERT_NE(model.find("blk.0.attn_k.weight"), nullptr);
  const StoredTensor& k = *model.find("blk.0.attn_k.weight");
  EXPECT_EQ(k.type, DType::q4_k);
  EXPECT_EQ(k.sizes, (Sizes{64, 256}));
  EXPECT_EQ(k.bytes, 64 * 144);
  EXPECT_EQ(model.find("blk.0.ffn_down.weight")->type, DType::q6_k);
  EXPECT_EQ(model.find("absent"), nullptr);
  EXPECT_EQ(model.file_bytes, static_cast<int64_t>(std::filesystem::file_size(model.files[0])));

  const HostTensor before = k.load();
  const std::vector<std::byte> bytes(before.bytes.begin(), before.bytes.end());
  model.release(before.bytes);
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), k.load().bytes.begin()));
}

TEST(Gguf, ViewsOutliveTheModel) {
  HostTensor norm;
  {
    const ModelFile model = open_model(std::string(models) + "llama/model-f32.gguf");
    norm = model.find("output_norm.weight")->load();
  }
  ASSERT_EQ(norm.sizes, Sizes{64});
  for (const float x : norm.as<float>()) EXPECT_LT(std::abs(x - 1), 1);
}

TEST(Gguf, ReadsEveryKindOfValue) {
  Bytes b;
  b.header(1, 14, 2);
  b.key("u8", MetaType::u8).number<uint8_t>(255).key("i8", MetaType::i8).number<int8_t>(-1);
  b.key("u16", MetaType::u16).number<uint16_t>(65535).key("i16", MetaType::i16).number<int16_t>(-2);
  b.entry("u32", 4294967295u).key("i32", MetaType::i32).number<int32_t>(-3);
  b.key("u64", MetaType::u64).u64(INT64_MAX).key("i64", MetaType::i64).number<int64_t>(INT64_MIN);
  b.key("f32", MetaType::f32).number(0.5f).key("f64", MetaType::f64).number(0.1);
  b.key("bool", MetaType::boolean).number<uint8_t>(1).entry("s", "caf\xC3\xA9");
  b.key("a", array).u32(static_cast<uint32_t>(MetaType::u8)).u64(3).raw("abc");
  b.key("nested", array).u32(static_cast<uint32_t>(array)).u64(1);
  b.u32(static_cast<uint32_t>(MetaType::string)).u64(2).string("").string("x");
  b.tensor("t", {3, 2, 1, 5}, f32, 0).align().zeros(120);
  const GgufFile file = parse_gguf(b.file());
  EXPECT_EQ(file.version, 2);
  EXPECT_EQ(file.meta.integer("u8"), 255);
  EXPECT_EQ(file.meta.integer("i8"), -1);
  EXPECT_EQ(file.meta.integer("u16"), 65535);
  EXPECT_EQ(file.meta.integer("i16"), -2);
  EXPECT_EQ(file.meta.integer("u32"), 4294967295);
  EXPECT_EQ(file.meta.integer("i32"), -3);
  EXPECT_EQ(file.meta.integer("u64"), INT64_MAX);
  EXPECT_EQ(file.meta.integer("i64"), INT64_MIN);
  EXPECT_EQ(file.meta.number("f32"), 0.5);
  EXPECT_EQ(file.meta.number("f64"), 0.1);
  EXPECT_TRUE(file.meta.boolean("bool"));
  EXPECT_EQ(file.meta.string("s"), "caf\xC3\xA9");
  EXPECT_THAT(file.meta.integers("a"), testing::ElementsAre('a', 'b', 'c'));
  EXPECT_EQ(file.meta.find("nested")->describe(), "array of array [1]");
  ASSERT_EQ(file.tensors.size(), 1u);
  EXPECT_EQ(file.tensors[0].sizes, (Sizes{5, 1, 2, 3}));
}

TEST(Gguf, RefusesOtherFiles) {
  EXPECT_THAT(refusal(Bytes().raw("GGU")), HasSubstr("cut short"));
  EXPECT_THAT(refusal(Bytes().raw("GGML").zeros(20)), HasSubstr("doesn't begin with \"GGUF\""));
  EXPECT_THAT(refusal(Bytes().raw("FUGG").zeros(20)), HasSubstr("big-endian"));
  EXPECT_THAT(refusal(Bytes().header(0, 0, 0x03000000)), HasSubstr("big-endian"));
  EXPECT_THAT(refusal(Bytes().header(0, 0, 1)), HasSubstr("version 1"));
  EXPECT_THAT(refusal(Bytes().header(0, 0, 4)), HasSubstr("version 4"));
  EXPECT_EQ(refusal(Bytes().header(0, 0)), "accepted");
}

TEST(Gguf, RefusesAbsurdCounts) {
  constexpr uint64_t huge = UINT64_MAX, giga = 1u << 30;
  EXPECT_THAT(refusal(Bytes().header(huge, 0)), HasSubstr("18446744073709551615 tensors"));
  EXPECT_THAT(refusal(Bytes().header(0, huge)), HasSubstr("metadata entries"));
  EXPECT_THAT(refusal(Bytes().header(5, 0).zeros(100)), HasSubstr("5 tensors"));
  EXPECT_THAT(refusal(Bytes().header(0, 1).u64(giga).zeros(128)), HasSubstr("metadata key"));
  EXPECT_THAT(refusal(Bytes().header(0, 1).key("k", MetaType::string).u64(giga).zeros(128)), HasSubstr("1073741824 k"));
  EXPECT_THAT(refusal(Bytes().header(0, 1).key("k", MetaType::string).u64(huge).zeros(128)), HasSubstr("can't fit"));
  for (uint32_t t = 0; t <= 12; ++t)
    EXPECT_THAT(refusal(Bytes().header(0, 1).key("k", array).u32(t).u64(giga).zeros(128)), HasSubstr("1073741824 k"))
        << t;
  EXPECT_THAT(refusal(Bytes().header(0, 1).key("k", array).u32(5).u64(33).zeros(128)), HasSubstr("33 k"));
  EXPECT_EQ(refusal(Bytes().header(0, 1).key("k", array).u32(5).u64(32).zeros(128)), "accepted");
}

TEST(Gguf, RefusesBadMetadata) {
  EXPECT_THAT(refusal(Bytes().header(0, 1).entry("", 1)), HasSubstr("empty metadata key"));
  EXPECT_THAT(refusal(Bytes().header(0, 2).entry("k", 1).entry("k", 2)), HasSubstr("\"k\" stands twice"));
  EXPECT_THAT(refusal(Bytes().header(0, 1).entry("k\xFF", 1)), HasSubstr("no UTF-8"));
  EXPECT_THAT(refusal(Bytes().header(0, 1).entry("k", "a\xC0\x80")), HasSubstr("k: no UTF-8 at its byte 1"));
  EXPECT_THAT(refusal(Bytes().header(0, 1).string("k").u32(13).zeros(8)), HasSubstr("\"k\" has unknown type 13"));
  EXPECT_THAT(refusal(Bytes().header(0, 1).key("k", array).u32(99).u64(0)), HasSubstr("unknown type 99"));
  EXPECT_THAT(refusal(Bytes().header(0, 1).key("k", MetaType::boolean).raw("\2")), HasSubstr("neither 0 nor 1"));
  EXPECT_THAT(refusal(Bytes().header(0, 1).key("k", MetaType::u64).u64(UINT64_MAX)), HasSubstr("past the range"));
  Bytes deep;
  deep.header(0, 1).key("k", array);
  for (int i = 0; i < 1000; ++i) deep.u32(9).u64(1);
  EXPECT_THAT(refusal(deep), HasSubstr("nested deeper"));
  const auto strings = [](std::string_view key) {
    return Bytes().header(0, 1).key(key, array).u32(8).u64(1).string("\xFF");
  };
  EXPECT_THAT(refusal(strings("general.tags")), HasSubstr("no UTF-8"));
  EXPECT_EQ(refusal(strings("tokenizer.ggml.tokens")), "accepted");
}

TEST(Gguf, NarrowArraysKeepTheirValues) {
  Bytes b;
  b.header(0, 1).key("k", array).u32(static_cast<uint32_t>(MetaType::u8)).u64(2).raw("\1\2");
  const GgufFile file = parse_gguf(b.file());
  EXPECT_THAT(file.meta.integers("k"), testing::ElementsAre(1, 2));
  EXPECT_THROW(file.meta.numbers("k"), Error);
  EXPECT_THROW(file.meta.strings("k"), Error);
  EXPECT_THROW(file.meta.integer("k"), Error);
}

TEST(Gguf, RefusesBadAlignments) {
  const auto aligned = [](uint32_t to) {
    return Bytes().header(1, 1).entry("general.alignment", to).tensor("t", {1}, f32, 0).align(64).zeros(64);
  };
  EXPECT_EQ(refusal(aligned(64)), "accepted");
  for (const uint32_t bad : {0u, 1u, 4u, 33u, 48u, 1u << 17, 1u << 30, 1u << 31, UINT32_MAX})
    EXPECT_THAT(refusal(aligned(bad)), HasSubstr("power of two")) << bad;
  EXPECT_THAT(refusal(Bytes().header(0, 1).entry("general.alignment", "32")), HasSubstr("should be an integer"));
}

TEST(Gguf, RefusesBadTensors) {
  const auto one = [](const std::vector<uint64_t>& dimensions, uint32_t type, uint64_t offset = 0) {
    return refusal(Bytes().header(1, 0).tensor("t", dimensions, type, offset).align().zeros(64));
  };
  EXPECT_EQ(one({16}, f32), "accepted");
  EXPECT_EQ(one({}, f32), "accepted");
  EXPECT_EQ(one({32}, q8_0, 0), "accepted");
  EXPECT_THAT(one({1, 1, 1, 1, 1}, f32), HasSubstr("5 dimensions, more than 4"));
  EXPECT_THAT(refusal(Bytes().header(1, 0).string("t").u32(UINT32_MAX).zeros(64)), HasSubstr("4294967295 dimensions"));
  EXPECT_THAT(one({4, 0}, f32), HasSubstr("dimension 1 is 0"));
  EXPECT_THAT(one({UINT64_MAX}, f32), HasSubstr("18446744073709551615"));
  EXPECT_THAT(one({uint64_t{1} << 32, uint64_t{1} << 32}, f32), HasSubstr("overflow"));
  EXPECT_THAT(one({uint64_t{1} << 62}, f32), HasSubstr("overflow"));
  EXPECT_THAT(one({17}, f32), HasSubstr("cut short: tensor \"t\" takes 68 bytes"));
  EXPECT_THAT(one({16}, f32, 32), HasSubstr("cut short"));
  EXPECT_THAT(one({1}, f32, 4), HasSubstr("isn't a multiple of the alignment 32"));
  EXPECT_THAT(one({1}, f32, uint64_t{1} << 63), HasSubstr("past the end"));
  EXPECT_THAT(one({31}, q8_0), HasSubstr("rows of 31 elements can't be q8_0"));
  EXPECT_THAT(one({}, q8_0), HasSubstr("can't be q8_0"));
  EXPECT_THAT(one({256}, 16), HasSubstr("IQ2_XXS, which isn't supported"));
  EXPECT_THAT(one({256}, 34), HasSubstr("TQ1_0, which isn't supported"));
  EXPECT_THAT(one({256}, 4), HasSubstr("unknown type 4"));
  EXPECT_THAT(one({256}, UINT32_MAX), HasSubstr("unknown type 4294967295"));
}

TEST(Gguf, RefusesDuplicateAndOverlappingTensors) {
  const auto two = [](std::string_view a, uint64_t a_at, std::string_view b, uint64_t b_at) {
    return refusal(Bytes().header(2, 0).tensor(a, {16}, f32, a_at).tensor(b, {16}, f32, b_at).align().zeros(128));
  };
  EXPECT_EQ(two("a", 0, "b", 64), "accepted");
  EXPECT_EQ(two("a", 64, "b", 0), "accepted");
  EXPECT_THAT(two("a", 0, "a", 64), HasSubstr("\"a\" stands twice"));
  EXPECT_THAT(two("a", 0, "b", 32), HasSubstr("overlap"));
  EXPECT_THAT(two("a", 0, "b", 0), HasSubstr("overlap"));
  EXPECT_THAT(two("a", 0, "", 64), HasSubstr("without a name"));
  EXPECT_THAT(two("a", 0, "\xED\xA0\x80", 64), HasSubstr("no UTF-8"));
}

TEST(Gguf, RefusesEveryCutAt4096) {
  const auto whole = MappedFile::open(std::string(models) + "llama_q256/model-Q8_0.gguf");
  ASSERT_EQ(refusal(whole), "accepted");
  for (int64_t size = 0; size < whole->size(); size += 4096) {
    const auto part = whole->range(0, size, "part");
    EXPECT_NE(refusal(MappedFile::of_bytes("cut.gguf", {part.begin(), part.end()})), "accepted") << size;
  }
}

TEST(Gguf, AnyMutationIsReadOrRefused) {
  Bytes b;
  b.header(2, 3).entry("general.architecture", "llama").entry("general.alignment", 32);
  b.key("tokenizer.ggml.tokens", array).u32(8).u64(2).string("a").string("b");
  b.tensor("a", {16}, f32, 0).tensor("b", {32}, q8_0, 64).align().zeros(98);
  ASSERT_EQ(refusal(b), "accepted");
  const bool held = rc::check("mutated or cut", [&] {
    std::vector<std::byte> bytes = b.bytes();
    const auto changes = *rc::gen::inRange(1, 8);
    for (int i = 0; i < changes; ++i)
      bytes[*rc::gen::inRange<size_t>(0, bytes.size())] = static_cast<std::byte>(*rc::gen::arbitrary<uint8_t>());
    bytes.resize(*rc::gen::inRange<size_t>(bytes.size() / 2, bytes.size() + 1));
    refusal(MappedFile::of_bytes("mutated", std::move(bytes)));
  });
  EXPECT_TRUE(held);
}

Bytes part(uint16_t number, uint16_t count, int32_t tensors, std::string_view tensor) {
  Bytes b;
  b.header(1, 3).key("split.no", MetaType::u16).number(number).key("split.count", MetaType::u16).number(count);
  b.key("split.tensors.count", MetaType::i32).number(tensors).tensor(tensor, {1}, f32, 0).align();
  b.number(static_cast<float>(number)).zeros(28);
  return b;
}

TEST(GgufParts, OpensFromAnyPart) {
  const Folder folder;
  const auto first = folder.write("m-00001-of-00002.gguf", part(0, 2, 2, "a"));
  const auto second = folder.write("m-00002-of-00002.gguf", part(1, 2, 2, "b"));
  for (const auto& path : {first, second}) {
    const ModelFile model = open_model(path);
    ASSERT_EQ(model.tensors.size(), 2u);
    EXPECT_EQ(model.tensors[0].name, "a");
    EXPECT_EQ(model.find("b")->load().as<float>()[0], 1.0f);
    EXPECT_EQ(model.files, (std::vector{first, second}));
    EXPECT_EQ(model.meta->integer("split.no"), 0);
  }
}

TEST(GgufParts, RefusesWhatDoesNotFit) {
  const Folder folder;
  const auto open = [&](const std::filesystem::path& path) { return refusal_of([&] { open_model(path); }); };
  const auto first = folder.write("m-00001-of-00002.gguf", part(0, 2, 2, "a"));
  EXPECT_THAT(open(first), HasSubstr("part 2 of 2 is missing"));
  folder.write("m-00002-of-00002.gguf", part(1, 2, 2, "a"));
  EXPECT_THAT(open(first), HasSubstr("earlier part too"));
  folder.write("m-00002-of-00002.gguf", part(0, 2, 2, "b"));
  EXPECT_THAT(open(first), HasSubstr("has split.no 0 and split.count 2, but its place among the parts wants 1 and 2"));
  folder.write("m-00002-of-00002.gguf", part(1, 3, 2, "b"));
  EXPECT_THAT(open(first), HasSubstr("has split.no 1 and split.count 3"));
  folder.write("m-00002-of-00002.gguf", Bytes()
                                            .header(0, 2)
                                            .key("split.no", MetaType::i64)
                                            .number(std::numeric_limits<int64_t>::max())
                                            .key("split.count", MetaType::u16)
                                            .number(uint16_t{2}));
  EXPECT_THAT(open(first), HasSubstr("has split.no 9223372036854775807"));
  folder.write("m-00002-of-00002.gguf", part(1, 2, 2, "b"));
  folder.write("m-00001-of-00002.gguf", part(0, 2, 3, "a"));
  EXPECT_THAT(open(first), HasSubstr("hold 2 tensors, should be 3"));
  EXPECT_THAT(open(folder.write("m.gguf", part(0, 2, 2, "a"))), HasSubstr("isn't named like one"));
  EXPECT_THAT(open(folder.write("m-00001-of-00003.gguf", part(0, 2, 2, "a"))), HasSubstr("of 3 by its name"));
}

TEST(OpenModel, SaysWhatItFound) {
  const Folder folder;
  const auto open = [&](const std::filesystem::path& path) { return refusal_of([&] { open_model(path); }); };
  EXPECT_THAT(open(folder.path), HasSubstr("is a folder"));
  EXPECT_THAT(open(folder.path / "absent"), HasSubstr("can't be opened"));
  EXPECT_THAT(open(folder.write("zip", Bytes().raw("PK\3\4").zeros(100))), HasSubstr("this one with \"PK\\x03\\x04\""));
  EXPECT_THAT(open(folder.write("empty", Bytes())), HasSubstr("is empty"));
}

}  // namespace
}  // namespace consonant
