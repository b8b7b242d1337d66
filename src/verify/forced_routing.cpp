// SPDX-License-Identifier: Apache-2.0
#include "verify/forced_routing.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include "base/error.hpp"

namespace consonant {

namespace {

constexpr int64_t most_experts = 1024;

bool routes(const PlannedNode& planned) { return planned.op() == "route"; }

template <class T>
std::vector<T> numbers_of(const View& view) {
  std::vector<T> numbers;
  numbers.reserve(static_cast<size_t>(view.shape.count()));
  for (int64_t r = 0; r < view.rows(); ++r) {
    const T* const row = view.row<T>(r);
    numbers.insert(numbers.end(), row, row + view.last());
  }
  return numbers;
}

bool same_set(std::span<const int32_t> a, std::span<const int32_t> b) {
  return std::is_permutation(a.begin(), a.end(), b.begin(), b.end());
}

double distance(std::span<const float> want, std::span<const float> got) {
  double differences = 0, all = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    differences += (double{want[i]} - got[i]) * (double{want[i]} - got[i]);
    all += double{want[i]} * want[i];
  }
  return all > 0 ? std::sqrt(differences / all) : differences > 0 ? HUGE_VAL : 0;
}

// Row r of so many.
template <class T>
std::span<T> row(std::vector<T>& all, int64_t r, int64_t rows) {
  const size_t n = all.size() / static_cast<size_t>(rows);
  return std::span(all).subspan(static_cast<size_t>(r) * n, n);
}

}  // namespace

Program::Observer ForcedRouting::reference() {
  narrow_.clear(), wanted_.clear();
  return [this](const PlannedNode& planned, std::span<const View> outputs) {
    if (routes(planned)) wanted_[planned.node->name] = choice(planned, outputs);
    keep(planned, outputs);
    return false;
  };
}

Program::Observer ForcedRouting::device() {
  narrow_.clear();
  return [this](const PlannedNode& planned, std::span<const View> outputs) {
    if (routes(planned)) return correct(planned, outputs);
    keep(planned, outputs);
    return false;
  };
}

void ForcedRouting::keep(const PlannedNode& planned, std::span<const View> outputs) {
  std::vector<Numbers> kept(outputs.size());
  bool any = false;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const View& out = outputs[i];
    if (out.type != DType::f32 || out.shape.rank() != 2 || out.last() > most_experts) continue;
    kept[i] = numbers_of<float>(out), any = true;
  }
  if (any) narrow_[planned.node.get()] = std::move(kept);
}

ForcedRouting::Choice ForcedRouting::choice(const PlannedNode& planned, std::span<const View> outputs) const {
  const Tensor& logits = planned.node->inputs.at(0);
  const auto kept = narrow_.find(logits.node.get());
  if (kept == narrow_.end()) throw_error(Exit::failed, "{}: no logits of the experts were seen", planned.node->name);
  return {numbers_of<int32_t>(outputs[0]), numbers_of<float>(outputs[1]),
          kept->second.at(static_cast<size_t>(logits.output))};
}

bool ForcedRouting::correct(const PlannedNode& planned, std::span<const View> outputs) {
  Choice got = choice(planned, outputs);
  const auto found = wanted_.find(planned.node->name);
  const int64_t tokens = outputs[0].rows();
  if (found == wanted_.end() || found->second.experts.size() != got.experts.size())
    throw_error(Exit::failed, "{}: the reference routes nothing like it", planned.node->name);
  Choice& want = found->second;
  bool changed = false;
  for (int64_t t = 0; t < tokens; ++t) {
    ++choices_;
    const auto experts = row(want.experts, t, tokens);
    const auto weights = row(want.weights, t, tokens);
    if (same_set(experts, row(got.experts, t, tokens))) continue;
    ++differing_, changed = true;
    worst_drift_ = std::max(worst_drift_, distance(row(want.logits, t, tokens), row(got.logits, t, tokens)));
    std::copy(experts.begin(), experts.end(), outputs[0].row<int32_t>(t));
    std::copy(weights.begin(), weights.end(), outputs[1].row<float>(t));
  }
  return changed;
}

}  // namespace consonant
