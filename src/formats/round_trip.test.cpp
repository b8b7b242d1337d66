// SPDX-License-Identifier: Apache-2.0
// Whatever is written is read back the same, for any metadata and any tensors.
#include <gtest/gtest.h>
#include <unistd.h>

#include <rapidcheck.h>
#include <algorithm>
#include <cmath>
#include <set>

#include "base/utf8.hpp"
#include "formats/gguf.hpp"
#include "formats/gguf_writer.hpp"
#include "formats/safetensors.hpp"

namespace consonant {
namespace {

struct Scratch {
  std::filesystem::path path = std::filesystem::path(testing::TempDir()) / fmt::format("round-trip-{}", ::getpid());
  ~Scratch() { std::filesystem::remove(path); }
};

std::string any_text() { return sanitize_utf8(*rc::gen::arbitrary<std::string>()); }

std::set<std::string> any_names() {
  std::set<std::string> names;
  const int count = *rc::gen::inRange(0, 6);
  for (int i = 0; i < count; ++i) names.insert(any_text() + std::to_string(i));
  return names;
}

double any_float() {
  const double x = *rc::gen::arbitrary<double>();
  const float narrow = static_cast<float>(x);
  return std::isfinite(narrow) ? static_cast<double>(narrow) : 0.0;
}

MetaValue any_value(Meta& meta, int depth) {
  switch (*rc::gen::inRange(0, depth > 2 ? 8 : 9)) {
    case 0:
      return {MetaType::u8, false, int64_t{*rc::gen::arbitrary<uint8_t>()}};
    case 1:
      return {MetaType::i64, false, *rc::gen::arbitrary<int64_t>()};
    case 2:
      return {MetaType::f32, false, any_float()};
    case 3:
      return {MetaType::boolean, false, *rc::gen::arbitrary<bool>()};
    case 4:
      return {MetaType::string, false, meta.keep(any_text())};
    case 5: {
      MetaInts values;
      for (const int16_t x : *rc::gen::arbitrary<std::vector<int16_t>>()) values.push_back(x);
      return {MetaType::i16, true, values};
    }
    case 6:
      return {MetaType::boolean, true, *rc::gen::arbitrary<std::vector<bool>>()};
    case 7: {
      MetaStrings values;
      const int count = *rc::gen::inRange(0, 4);
      for (int i = 0; i < count; ++i) values.push_back(meta.keep(any_text()));
      return {MetaType::string, true, values};
    }
    default: {
      MetaNested nested;
      const int count = *rc::gen::inRange(0, 3);
      for (int i = 0; i < count; ++i) {
        MetaValue inner = any_value(meta, depth + 1);
        if (inner.is_array) nested.values.push_back(std::move(inner));
      }
      return {MetaType::array, true, nested};
    }
  }
}

struct Same {
  bool operator()(const MetaNested& a, const MetaNested& b) const {
    return std::equal(a.values.begin(), a.values.end(), b.values.begin(), b.values.end(), same);
  }
  template <class T>
  bool operator()(const T& a, const T& b) const {
    return a == b;
  }
  template <class A, class B>
  bool operator()(const A&, const B&) const {
    return false;
  }
  static bool same(const MetaValue& a, const MetaValue& b) {
    return a.type == b.type && a.is_array == b.is_array && std::visit(Same(), a.value, b.value);
  }
};

HostTensor any_tensor(std::vector<DType> types) {
  const DType type = *rc::gen::elementOf(types);
  Sizes sizes = *rc::gen::container<Sizes>(*rc::gen::inRange<size_t>(1, 5), rc::gen::inRange<int64_t>(1, 4));
  sizes.back() *= info(type).block;
  HostTensor tensor = HostTensor::allocate(type, sizes);
  for (std::byte& b : tensor.mutable_bytes()) b = static_cast<std::byte>(*rc::gen::arbitrary<uint8_t>());
  return tensor;
}

bool equal(const HostTensor& a, const HostTensor& b) {
  return a.type == b.type && a.sizes == b.sizes &&
         std::equal(a.bytes.begin(), a.bytes.end(), b.bytes.begin(), b.bytes.end());
}

TEST(RoundTrip, Gguf) {
  const Scratch scratch;
  const bool held = rc::check("what write_gguf writes, open_gguf reads", [&] {
    Meta meta;
    for (const std::string& key : any_names()) meta.add(key, any_value(meta, 0));
    std::vector<GgufTensorPlan> plan;
    std::vector<HostTensor> tensors;
    for (const std::string& name : any_names()) {
      tensors.push_back(any_tensor({DType::f32, DType::bf16, DType::i8, DType::q8_0, DType::q4_k}));
      plan.push_back({name, tensors.back().type, tensors.back().sizes});
    }
    write_gguf(scratch.path, meta, plan, [&](size_t i, const ByteSink& sink) {
      const size_t half = tensors[i].bytes.size() / 2;
      sink(tensors[i].bytes.first(half));
      sink(tensors[i].bytes.subspan(half));
    });
    const ModelFile read = open_gguf(scratch.path);
    RC_ASSERT(read.meta->entries().size() == meta.entries().size());
    for (size_t i = 0; i < meta.entries().size(); ++i) {
      RC_ASSERT(read.meta->entries()[i].first == meta.entries()[i].first);
      RC_ASSERT(Same::same(read.meta->entries()[i].second, meta.entries()[i].second));
    }
    RC_ASSERT(read.tensors.size() == tensors.size());
    for (size_t i = 0; i < tensors.size(); ++i) {
      RC_ASSERT(read.tensors[i].name == plan[i].name);
      RC_ASSERT(equal(read.tensors[i].load(), tensors[i]));
    }
  });
  EXPECT_TRUE(held);
}

TEST(RoundTrip, Safetensors) {
  const Scratch scratch;
  const bool held = rc::check("what write_safetensors writes, SafetensorsFile reads", [&] {
    std::vector<NamedTensor> tensors;
    for (const std::string& name : any_names())
      tensors.push_back({name, any_tensor({DType::f32, DType::f16, DType::i64, DType::u8, DType::boolean})});
    std::map<std::string, std::string> metadata;
    for (const std::string& key : any_names()) metadata.emplace(key, any_text());
    write_safetensors(scratch.path, tensors, metadata);
    const SafetensorsFile read = SafetensorsFile::open(scratch.path);
    RC_ASSERT(read.metadata() == metadata);
    RC_ASSERT(read.entries().size() == tensors.size());
    for (const NamedTensor& t : tensors) RC_ASSERT(equal(read.tensor(t.name), t.tensor));
  });
  EXPECT_TRUE(held);
}

}  // namespace
}  // namespace consonant
