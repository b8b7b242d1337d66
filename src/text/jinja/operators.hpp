// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "text/jinja/ast.hpp"
#include "text/jinja/value.hpp"

namespace consonant::jinja {

class Interpreter;

// Python's arithmetic on any two values; an integer that leaves 64 bits is an error.
Value arithmetic(Interpreter& in, Op op, const Value& a, const Value& b);
Value negated(const Value& v);
Value positive(const Value& v);
bool contains(Heap& heap, const Value& container, const Value& item);
bool compare(Heap& heap, Op op, const Value& a, const Value& b);
// object[start:stop:step]; none stands for what is left out.
Value slice(Heap& heap, const Value& object, const Value& start, const Value& stop, const Value& step);
int64_t checked_integer(Op op, int64_t a, int64_t b);

}  // namespace consonant::jinja
