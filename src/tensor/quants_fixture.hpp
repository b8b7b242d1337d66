// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cctype>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "tensor/dtype.hpp"

namespace consonant::test {

// llm/quants.safetensors: 8 rows of 512 floats ("source"), and what ggml makes of them in each type. Read here by hand:
// a test of this folder must not stand on the readers that stand on this folder.
class QuantsFixture {
 public:
  static constexpr int rows = 8, columns = 512;

  QuantsFixture() {
    const std::string path = CONSONANT_TEST_DATA "/llm/quants.safetensors";
    std::ifstream file(path, std::ios::binary);
    file_.assign(std::istreambuf_iterator<char>(file), {});
    uint64_t length = 0;
    if (file_.size() < sizeof length) throw std::runtime_error("can't read " + path);
    std::memcpy(&length, file_.data(), sizeof length);
    header_ = nlohmann::json::parse(file_.begin() + 8, file_.begin() + 8 + static_cast<std::ptrdiff_t>(length));
    data_ = 8 + length;
  }

  std::vector<float> source() const { return floats("source"); }
  std::vector<float> decoded(DType type) const { return floats(fixture_name(type) + ".f32"); }
  std::vector<std::byte> raw(DType type) const { return bytes(fixture_name(type) + ".raw"); }

 private:
  static std::string fixture_name(DType type) {
    std::string upper(name(type));
    std::transform(upper.begin(), upper.end(), upper.begin(), [](unsigned char c) { return std::toupper(c); });
    return upper;
  }

  std::vector<std::byte> bytes(const std::string& tensor) const {
    const auto& range = header_.at(tensor).at("data_offsets");
    const size_t begin = data_ + range[0].get<size_t>(), end = data_ + range[1].get<size_t>();
    if (begin > end || end > file_.size()) throw std::runtime_error(tensor + " is outside the fixture");
    const auto* base = reinterpret_cast<const std::byte*>(file_.data());
    return {base + begin, base + end};
  }

  std::vector<float> floats(const std::string& tensor) const {
    const auto raw = bytes(tensor);
    std::vector<float> out(raw.size() / sizeof(float));
    std::memcpy(out.data(), raw.data(), raw.size());
    return out;
  }

  std::string file_;
  nlohmann::json header_;
  size_t data_ = 0;
};

}  // namespace consonant::test
