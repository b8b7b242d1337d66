// SPDX-License-Identifier: Apache-2.0
#include "verify/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "formats/safetensors.hpp"

namespace consonant {

namespace {

int64_t argmax(std::span<const float> x) { return std::max_element(x.begin(), x.end()) - x.begin(); }

// How far the greatest element stands above the second.
double margin(std::span<const float> x) {
  float first = -HUGE_VALF, second = -HUGE_VALF;
  for (float v : x) {
    if (v > first)
      second = first, first = v;
    else if (v > second)
      second = v;
  }
  return double{first} - second;
}

void add_row(TensorDistance& d, std::span<const float> a, std::span<const float> b, double tie_margin) {
  double dot = 0, aa = 0, bb = 0, greatest = 0, worst = 0;
  bool finite = true;
  for (size_t i = 0; i < a.size(); ++i) {
    const double x = a[i], y = b[i];
    finite = finite && std::isfinite(x) && std::isfinite(y);
    dot += x * y, aa += x * x, bb += y * y;
    greatest = std::max(greatest, std::fabs(x));
    worst = std::max(worst, std::fabs(x - y));
  }
  ++d.rows;
  if (!finite) {
    d.cosine = d.max_abs = d.max_rel = std::nan("");
    d.within_tolerance = false;
    return;
  }
  const double cosine = aa == 0 && bb == 0 ? 1 : aa == 0 || bb == 0 ? 0 : dot / std::sqrt(aa * bb);
  d.cosine = std::min(d.cosine, cosine);
  d.max_abs = std::max(d.max_abs, worst);
  if (greatest > 0) d.max_rel = std::max(d.max_rel, worst / greatest);
  if (argmax(a) == argmax(b)) return;
  ++d.argmax_changes;
  const double rms = std::sqrt(aa / static_cast<double>(a.size()));
  if (margin(a) > tie_margin * rms) ++d.argmax_disagreements;
}

std::string need(const SafetensorsFile& file, const std::string& key) {
  const auto at = file.metadata().find(key);
  if (at == file.metadata().end()) bad_input("{}: no recording: its header has no '{}'", file.file()->name(), key);
  return at->second;
}

std::vector<float> floats(const SafetensorsFile& file, const std::string& name, Sizes& sizes) {
  if (!file.find(name)) bad_input("{}: no recording of the other's kind: '{}' is missing", file.file()->name(), name);
  const HostTensor tensor = file.tensor(name);
  sizes = tensor.sizes;
  return tensor.to_floats();
}

}  // namespace

TensorDistance distance(std::string name, std::span<const float> a, std::span<const float> b, int64_t columns,
                        double least_cosine, double tie_margin) {
  TensorDistance d;
  d.name = std::move(name);
  const auto n = static_cast<size_t>(std::max<int64_t>(columns, 1));
  for (size_t i = 0; i + n <= a.size(); i += n) add_row(d, a.subspan(i, n), b.subspan(i, n), tie_margin);
  if (!(d.cosine >= least_cosine)) d.within_tolerance = false;
  return d;
}

RecordingDistance compare_recordings(const std::filesystem::path& path_a, const std::filesystem::path& path_b) {
  const SafetensorsFile a = SafetensorsFile::open(path_a), b = SafetensorsFile::open(path_b);
  RecordingDistance result;
  result.controlled = need(a, "positive_control") == "passed" && need(b, "positive_control") == "passed";
  // With 8-bit activations a difference in the last bit flips roundings, which then are of the size of a quantum.
  const bool f32 = need(a, "precision") == "f32" && need(b, "precision") == "f32";
  result.least_cosine = f32 ? 0.999999 : 0.9999;
  result.tie_margin = f32 ? 1e-3 : 5e-2;

  Sizes tokens_a, tokens_b;
  if (floats(a, "tokens", tokens_a) != floats(b, "tokens", tokens_b))
    bad_input("{} and {} are recordings of different tokens", path_a.string(), path_b.string());
  if (a.find("sound") && b.find("sound")) {
    Sizes sizes;
    if (floats(a, "sound", sizes) != floats(b, "sound", sizes))
      bad_input("{} and {} are recordings of different sounds", path_a.string(), path_b.string());
  }
  const SafetensorsEntry* logits = a.find("logits");
  if (logits && (tokens_a.size() != 1 || logits->sizes.size() != 2 || logits->sizes[0] != tokens_a[0] ||
                 element_count(logits->sizes) == 0))
    bad_input("{}: no recording: tokens are {}, logits {}; wanted are [n] and [n, vocabulary]", path_a.string(),
              to_string(tokens_a), to_string(logits->sizes));
  const auto add = [&](const std::string& name) {
    Sizes sizes_a, sizes_b;
    const std::vector<float> x = floats(a, name, sizes_a), y = floats(b, name, sizes_b);
    if (sizes_a != sizes_b)
      bad_input("'{}' is {} in {}, but {} in {}", name, to_string(sizes_a), path_a.string(), to_string(sizes_b),
                path_b.string());
    TensorDistance d =
        distance(name, x, y, sizes_a.empty() ? 1 : sizes_a.back(), result.least_cosine, result.tie_margin);
    const auto source = a.metadata().find("source:" + name);
    if (source != a.metadata().end()) d.source = source->second;
    result.tensors.push_back(std::move(d));
  };
  add("logits");
  // Fusion differs between backends: what one of them never computes on its own can't be compared.
  for (const SafetensorsEntry& entry : a.entries()) {
    if (entry.name == "tokens" || entry.name == "logits" || entry.name == "sound") continue;
    if (b.find(entry.name))
      add(entry.name);
    else
      result.only_in_one.push_back(entry.name);
  }
  for (const SafetensorsEntry& entry : b.entries())
    if (entry.name != "sound" && !a.find(entry.name)) result.only_in_one.push_back(entry.name);
  return result;
}

}  // namespace consonant
