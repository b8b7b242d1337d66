// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "ops/route/route_node.hpp"
#include "ops/route/score.hpp"

namespace consonant {

namespace {

// One token. Scores are float32 where they decide, and double where they are weights.
class Router {
 public:
  Router(const RouteAttr& attr, const float* logits, const float* bias, int64_t experts)
      : attr_(attr), logits_(logits), experts_(static_cast<size_t>(experts)), choice_(experts_), score_(experts_) {
    make_scores();
    for (size_t e = 0; e < experts_; ++e) {
      const bool by_score = chooses_by_score(attr, bias != nullptr);
      choice_[e] = !by_score ? logits[e] : bias ? decided_[e] + bias[e] : decided_[e];
    }
  }

  void write(int32_t* ids, float* weights) const {
    const std::vector<bool> open = open_groups();
    const size_t in_group = experts_ / static_cast<size_t>(attr_.groups);
    std::vector<uint64_t> keys(experts_);
    for (size_t e = 0; e < experts_; ++e)
      keys[e] =
          open[e / in_group] ? choice_key(choice_[e], static_cast<int64_t>(e)) : excluded_key(static_cast<int64_t>(e));
    std::sort(keys.begin(), keys.end());
    double sum = 0;
    for (int64_t i = 0; i < attr_.used; ++i) {
      ids[i] = index_of(keys[static_cast<size_t>(i)]);
      sum += score_[static_cast<size_t>(ids[i])];
    }
    for (int64_t i = 0; i < attr_.used; ++i) {
      const double score = score_[static_cast<size_t>(ids[i])];
      weights[i] = static_cast<float>((attr_.normalise ? score / (sum + 1e-20) : score) * attr_.scale);
    }
  }

 private:
  void make_scores() {
    decided_.resize(experts_);
    if (attr_.scoring == Scoring::sigmoid) {
      for (size_t e = 0; e < experts_; ++e) {
        decided_[e] = sigmoid_score(logits_[e]);
        score_[e] = 1 / (1 + std::exp(-double{logits_[e]}));
      }
      return;
    }
    float top = -INFINITY, sum = 0;
    for (size_t e = 0; e < experts_; ++e) top = logits_[e] > top ? logits_[e] : top;
    double exact = 0;
    for (size_t e = 0; e < experts_; ++e) {
      decided_[e] = softmax_part(logits_[e], top);
      sum += decided_[e];
      exact += score_[e] = std::exp(double{logits_[e]} - top);
    }
    for (size_t e = 0; e < experts_; ++e) {
      decided_[e] = decided_[e] / sum;
      score_[e] /= exact;
    }
  }

  std::vector<bool> open_groups() const {
    const auto groups = static_cast<size_t>(attr_.groups), in_group = experts_ / groups;
    std::vector<uint64_t> keys(groups);
    for (size_t g = 0; g < groups; ++g) {
      TwoBest two;
      for (size_t e = g * in_group; e < (g + 1) * in_group; ++e) two.add(choice_[e]);
      const float value = attr_.scoring == Scoring::sigmoid ? two.best + two.second : two.best;
      keys[g] = choice_key(value, static_cast<int64_t>(g));
    }
    std::sort(keys.begin(), keys.end());
    std::vector<bool> open(groups);
    for (int64_t i = 0; i < attr_.groups_used; ++i)
      open[static_cast<size_t>(index_of(keys[static_cast<size_t>(i)]))] = true;
    return open;
  }

  const RouteAttr& attr_;
  const float* logits_;
  size_t experts_;
  std::vector<float> decided_, choice_;
  std::vector<double> score_;
};

void run(const Args& args, int64_t, std::byte*) {
  const View &logits = args.in[0], &ids = args.out[0], &weights = args.out[1];
  const float* bias = args.in.size() > 1 ? args.in[1].as<float>() : nullptr;
  for (int64_t t = 0; t < ids.rows(); ++t)
    Router(args.attr<RouteAttr>(), logits.row<float>(t), bias, logits.last())
        .write(ids.row<int32_t>(t), weights.row<float>(t));
}

}  // namespace

extern const Kernel route_ref = {DeviceKind::reference, Op::route, wants_router, whole, run};

}  // namespace consonant
