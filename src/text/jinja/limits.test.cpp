// SPDX-License-Identifier: Apache-2.0
// Hostile templates end with an error, in little time, memory and stack.
#include "text/jinja/test_render.hpp"

namespace consonant::jinja {
namespace {

using ::testing::HasSubstr;

// Smaller than what a rendering gets, so that the tests reach them soon.
std::string refused(const std::string& source, const nlohmann::ordered_json& variables = test_variables()) {
  Limits limits;
  limits.output = size_t{4} << 20;
  limits.memory = size_t{32} << 20;
  limits.steps = 2'000'000;
  return refusal(source, variables, limits);
}

std::string repeat(const std::string& text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

TEST(JinjaLimits, Recursion) {
  EXPECT_THAT(refused("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"), HasSubstr("nested too deep"));
  EXPECT_THAT(refused("{% macro f() %}{% call g() %}{% endcall %}{% endmacro %}"
                      "{% macro g() %}{{ caller() }}{{ f() }}{% endmacro %}{{ f() }}"),
              HasSubstr("nested too deep"));
  EXPECT_THAT(refused("{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}"), HasSubstr("nested too deep"));
  EXPECT_EQ(render("{% macro f(i) %}{% if i %}{{ f(i - 1) }}{% endif %}x{% endmacro %}{{ f(50)|length }}"), "51");
}

TEST(JinjaLimits, DeepSource) {
  for (const char* open : {"(", "[", "{'a':", "-", "not ", "a(", "a[", "1 if 1 else ", "'a' if x else (", "a|f("})
    EXPECT_THAT(refused("{{ " + repeat(open, 20'000)), HasSubstr("line 1")) << open;
  for (const char* more : {"+1", "~1", "|string", ".a", "[0]", "()", " and 1", " is string", "**1", " if 1", "<1"}) {
    const std::string source = "{{ 1" + repeat(more, 20'000) + " }}";
    try {
      render(source);  // many of a kind side by side are fine
    } catch (const Error& error) {
      EXPECT_EQ(error.exit(), Exit::input) << more;
    }
  }
  EXPECT_THAT(refused(repeat("{% if 1 %}", 20'000)), HasSubstr("nested"));
  EXPECT_THAT(refused(repeat("{% for a in b %}", 20'000)), HasSubstr("nested"));
  EXPECT_THAT(refused(repeat("{% macro a() %}", 20'000)), HasSubstr("nested"));
  EXPECT_EQ(render("{{ " + repeat("(", 50) + "1" + repeat(")", 50) + " }}"), "1");
  EXPECT_EQ(render("{{ 'a'" + repeat(" + 'b'", 200) + " }}"), "a" + repeat("b", 200));
  EXPECT_EQ(render(repeat("{% if 1 %}", 50) + "x" + repeat("{% endif %}", 50)), "x");
}

TEST(JinjaLimits, LargeSource) {
  EXPECT_THAT(refused(std::string((1 << 20) + 1, 'x')), HasSubstr("larger than 1 MiB"));
  EXPECT_EQ(render(std::string(1 << 20, 'x')).size(), 1u << 20);
  std::string names;
  for (int i = 0; i < 10'000; ++i) names += "{{ n" + std::to_string(i) + " }}";
  EXPECT_THAT(refused(names + "{% if 0 %}" + repeat("{% elif 0 %}", 30'000) + "{% endif %}"),
              HasSubstr("too many branches"));
}

TEST(JinjaLimits, Text) {
  EXPECT_THAT(refused("{{ 'x' * 100000000 }}"), HasSubstr("a string longer than"));
  EXPECT_THAT(refused("{{ [1] * 9223372036854775807 }}"), HasSubstr("longer than"));
  EXPECT_THAT(
      refused("{% set ns = namespace(s='x') %}{% for i in range(100) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}"),
      HasSubstr("a string longer than"));
  EXPECT_THAT(refused("{% set s = 'x' * 3000000 %}{{ s }}{{ s }}"), HasSubstr("a string longer than"));
  EXPECT_THAT(refused("{{ ('a' * 1000000).replace('a', 'a' * 1000) }}"), HasSubstr("a string longer than"));
  EXPECT_THAT(refused("{{ ('a' * 1000000)|replace('', 'a' * 1000) }}"), HasSubstr("a string longer than"));
  EXPECT_THAT(refused("{{ ('a' * 100000).join('b' * 100000) }}"), HasSubstr("a string longer than"));
  EXPECT_THAT(refused("{{ ('\\n' * 1000000)|indent(1000, blank=true) }}"), HasSubstr("a string longer than"));
  for (const char* wide :
       {"'%1000000000d' % 1", "'{:1000000000}'.format(1)", "'a'.center(1000000000)", "'a'|center(1000000000)",
        "'a'.ljust(9000000000000000000)", "'a'.zfill(1000000000)", "'\\t'.expandtabs(1000000000)",
        "'%.1000000000f' % 1.5", "'{:.1000000000f}'.format(1.5)", "'a'|indent(1000000000)",
        "[1]|tojson(indent=1000000000)", "'%*d' % (2000000000, 1)", "'%.1000000000d' % 1"})
    EXPECT_THAT(refused(std::string("{{ ") + wide + " }}"), HasSubstr("line 1")) << wide;
}

TEST(JinjaLimits, Lists) {
  EXPECT_THAT(refused("{{ range(100001) }}"), HasSubstr("Range too big"));
  EXPECT_THAT(refused("{{ range(9223372036854775807) }}"), HasSubstr("line 1"));
  EXPECT_THAT(
      refused("{% set ns = namespace(l=[1]) %}{% for i in range(100) %}{% set ns.l = ns.l + ns.l %}{% endfor %}"),
      HasSubstr("bytes"));
  EXPECT_THAT(refused("{{ ('a,' * 1000000).split(',')|length }}"), HasSubstr("bytes"));
  EXPECT_THAT(refused("{{ ('a' * 3000000)|list|length }}"), HasSubstr("bytes"));
  EXPECT_THAT(refused("{{ [1]|batch(1000000000, 0)|list }}"), HasSubstr("batch"));
  EXPECT_THAT(refused("{{ [1]|slice(1000000000)|list }}"), HasSubstr("slice"));
}

TEST(JinjaLimits, Steps) {
  EXPECT_THAT(refused("{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}"),
              HasSubstr("steps"));
  EXPECT_THAT(
      refused("{% set s = 'x' * 3000000 %}{% for a in range(100000) %}{% if 'y' in s %}{% endif %}{% endfor %}"),
      HasSubstr("steps"));
  EXPECT_THAT(refused("{% set l = range(100000)|list %}{% for a in l %}{% if -1 in l %}{% endif %}{% endfor %}"),
              HasSubstr("steps"));
}

// Two lists that hold the list before twice: as many leaves as 2^90, few bytes.
TEST(JinjaLimits, SharedValues) {
  const std::string twice =
      "{% set a = namespace(v=[1], w=[1]) %}{% for i in range(90) %}{% set a.v = [a.v, a.v] %}"
      "{% set a.w = [a.w, a.w] %}{% endfor %}";
  for (const char* use : {"a.v == a.w", "a.v", "a.v|tojson", "a.v < a.w", "a.v in [a.w]", "a.v|string|length"})
    EXPECT_THAT(refused(twice + "{{ " + use + " }}"), HasSubstr("line 1")) << use;
  const std::string tuples =
      "{% set a = namespace(v=(1,)) %}{% for i in range(90) %}{% set a.v = (a.v, a.v) %}{% endfor %}";
  EXPECT_THAT(refused(tuples + "{{ {a.v: 1} }}"), HasSubstr("steps"));
}

TEST(JinjaLimits, DeepValues) {
  EXPECT_THAT(refused("{% set n = namespace(v=[]) %}{% for i in range(1000) %}{% set n.v = [n.v] %}{% endfor %}"),
              HasSubstr("nested deeper"));
  EXPECT_THAT(refused("{% set n = namespace(v={}) %}{% for i in range(1000) %}{% set n.v = {'a': n.v} %}{% endfor %}"),
              HasSubstr("nested deeper"));
  EXPECT_THAT(
      refused("{% set n = namespace(v='a') %}{% for i in range(1000) %}{% set n.v = n.v|map('trim') %}{% endfor %}"),
      HasSubstr("nested deeper"));
  nlohmann::ordered_json deep = 1;
  for (int i = 0; i < 500; ++i) deep = nlohmann::ordered_json::array({deep});
  EXPECT_THAT(refused("{{ x }}", {{"x", deep}}), HasSubstr("nested deeper"));
}

// What refers to itself is freed all the same: a leak is an error where the tests run under a sanitizer.
TEST(JinjaLimits, Circles) {
  EXPECT_EQ(render("{% set n = namespace() %}{% set n.n = n %}{{ n.n.n is defined }}"), "True");
  EXPECT_EQ(render("{% set n = namespace() %}{% set n.n = [{'a': n}] %}x"), "x");
  EXPECT_EQ(render("{% macro f() %}{% macro g() %}{{ g is defined }}{% endmacro %}{{ g() }}{% endmacro %}{{ f() }}"),
            "True");
  EXPECT_EQ(render("{% for i in [1] %}{{ loop.changed(loop) }}{% endfor %}"), "True");
  EXPECT_EQ(render("{% set n = namespace() %}{% for i in range(2000) %}{% set n.l = [n.l, loop] %}{% endfor %}x",
                   test_variables(),
                   [] {
                     Limits limits;
                     limits.value_depth = 5000;
                     return limits;
                   }()),
            "x");
  EXPECT_EQ(render("{% set n = namespace() %}{% for i in range(5000) %}{% set m = namespace(p=n.p) %}{% set n.p = m %}"
                   "{% endfor %}x"),
            "x");
  EXPECT_EQ(
      render("{% set n = namespace() %}{% for i in range(5000) %}{% for j in [n.l] %}{% set n.l = loop %}{% endfor %}"
             "{% endfor %}x"),
      "x");
  refused("{% set n = namespace() %}{% set n.n = n %}{% macro f() %}{% set q = f %}{{ 1 / 0 }}{% endmacro %}{{ f() }}");
}

TEST(JinjaLimits, BadText) {
  EXPECT_THAT(refused("ab\n\xFF"), HasSubstr("line 2: the template isn't UTF-8"));
  EXPECT_THAT(refused("{{ x }}", {{"x", "a\xFF"}}), HasSubstr("UTF-8"));
  EXPECT_EQ(render("{{ y }}", {{"x", "a\xFF"}, {"y", "fine"}}), "fine");
  EXPECT_THAT(refused("{{ '\\ud800' }}"), HasSubstr("no character"));
  EXPECT_EQ(render(std::string("a\0b", 3)), std::string("a\0b", 3));
  EXPECT_THAT(refused("{{ x }}", {{"x", UINT64_MAX}}), HasSubstr("18446744073709551615"));
}

}  // namespace
}  // namespace consonant::jinja
