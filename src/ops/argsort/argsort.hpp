// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/node.hpp"

namespace consonant {

enum class Order : uint8_t { ascending, descending };

struct ArgsortAttr {
  Order order = Order::ascending;
};

// The columns of each row in the order of their numbers: x [..., n] float32 -> [..., n] i32. Equal numbers (-0 equals
// 0) keep their order, on every device; NaNs come last in either order.
Tensor argsort(Tensor x, Order order, Location at = Location::current());

}  // namespace consonant
