// SPDX-License-Identifier: Apache-2.0
#include "formats/safetensors.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rapidcheck.h>
#include <unistd.h>
#include <cstring>
#include <fstream>
#include <optional>

#include "base/error.hpp"

namespace consonant {
namespace {

using testing::HasSubstr;

std::shared_ptr<const MappedFile> with_header(std::string header, std::string_view data,
                                              std::optional<uint64_t> size = std::nullopt) {
  const uint64_t n = size.value_or(header.size());
  std::vector<std::byte> bytes(8);
  std::memcpy(bytes.data(), &n, 8);
  for (char c : header) bytes.push_back(static_cast<std::byte>(c));
  for (char c : data) bytes.push_back(static_cast<std::byte>(c));
  return MappedFile::of_bytes("x.safetensors", std::move(bytes));
}

std::string refusal(std::shared_ptr<const MappedFile> file) {
  try {
    const SafetensorsFile read(std::move(file));
  } catch (const Error& error) {
    EXPECT_EQ(error.exit(), Exit::input);
    return error.what();
  }
  return "accepted";
}

std::string refusal(std::string header, std::string_view data) { return refusal(with_header(std::move(header), data)); }

std::filesystem::path temporary(const std::string& name) {
  return std::filesystem::path(testing::TempDir()) / (name + std::to_string(::getpid()));
}

TEST(Safetensors, ReadsWhatItWrote) {
  HostTensor a = HostTensor::allocate(DType::f32, {2, 3});
  for (int i = 0; i < 6; ++i) reinterpret_cast<float*>(a.mutable_bytes().data())[i] = static_cast<float>(i) / 2;
  HostTensor b = HostTensor::allocate(DType::boolean, {3});
  b.mutable_bytes()[1] = std::byte{1};
  const HostTensor empty = HostTensor::allocate(DType::i64, {0, 4});
  const HostTensor scalar = HostTensor::allocate(DType::bf16, {});
  const auto path = temporary("round.safetensors");
  write_safetensors(path, {{"flags", b}, {"a", a}, {"empty", empty}, {"scalar", scalar}}, {{"k\n\"", "v\xC3\xA9"}});

  const SafetensorsFile read = SafetensorsFile::open(path);
  EXPECT_THAT(read.metadata(), testing::ElementsAre(testing::Pair("k\n\"", "v\xC3\xA9")));
  ASSERT_EQ(read.entries().size(), 4u);
  EXPECT_EQ(read.tensor("a").sizes, (Sizes{2, 3}));
  EXPECT_THAT(read.tensor("a").as<float>(), testing::ElementsAre(0, .5f, 1, 1.5f, 2, 2.5f));
  EXPECT_EQ(read.tensor("flags").bytes[1], std::byte{1});
  EXPECT_EQ(read.tensor("empty").sizes, (Sizes{0, 4}));
  EXPECT_EQ(read.tensor("scalar").sizes, Sizes{});
  EXPECT_THROW(read.tensor("b"), Error);
  std::filesystem::remove(path);
}

TEST(Safetensors, ReadsPublishedFiles) {
  const SafetensorsFile read = SafetensorsFile::open(CONSONANT_TEST_DATA "/llm/models/llama/golden.safetensors");
  EXPECT_EQ(read.tensor("logits").sizes, (Sizes{48, 512}));
  EXPECT_EQ(read.tensor("input_ids").bytes.size() % 48, 0u);
  EXPECT_TRUE(read.metadata().count("smallest_greedy_gap"));
}

TEST(Safetensors, CopiesMisalignedTensors) {
  const SafetensorsFile read(with_header(
      R"({"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"f":{"dtype":"F32","shape":[1],"data_offsets":[1,5]}})",
      std::string("\1\0\0\x80\x3f", 5)));
  const HostTensor f = read.tensor("f");
  EXPECT_EQ(reinterpret_cast<uintptr_t>(f.bytes.data()) % 4, 0u);
  EXPECT_EQ(f.as<float>()[0], 1.0f);
}

TEST(Safetensors, FailedWriteLeavesNothing) {
  const auto folder = temporary("safetensors-folder");
  std::filesystem::create_directory(folder);
  std::ofstream(folder / "x") << "old";
  const HostTensor q = HostTensor::allocate(DType::q8_0, {32});
  EXPECT_THROW(write_safetensors(folder / "x", {{"q", q}}), Error);
  const HostTensor f = HostTensor::allocate(DType::f32, {1});
  EXPECT_THROW(write_safetensors(folder / "x", {{"f", f}, {"f", f}}), Error);
  EXPECT_THROW(write_safetensors(folder, {{"f", f}}), Error);
  EXPECT_EQ(std::filesystem::file_size(folder / "x"), 3u);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
  std::filesystem::remove_all(folder);
}

TEST(Safetensors, RefusesBadFiles) {
  EXPECT_THAT(refusal(MappedFile::of_bytes("x", std::vector<std::byte>(7))), HasSubstr("length of the header"));
  EXPECT_THAT(refusal(with_header("{}", "", 3)), HasSubstr("the header should be 3 bytes"));
  EXPECT_THAT(refusal(with_header("{}", "", ~uint64_t{0})), HasSubstr("18446744073709551615"));
  EXPECT_THAT(refusal("[]", ""), HasSubstr("no JSON object"));
  EXPECT_THAT(refusal("{\"a\":", ""), HasSubstr("not JSON"));
  EXPECT_THAT(refusal("{} x", ""), HasSubstr("not JSON"));
  EXPECT_THAT(refusal("{\"\xFF\":1}", ""), HasSubstr("not JSON"));
  EXPECT_THAT(refusal("{\"a\":" + std::string(100000, '['), ""), HasSubstr("nested deeper"));
  EXPECT_THAT(refusal("{\"__metadata__\":{\"a\":1}}", ""), HasSubstr("no string"));
  EXPECT_THAT(refusal("{\"__metadata__\":[]}", ""), HasSubstr("no object"));
  EXPECT_THAT(refusal("{}", "x"), HasSubstr("1 bytes at the end"));
  const auto one = [](std::string_view dtype, std::string_view shape, std::string_view offsets) {
    return fmt::format(R"({{"t":{{"dtype":"{}","shape":{},"data_offsets":{}}}}})", dtype, shape, offsets);
  };
  EXPECT_EQ(refusal(one("F32", "[1]", "[0,4]"), "abcd"), "accepted");
  EXPECT_THAT(refusal(one("F8_E4M3", "[4]", "[0,4]"), "abcd"), HasSubstr("F8_E4M3"));
  EXPECT_THAT(refusal(one("F32", "[2]", "[0,4]"), "abcd"), HasSubstr("takes 8 bytes"));
  EXPECT_THAT(refusal(one("F32", "[2]", "[0,8]"), "abcd"), HasSubstr("data ends at 8"));
  EXPECT_THAT(refusal(one("F32", "[1]", "[4,0]"), "abcd"), HasSubstr("before it begins"));
  EXPECT_THAT(refusal(one("F32", "[-1]", "[0,4]"), "abcd"), HasSubstr("-1"));
  EXPECT_THAT(refusal(one("F32", "[1.5]", "[0,4]"), "abcd"), HasSubstr("1.5"));
  EXPECT_THAT(refusal(one("F32", "[4294967296,4294967296]", "[0,4]"), "abcd"), HasSubstr("overflow"));
  EXPECT_THAT(refusal(one("F32", "[18446744073709551615]", "[0,4]"), "abcd"), HasSubstr("18446744073709551615"));
  EXPECT_THAT(refusal(one("F32", "[1]", "[0]"), "abcd"), HasSubstr("two numbers"));
  EXPECT_THAT(refusal(one("F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]"), "abcd"), HasSubstr("dimensions"));
  EXPECT_THAT(refusal(R"({"t":{"dtype":"F32","shape":[1]}})", ""), HasSubstr("no \"data_offsets\""));
  EXPECT_THAT(refusal(R"({"":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})", ""), HasSubstr("without a name"));
}

TEST(Safetensors, RefusesDuplicatesOverlapsAndGaps) {
  const std::string_view u8 = R"({{"a":{{"dtype":"U8","shape":[2],"data_offsets":[{},{}]}},)"
                              R"("{}":{{"dtype":"U8","shape":[2],"data_offsets":[{},{}]}}}})";
  EXPECT_EQ(refusal(fmt::format(fmt::runtime(u8), 2, 4, "b", 0, 2), "abcd"), "accepted");
  EXPECT_THAT(refusal(fmt::format(fmt::runtime(u8), 0, 2, "a", 2, 4), "abcd"), HasSubstr("stands twice"));
  EXPECT_THAT(refusal(fmt::format(fmt::runtime(u8), 0, 2, "b", 1, 3), "abc"), HasSubstr("overlaps"));
  EXPECT_THAT(refusal(fmt::format(fmt::runtime(u8), 0, 2, "b", 0, 2), "ab"), HasSubstr("overlaps"));
  EXPECT_THAT(refusal(fmt::format(fmt::runtime(u8), 0, 2, "b", 3, 5), "abcde"), HasSubstr("belong to none"));
}

TEST(Safetensors, EveryTruncationIsRefused) {
  const auto whole = MappedFile::open(CONSONANT_TEST_DATA "/llm/models/llama/model.safetensors");
  const bool held = rc::check("a truncated file is refused", [&] {
    const auto n = *rc::gen::inRange<int64_t>(0, whole->size());
    const auto part = whole->range(0, n, "part");
    RC_ASSERT(refusal(MappedFile::of_bytes("part", {part.begin(), part.end()})) != "accepted");
  });
  EXPECT_TRUE(held);
}

TEST(MappedFile, SaysWhatItCantOpen) {
  EXPECT_THROW(MappedFile::open("/nonexistent"), Error);
  EXPECT_THROW(MappedFile::open("/tmp"), Error);
  EXPECT_THROW(MappedFile::open("/dev/null"), Error);
  const auto file = MappedFile::open(CONSONANT_TEST_DATA "/llm/models/llama/model.safetensors");
  EXPECT_THROW(file->range(file->size(), 1, "x"), Error);
  EXPECT_THROW(file->range(-1, 1, "x"), Error);
  EXPECT_THROW(file->range(1, INT64_MAX, "x"), Error);
  const std::vector<std::byte> before(file->bytes().begin(), file->bytes().end());
  file->release(file->bytes());
  EXPECT_TRUE(std::equal(before.begin(), before.end(), file->bytes().begin()));
}

}  // namespace
}  // namespace consonant
