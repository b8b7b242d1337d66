// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/node.hpp"

namespace consonant {

// How a router's logits become scores.
enum class Scoring : uint8_t { softmax, sigmoid };

struct RouteAttr {
  int64_t used = 1;  // experts of a token
  Scoring scoring = Scoring::softmax;
  int64_t groups = 1, groups_used = 1;  // experts are chosen from the best groups of neighbours alone
  bool normalise = true;                // weights are divided by their sum
  float scale = 1;                      // and multiplied by this, last
};

struct Routed {
  Tensor ids;      // [token, used] i32, by falling choice, equal ones by their number
  Tensor weights;  // [token, used] float32
};

// Which experts each token goes to, and how much each of them counts: logits [token, expert] float32.
//   score   softmax over all experts, or sigmoid
//   choice  score + bias; the bias [expert], which may be none, counts for nothing else
//   a group counts as much as its best choice with softmax (DeepSeek-V2), as its two best together with sigmoid (V3)
//   weight  score of a chosen expert, normalised and scaled
// The steps that decide have the same bits on every device (route/score.hpp), so that devices agree on the experts. A
// logit that is NaN is chosen last.
Routed route(Tensor logits, Tensor bias, const RouteAttr& attr, Location at = Location::current());

}  // namespace consonant
