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

// From a float16 number to the next.
double half_step(float x) {
  int exponent = 0;
  std::frexp(x, &exponent);
  return std::ldexp(1, std::max(exponent - 11, -24));
}

// A node that computes what it stores as float16 (`rounds`) may round to either neighbour: no error.
double row_error(std::span<const float> want, std::span<const float> got, double least, bool rounds) {
  double sum = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    const bool same = want[i] == got[i] || (std::isnan(want[i]) && std::isnan(got[i]));
    if (same) continue;
    const double difference = double{want[i]} - got[i];
    if (!std::isfinite(difference)) return std::nan("");
    if (rounds && std::abs(difference) <= half_step(want[i])) continue;
    sum += difference * difference;
  }
  if (sum == 0) return 0;
  return std::sqrt(sum / static_cast<double>(want.size())) / std::max(root_mean_square(want), least);
}

double worse(double a, double b) { return std::isnan(a) || std::isnan(b) ? std::nan("") : std::max(a, b); }

// Pages of a q8_0 cache whose int8 numbers, and the bits of whose scales, differ by no more than one.
bool rounds_alike(const View& want, const View& got) {
  const int64_t pages = want.shape[0], numbers = want.shape.count() / std::max<int64_t>(pages, 1);
  const int64_t page_bytes = numbers + numbers / 32 * 2;
  for (int64_t page = 0; page < pages; ++page) {
    const std::byte *a = want.data + page * page_bytes, *b = got.data + page * page_bytes;
    for (int64_t i = 0; i < numbers; ++i)
      if (std::abs(int{reinterpret_cast<const int8_t*>(a)[i]} - reinterpret_cast<const int8_t*>(b)[i]) > 1)
        return false;
    for (int64_t i = 0; i < numbers / 32; ++i)
      if (std::abs(int{reinterpret_cast<const uint16_t*>(a + numbers)[i]} -
                   reinterpret_cast<const uint16_t*>(b + numbers)[i]) > 1)
        return false;
  }
  return true;
}

// `computes`: the node computes what it stores in few bits, where the reference's had it given.
double error_of(const View& want, const View& got, bool computes) {
  if (!is_float(want.type)) {  // integers, and caches in blocks
    if (std::memcmp(want.data, got.data, static_cast<size_t>(extent(want))) == 0) return 0;
    return computes && want.type == DType::q8_0 && rounds_alike(want, got) ? 0 : HUGE_VAL;
  }
  const std::vector<float> a = floats_of(want), b = floats_of(got);
  const double least = least_share * root_mean_square(a);
  const auto n = static_cast<size_t>(want.last());
  double worst = 0;
  for (size_t at = 0; at + n <= a.size() && n > 0; at += n)
    worst = worse(worst, row_error(std::span(a).subspan(at, n), std::span(b).subspan(at, n), least,
                                   computes && want.type == DType::f16));
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

// The reference's values of a node's outputs: those that it covers last made them. Empty if the reference lacks one.
std::vector<Lockstep::Kept*> Lockstep::kept_for(const Node& node) {
  const std::vector<std::string> names = node.covers.empty() ? std::vector<std::string>{node.name} : node.covers;
  std::vector<Kept*> wanted;
  for (auto name = names.rbegin(); name != names.rend() && wanted.size() < node.outputs.size(); ++name) {
    const auto found = kept_.find(*name);
    if (found == kept_.end()) return {};
    for (auto kept = found->second.rbegin(); kept != found->second.rend(); ++kept)
      wanted.insert(wanted.begin(), &*kept);
  }
  return wanted;
}

bool Lockstep::compare(const PlannedNode& planned, std::span<const View> outputs) {
  const std::vector<Kept*> kept = kept_for(*planned.node);
  const auto matches = [&] {
    if (kept.size() != outputs.size()) return false;
    for (size_t i = 0; i < outputs.size(); ++i)
      if (kept[i]->type != outputs[i].type || kept[i]->shape != outputs[i].shape) return false;
    return true;
  };
  if (!matches()) {
    if (std::find(not_compared_.begin(), not_compared_.end(), planned.node->name) == not_compared_.end())
      not_compared_.push_back(planned.node->name);
    return false;
  }
  NodeDifference& node = entry(planned);
  for (size_t i = 0; i < outputs.size(); ++i) {
    Kept& want = *kept[i];
    View view = outputs[i];
    view.data = want.bytes.data();
    node.error = worse(node.error, error_of(view, outputs[i], !planned.node->covers.empty()));
    node.rows += view.rows();
    if (corrected_) std::copy(want.bytes.begin(), want.bytes.end(), outputs[i].data);
  }
  return corrected_;
}

}  // namespace consonant
