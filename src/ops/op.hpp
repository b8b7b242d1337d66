// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "graph/node.hpp"

namespace consonant {

// The ops of all.def, as the numbers that nodes carry.
enum class Op : OpId {
  before_first = first_op - 1,
#define OP(name) name,
#include "ops/all.def"
#undef OP
  count
};

constexpr OpId id(Op op) { return static_cast<OpId>(op); }
constexpr bool is(const Node& node, Op op) { return node.op == id(op); }

// "rms_norm"; also "input", "weight", "state", "view".
std::string_view op_name(OpId op);

}  // namespace consonant
