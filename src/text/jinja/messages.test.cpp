// SPDX-License-Identifier: Apache-2.0
// What a template that can't be read or run is told: the line, and the reason.
#include "text/jinja/test_render.hpp"

namespace consonant::jinja {
namespace {

void expect_message(const std::string& source, const std::string& message) {
  EXPECT_EQ(refusal(source), "chat template, " + message) << source;
}

TEST(JinjaMessages, Syntax) {
  expect_message("a\n{% if n %}\nb", "line 3: the template ends within {% if %} of line 2");
  expect_message("{% for x in l %}\n{% endif %}", "line 2: unknown tag {% endif %} within {% for %} of line 1");
  expect_message("\n{% frob %}", "line 2: unknown tag {% frob %}");
  expect_message("{{ 1 +\n}}", "line 2: expected an expression, found '}}'");
  expect_message("{{ (1, 2 }}", "line 1: unexpected '}', expected ')'");
  expect_message("{{ 'abc }}", "line 1: a string has no end");
  expect_message("x\n{{ 1", "line 2: {{ has no end");
  expect_message("{# x", "line 1: missing end of comment tag");
  expect_message("{% raw %}x", "line 1: {% raw %} has no {% endraw %}");
  expect_message("{{ a ? b }}", "line 1: unexpected character '?'");
  expect_message("{{ 99999999999999999999 }}", "line 1: the integer 99999999999999999999 is beyond 64 bits");
  expect_message("{% set 1 = 2 %}", "line 1: this can't be assigned to");
  expect_message("{{ 1|frob }}", "line 1: there is no filter 'frob'");
  expect_message("{{ 1 is frob }}", "line 1: there is no test 'frob'");
  expect_message("{% break %}", "line 1: {% break %} outside of a loop");
  expect_message("{% include 'x' %}",
                 "line 1: {% include %} isn't supported: a chat template stands alone and is plain text");
  expect_message("{% extends 'x' %}",
                 "line 1: {% extends %} isn't supported: a chat template stands alone and is plain text");
  expect_message("{% for x in l %}{% set loop = 1 %}{% endfor %}", "line 1: 'loop' can't be assigned to within a loop");
}

TEST(JinjaMessages, Running) {
  expect_message("a\n\n{{ undef.x }}", "line 3: 'undef' is undefined");
  expect_message("{{ d.zz.y }}", "line 1: 'dict object' has no attribute 'zz'");
  expect_message("{{ l[7].y }}", "line 1: list object has no element 7");
  expect_message("{{ 'a' +\n l }}", "line 1: can only concatenate str (not \"list\") to str");
  expect_message("{{ 1 + 'a' }}", "line 1: unsupported operand type(s) for +: 'int' and 'str'");
  expect_message("{{ 1 < 'a' }}", "line 1: '<' not supported between instances of 'int' and 'str'");
  expect_message("{{ 1 / 0 }}", "line 1: division by zero");
  expect_message("{{ l.append(1) }}",
                 "line 1: access to attribute 'append' of 'list' object is unsafe: a template can't change its values");
  expect_message("{{ s.encode() }}", "line 1: 'encode' of a str isn't supported");
  expect_message("{{ s|pprint }}", "line 1: the filter 'pprint' isn't supported");
  expect_message("{{ l|map('string') }}", "line 1: printing a generator: Python would print its address");
  expect_message("{{ s|trim(foo=1) }}", "line 1: trim() takes no argument named 'foo'");
  expect_message("{{ s.replace('a') }}", "line 1: replace() needs its argument 'new'");
  expect_message("{{ undef|tojson }}", "line 1: Object of type Undefined is not JSON serializable");
  expect_message("{% macro f(a) %}{% endmacro %}\n{{ f(1, 2) }}",
                 "line 2: macro 'f' takes not more than 1 argument(s)");
  expect_message("{% macro f() %}\n{{ 1 / z }}\n{% endmacro %}\n\n{{ f() }}", "line 2: division by zero");
  expect_message("{% macro f() %}\n{{ z }}{% endmacro %}\n\n{{ f() + 1 }}",
                 "line 4: can only concatenate str (not \"int\") to str");
  expect_message("{% set d.x = 1 %}", "line 1: cannot assign attribute on non-namespace object 'd'");
  expect_message("{% for a, b in [(1, 2, 3)] %}{% endfor %}", "line 1: too many values to unpack (expected 2)");
  expect_message("{{ strftime_now('%Q') }}", "line 1: strftime_now() doesn't know %Q");
  expect_message("{{ 9223372036854775807 + 1 }}", "line 1: an integer beyond 64 bits");
  EXPECT_EQ(refusal("\n{{ raise_exception('no: ' ~ n) }}"), "the chat template refuses this (line 2): no: 5");
}

}  // namespace
}  // namespace consonant::jinja
