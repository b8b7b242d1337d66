// SPDX-License-Identifier: Apache-2.0
#include "verify/lockstep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tensor/convert.hpp"

namespace consonant {

namespace {

// Rows with next to nothing in them are measured against the whole value's size.
constexpr double least_share = 1e-3;

std::vector<float> floats_of(const View& view) {
  std::vector<float> numbers(static_cast<size_t>(view.shape.count()));
  for (int64_t r = 0; r < view.rows(); ++r)
    decode_row(view.type, view.data + view.row_offset(r) * info(view.type).block_bytes,
               numbers.data() + r * view.last(), view.last());
  return numbers;
}

double root_mean_square(std::span<const float> x) {
  double sum = 0;
  for (const float v : x)
    if (std::isfinite(v)) sum += double{v} * v;
  return x.empty() ? 0 : std::sqrt(sum / static_cast<double>(x.size()));
}

double row_error(std::span<const float> want, std::span<const float> got, double least) {
  double sum = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    const bool same = want[i] == got[i] || (std::isnan(want[i]) && std::isnan(got[i]));
    if (same) continue;
    const double difference = double{want[i]} - got[i];
    if (!std::isfinite(difference)) return std::nan("");
    sum += difference * difference;
  }
  if (sum == 0) return 0;
  return std::sqrt(sum / static_cast<double>(want.size())) / std::max(root_mean_square(want), least);
}

double worse(double a, double b) { return std::isnan(a) || std::isnan(b) ? std::nan("") : std::max(a, b); }

double error_of(const View& want, const View& got) {
  if (!is_float(want.type))  // integers, and caches in blocks
    return std::memcmp(want.data, got.data, static_cast<size_t>(extent(want))) == 0 ? 0 : HUGE_VAL;
  const std::vector<float> a = floats_of(want), b = floats_of(got);
  const double least = least_share * root_mean_square(a);
  const auto n = static_cast<size_t>(want.last());
  double worst = 0;
  for (size_t at = 0; at + n <= a.size() && n > 0; at += n)
    worst = worse(worst, row_error(std::span(a).subspan(at, n), std::span(b).subspan(at, n), least));
  return worst;
}

}  // namespace

double lockstep_tolerance(double rounding) { return 2e-4 + 10 * rounding; }

Program::Observer Lockstep::reference() {
  kept_.clear();
  return [this](const PlannedNode& planned, std::span<const View> outputs) {
    std::vector<Kept>& kept = kept_[planned.node->name];
    for (const View& out : outputs) kept.push_back({out.type, out.shape, {out.data, out.data + extent(out)}});
    return false;
  };
}

Program::Observer Lockstep::device() {
  return [this](const PlannedNode& planned, std::span<const View> outputs) { return compare(planned, outputs); };
}

NodeDifference& Lockstep::entry(const PlannedNode& planned) {
  const Node& node = *planned.node;
  const auto [found, is_new] = index_.try_emplace(node.name, nodes_.size());
  if (is_new) {
    nodes_.push_back({node.name, std::string(planned.op()), std::string(planned.kernel_name()),
                      fmt::format("{}:{}", node.location.file_name(), node.location.line), 0, 0,
                      lockstep_tolerance(planned.gpu_kernel ? planned.gpu_kernel->rounding : 0)});
  }
  return nodes_[found->second];
}

bool Lockstep::compare(const PlannedNode& planned, std::span<const View> outputs) {
  const auto kept = kept_.find(planned.node->name);
  const auto matches = [&] {
    if (kept == kept_.end() || kept->second.size() != outputs.size()) return false;
    for (size_t i = 0; i < outputs.size(); ++i)
      if (kept->second[i].type != outputs[i].type || kept->second[i].shape != outputs[i].shape) return false;
    return true;
  };
  if (!matches()) {
    if (std::find(not_compared_.begin(), not_compared_.end(), planned.node->name) == not_compared_.end())
      not_compared_.push_back(planned.node->name);
    return false;
  }
  NodeDifference& node = entry(planned);
  for (size_t i = 0; i < outputs.size(); ++i) {
    Kept& want = kept->second[i];
    View view = outputs[i];
    view.data = want.bytes.data();
    node.error = worse(node.error, error_of(view, outputs[i]));
    node.rows += view.rows();
    if (corrected_) std::copy(want.bytes.begin(), want.bytes.end(), outputs[i].data);
  }
  return corrected_;
}

}  // namespace consonant
