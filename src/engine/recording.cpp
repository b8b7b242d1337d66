// SPDX-License-Identifier: Apache-2.0
#include "engine/recording.hpp"

#include <algorithm>
#include <cstring>

#include "base/error.hpp"
#include "base/glob.hpp"
#include "engine/version.hpp"
#include "formats/safetensors.hpp"

namespace consonant {

namespace {

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

HostTensor tensor_of(DType type, Sizes sizes, const void* data) {
  HostTensor tensor = HostTensor::allocate(type, std::move(sizes));
  std::memcpy(tensor.mutable_bytes().data(), data, tensor.bytes.size());
  return tensor;
}

}  // namespace

void check_same(const RecordedRun& a, const RecordedRun& b, std::string_view how) {
  const auto differ = [&](std::string_view what) {
    throw_error(Exit::disagree, "the positive control failed: {} differs {}; nothing is recorded", what, how);
  };
  if (a.tokens != b.tokens) differ("a token");
  if (a.taps.size() != b.taps.size()) differ("the number of taps");
  for (size_t i = 0; i < a.taps.size(); ++i)
    if (!same_bits(a.taps[i].rows, b.taps[i].rows)) differ(a.taps[i].name);
  if (!same_bits(a.logits, b.logits)) differ("the logits");
}

void check_taps(const std::vector<std::string>& globs, const std::vector<Plan::Tap>& taps) {
  for (const std::string& glob : globs)
    if (std::none_of(taps.begin(), taps.end(), [&](const auto& tap) { return glob_match(glob, tap.name); }))
      bad_usage("no node that this device computes on its own matches the tap '{}'", glob);
}

void write_recording(const std::string& path, const RecordedRun& run, int64_t vocabulary, const ModelInfo& info,
                     const std::string& model_sha256, const std::string& options) {
  const auto n = static_cast<int64_t>(run.tokens.size());
  std::vector<NamedTensor> tensors;
  tensors.push_back({"tokens", tensor_of(DType::i32, {n}, run.tokens.data())});
  tensors.push_back({"logits", tensor_of(DType::f32, {n, vocabulary}, run.logits.data())});
  if (!run.sound.empty())
    tensors.push_back({"sound", tensor_of(DType::f32, {static_cast<int64_t>(run.sound.size())}, run.sound.data())});
  std::map<std::string, std::string> header = {
      {"device", info.device},        {"precision", info.precision}, {"kv", info.kv},
      {"model_sha256", model_sha256}, {"version", version},          {"options", options},
      {"positive_control", "passed"}};
  for (const TapRows& tap : run.taps) {
    Sizes sizes = {static_cast<int64_t>(tap.rows.size()) / element_count(tap.sizes)};
    sizes.insert(sizes.end(), tap.sizes.begin(), tap.sizes.end());
    tensors.push_back({tap.name, tensor_of(DType::f32, std::move(sizes), tap.rows.data())});
    header["source:" + tap.name] = tap.source;
  }
  write_safetensors(path, tensors, header);
}

}  // namespace consonant
