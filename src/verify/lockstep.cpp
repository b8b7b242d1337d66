// SPDX-License-Identifier: Apache-2.0
#include "verify/lockstep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tensor/convert.hpp"
#include "tensor/half.hpp"

namespace consonant {

namespace {

// Rows with next to nothing in them are measured against the whole value's size.
constexpr double least_share = 1e-3;

// Of a row of 64 numbers in int8 one may be rounded to the other neighbour: 1 / 127 of the greatest, which is a few
// times the root mean square, over the root of 64.
constexpr double cache_tolerance = 5e-3;

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

// A q8_0 cache (graph/inputs.hpp): a page's int8 numbers, then their float16 scales, one for 32 neighbours along dim.
// Keys [page, head, dim, position], values [page, head, position, dim].
std::vector<float> floats_of_cache(const View& cache, bool keys) {
  const int64_t pages = cache.shape[0], heads = cache.shape[1], rows = cache.shape[2], columns = cache.shape[3];
  const int64_t head = rows * columns, page_bytes = heads * head / 32 * 34;
  std::vector<float> numbers;
  numbers.reserve(static_cast<size_t>(cache.shape.count()));
  for (int64_t page = 0; page < pages; ++page) {
    const std::byte* bytes = cache.data + page * page_bytes;
    const auto* quants = reinterpret_cast<const int8_t*>(bytes);
    const auto* scales = reinterpret_cast<const Half*>(bytes + heads * head);
    for (int64_t i = 0; i < heads * head; ++i) {
      const int64_t row = i / columns, column = i % columns;  // rows of all heads
      const int64_t scale = keys ? row / 32 * columns + column : (row * columns + column) / 32;
      numbers.push_back(static_cast<float>(quants[i]) * to_float(scales[scale]));
    }
  }
  return numbers;
}

bool is_cache(const View& view) { return view.type == DType::q8_0 && view.shape.rank() == 4; }

// Rows of `n` numbers.
double worst_row(const std::vector<float>& a, const std::vector<float>& b, size_t n) {
  const double least = least_share * root_mean_square(a);
  double worst = 0;
  for (size_t at = 0; at + n <= a.size() && n > 0; at += n)
    worst = worse(worst, row_error(std::span(a).subspan(at, n), std::span(b).subspan(at, n), least));
  return worst;
}

double error_of(const View& want, const View& got, size_t output) {
  if (is_cache(want))  // an append's outputs are the keys and the values
    return worst_row(floats_of_cache(want, output == 0), floats_of_cache(got, output == 0),
                     static_cast<size_t>(want.last()));
  if (!is_float(want.type))  // integers
    return std::memcmp(want.data, got.data, static_cast<size_t>(extent(want))) == 0 ? 0 : HUGE_VAL;
  return worst_row(floats_of(want), floats_of(got), static_cast<size_t>(want.last()));
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
    node.error = worse(node.error, error_of(view, outputs[i], i));
    node.rows += view.rows();
    if (is_cache(view)) node.tolerance = std::max(node.tolerance, cache_tolerance);
    if (corrected_) std::copy(want.bytes.begin(), want.bytes.end(), outputs[i].data);
  }
  return corrected_;
}

}  // namespace consonant
