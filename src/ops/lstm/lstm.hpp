// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "graph/node.hpp"

namespace consonant {

// A layer of long short-term memory (Hochreiter and Schmidhuber 1997; Gers et al. 2000) over the rows of x, one after
// another. For each row, with s the logistic function and gates in the order i, f, g, o
//
//   i, f, g, o = x + w h + b,   c' = s(f) c + s(i) tanh(g),   h' = s(o) tanh(c')
//
// x [time, 4 n] float32 is the input's part of the gates, w [4 n, n] of any weight type, b [4 n], state [2, n] is h and
// c before the first row. Returns h' of every row [time, n] and the state after the last.
std::pair<Tensor, Tensor> lstm(Tensor x, Tensor w, Tensor b, Tensor state, Location at = Location::current());

}  // namespace consonant
