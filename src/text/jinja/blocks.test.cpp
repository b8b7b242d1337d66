// SPDX-License-Identifier: Apache-2.0
// Macros, call blocks, other blocks, and the whitespace around tags.
// Each expected text is what jinja2 3.1.6 makes of the template.
#include "text/jinja/test_render.hpp"

namespace consonant::jinja {
namespace {

TEST(JinjaBlocks, Macros) {
  expect_texts({
      {"{% macro f() %}{{ n }}{% endmacro %}{{ f() }}{% set n = 1 %}{{ f() }}", "1"},
      {"{% macro f() %}{{ q }}{% endmacro %}{{ f() }}{% set q = 1 %}{{ f() }}", "1"},
      {"{% set q = 1 %}{% macro f() %}{{ q }}{% set q = 2 %}{{ q }}{% endmacro %}{{ f() }}{{ q }}", "121"},
      {"{% macro f(a, b=2, c=none) %}{{ a }}{{ b }}{{ c }}|{% endmacro %}{{ f() }}{{ f(1) }}{{ f(1,3) }}{{ f(1,c=4) "
       "}}{{ f(b=1,a=2) }}",
       "2None|12None|13None|124|21None|"},
      {"{% macro f(a) %}{{ a is defined }}{% endmacro %}{{ f() }}{{ f(1) }}{{ f(none) }}", "FalseTrueTrue"},
      {"{% macro f(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ f(1) }}{{ f(1,2) }}", "1112"},
      {"{% macro f(a=b, b=1) %}{{ a }}{{ b }}{% endmacro %}{{ f() }}", "1"},
      {"{% set b = 7 %}{% macro f(a=b) %}{{ a }}{% endmacro %}{{ f() }}{% set b = 8 %}{{ f() }}", "78"},
      {"{% macro f() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ f(1,2,x=3) }}", "(1, 2){'x': 3}"},
      {"{% macro f(a) %}{{ varargs }}{% endmacro %}{{ f(1,2,3) }}{{ f() }}", "(2, 3)()"},
      {"{% macro f(a) %}{{ kwargs }}{% endmacro %}{{ f(1,b=2) }}", "{'b': 2}"},
      {"{% macro f() %}{{ f.name }}{{ f.arguments }}{{ f.catch_kwargs }}{{ f.catch_varargs }}{{ f.caller }}{% endmacro "
       "%}{{ f() }}{{ f }}",
       "f()FalseFalseFalse<Macro 'f'>"},
      {"{% macro f(x) %}{% if x %}{{ x }}{{ f(x-1) }}{% endif %}{% endmacro %}{{ f(5) }}", "54321"},
      {"{% macro f() %}{{ g() }}{% endmacro %}{% macro g() %}G{% endmacro %}{{ f() }}", "G"},
      {"{% macro f() %}{{ caller() }}{% endmacro %}{% call f() %}body{{ n }}{% endcall %}", "body5"},
      {"{% macro f() %}{{ caller(1,2) }}{% endmacro %}{% call(a,b) f() %}{{ a }}{{ b }}{% endcall %}", "12"},
      {"{% macro f() %}{{ caller(1) }}{% endmacro %}{% call(a,b=3) f() %}{{ a }}{{ b }}{% endcall %}", "13"},
      {"{% macro f() %}{{ caller }}{{ caller() }}{% endmacro %}{% call f() %}x{% endcall %}", "<Macro anonymous>x"},
      {"{% macro f() %}{{ caller is defined }}{% endmacro %}{{ f() }}{% call f() %}{% endcall %}", "FalseTrue"},
      {"{% macro f(caller=none) %}{{ caller() if caller else 'no' }}{% endmacro %}{{ f() }}{% call f() %}yes{% endcall "
       "%}",
       "noyes"},
      {"{% for i in [1,2] %}{% macro f() %}{{ i }}{% endmacro %}{{ f() }}{% endfor %}", "12"},
      {"{% macro f() %}{% set x = 1 %}{% macro g() %}{{ x }}{% set x = 2 %}{{ x }}{% endmacro %}{{ g() }}{{ x }}{% "
       "endmacro %}{{ f() }}",
       "121"},
      {"{% macro f(a) -%}\n  x{{ a }}\n{%- endmacro %}[{{ f(1) }}]", "[x1]"},
      {"{% for x in l %}{% macro f() %}{{ loop.index }}{% endmacro %}{{ f() }}{% endfor %}", "123"},
      {"{% set x = 1 %}{% macro m() %}{{ x }}{% endmacro %}{% for i in [1] %}{% set x = 2 %}{{ m() }}{% endfor %}",
       "1"},
      {"{% if n %}{% macro m() %}M{% endmacro %}{% endif %}{{ m() }}", "M"},
      {"{% if z %}{% macro m() %}M{% endmacro %}{% endif %}{{ m is defined }}", "True"},
      {"{% with s = 'q' %}{% macro m() %}{{ s }}{% endmacro %}{{ m() }}{% endwith %}", "q"},
      {"{% macro m() %}{% set n = n + 1 %}{{ n }}{% endmacro %}{{ m() }}{{ m() }}{{ n }}", "665"},
      {"{% macro m() %}{{ kwargs.get('a') }}{% endmacro %}{{ m(a=3) }}", "3"},
      {"{% macro m(kwargs) %}{{ kwargs }}{% endmacro %}{{ m(3) }}", "3"},
      {"{% macro m(varargs=1) %}{{ varargs }}{% endmacro %}{{ m() }}", "1"},
  });
}

TEST(JinjaBlocks, MacrosRefused) {
  expect_refused({
      "{% for x in l %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}",
      "{% macro f(a) %}{{ a }}{% endmacro %}{{ f(1,2) }}",
      "{% macro f(a) %}{{ a }}{% endmacro %}{{ f(1,b=2) }}",
      "{% macro f(a) %}{{ a }}{% endmacro %}{{ f(1,a=2) }}",
      "{{ f() }}{% macro f() %}{% endmacro %}",
      "{% macro f() %}x{% endmacro %}{% call f() %}x{% endcall %}",
      "{% macro f() %}{{ caller() }}{% endmacro %}{{ f() }}",
      "{% macro f(caller) %}{{ caller() }}{% endmacro %}{{ f(1) }}",
      "{% macro outer() %}{{ caller() }}{% endmacro %}{% macro mid() %}{% call outer() %}<{{ caller() }}>{% endcall "
      "%}{% endmacro %}{% call mid() %}deep{% endcall %}",
      "{% call n() %}{% endcall %}",
      "{% call n %}{% endcall %}",
      "{% macro f(a,a) %}{% endmacro %}",
      "{% macro f(a=1,b) %}{% endmacro %}",
      "{% macro f() %}{{ loop.index }}{% endmacro %}{% for x in l %}{{ f() }}{% endfor %}",
      "{% macro f(n) %}{{ n }}{{ s }}{% endmacro %}{{ f(*[1]) }}{{ f(**{'n':2}) }}{{ f(*[1,2]) }}",
      "{{ caller() }}",
  });
}

TEST(JinjaBlocks, Blocks) {
  expect_texts({
      {"{% set x %}a{{ n }}b{% endset %}{{ x }}|{{ x is string }}", "a5b|True"},
      {"{% set x | upper %}a{{ n }}b{% endset %}{{ x }}", "A5B"},
      {"{% set x | replace('a','b') | upper %}aa{% endset %}{{ x }}", "BB"},
      {"{{ n }}{% set x | center(n) %}a{% endset %}{{ x }}", "5  a  "},
      {"{% set x %}{% set y = 1 %}{{ y }}{% endset %}{{ x }}{{ y }}", "1"},
      {"{% set ns = namespace() %}{% set ns.a %}hi{% endset %}{{ ns.a }}", "hi"},
      {"{% for i in l %}{% set x %}{% if i == 1 %}{% break %}{% endif %}q{% endset %}{{ x }}{% endfor %}", "q"},
      {"{% filter upper %}a{{ s }}b{% endfilter %}", "AHELLO WORLDB"},
      {"{% filter replace('a','b')|upper %}aXa{% endfilter %}", "BXB"},
      {"{% filter indent(n) %}a\nb{% endfilter %}", "a\n     b"},
      {"{% filter upper %}{% set q = 1 %}x{% endfilter %}{{ q }}", "X"},
      {"{% with a=1, b=2 %}{{ a }}{{ b }}{% endwith %}{{ a }}", "12"},
      {"{% with %}{% set q = 1 %}{{ q }}{% endwith %}{{ q }}", "1"},
      {"{% with n = n + 1 %}{{ n }}{% endwith %}{{ n }}", "65"},
      {"{% with a = 1, b = a %}{{ b }}{% endwith %}", ""},
      {"{% set a = 5 %}{% with a = 1, b = a %}{{ a }}{{ b }}{% endwith %}", "15"},
      {"{% with a, b = (1,2) %}{{ a }}{% endwith %}", "1"},
      {"{% with n=1 %}{% set n = 2 %}{{ n }}{% endwith %}{{ n }}", "25"},
      {"{% raw %}{{ x }}{% if %}{# c #}{% endraw %}", "{{ x }}{% if %}{# c #}"},
      {"a {% raw %} b {% endraw %} c", "a  b  c"},
      {"a {%- raw -%} b {%- endraw -%} c", "abc"},
      {"a\n  {% raw %}\n b\n  {% endraw %}\nc", "a\n\n b\nc"},
      {"{%- raw %}\nx\n{% endraw -%}\n y", "\nx\ny"},
      {"{% raw %}{% raw %}{% endraw %}", "{% raw %}"},
      {"  {%+ raw %}x{%+ endraw +%}\n y", "  x\n y"},
      {"a{# comment #}b", "ab"},
      {"a\n  {# c #}\nb", "a\nb"},
      {"a\n  {#- c -#}\nb", "ab"},
      {"a {#+ c +#}\nb", "a \nb"},
      {"{# multi\nline #}\nx", "x"},
      {"{#-#}x", "x"},
      {"{##}x", "x"},
      {"{# {{ x }} {% if %} #}y", "y"},
      {"{% generation %}a{{ n }}{% endgeneration %}", "a5"},
      {"{% generation %}{% set q = 1 %}{{ q }}{% endgeneration %}{{ q }}", "1"},
      {"{% for x in l %}{% generation %}{{ x }}{{ loop.index }}{% endgeneration %}{% endfor %}", "311223"},
      {"x\n{% generation %}\ny\n{% endgeneration %}\nz", "x\ny\nz"},
  });
}

TEST(JinjaBlocks, BlocksRefused) {
  expect_refused({
      "{% set x | center(n) %}a{% endset %}{{ x }}",
      "{% filter length %}abc{% endfilter %}",
      "{% filter nope %}{% endfilter %}",
      "{# unclosed",
      "{% for x in l %}{% generation %}{% break %}{% endgeneration %}{% endfor %}",
  });
}

TEST(JinjaBlocks, Whitespace) {
  expect_texts({
      {"a\n{% if n %}\nb\n{% endif %}\nc", "a\nb\nc"},
      {"a\n  {% if n %}  \nb\n  {% endif %}\nc", "a\n  \nb\nc"},
      {"a\n  {%- if n -%}\n  b\n  {%- endif -%}\n  c", "abc"},
      {"a\n  {%+ if n %}\nb{% endif %}", "a\n  b"},
      {"  {{ n }}\n", "  5"},
      {"a {{- n -}} b", "a5b"},
      {"{{ n }}\n\n", "5\n"},
      {"{{ n }}\n", "5"},
      {"\n\n{% if n %}x{% endif %}\n\n", "\n\nx"},
      {"x {% if n %} y {% endif %} z", "x  y  z"},
      {"\t{% if n %}\n\tx\n\t{% endif %}\n", "\tx\n"},
      {"{% if n +%}\nb{% endif %}", "\nb"},
      {"{% if n -%}\n\n  b{% endif %}", "b"},
      {"a\r\n{% if n %}\r\nb\r\n{% endif %}\r\nc\r\n", "a\nb\nc"},
      {"a\r{{ n }}\rb", "a\n5\nb"},
      {"{{ n -}}\n\n x", "5x"},
      {"\n  {%- if n %}a{% endif %}", "a"},
      {"a\302\240\n\302\240{% if n %}x{% endif %}", "a\302\240\nx"},
      {"a   {%- if n %} b{% endif %}", "a b"},
      {"{% if n %}{% if n %}\n  x\n{% endif %}{% endif %}", "  x\n"},
      {"  {% set q = 1 %}  {{ q }}  ", "  1  "},
      {"a {% set q = 1 %}\n b", "a  b"},
      {"{%if n%}x{%endif%}", "x"},
      {"{%-if n-%} x {%-endif-%}", "x"},
      {"{{n}}{{-n}}", "55"},
      {"{{-1}}", "1"},
      {"{{ -1 }}", "-1"},
      {"{{+1}}", "1"},
      {"{{ '\n' }}x", "\nx"},
      {"{{ 'a' }}\n{{ 'b' }}", "a\nb"},
      {"{% for x in l %}\n  {{ x }}\n{% endfor %}\nend", "  3\n  1\n  2\nend"},
      {"{% for x in l -%}\n  {{ x }}\n{%- endfor %}\nend", "312end"},
      {"{{ n }} {# c #} {{ n }}", "5  5"},
      {"  {# c #}x", "x"},
      {"  {# c #}\n  x", "  x"},
      {"a\n\n\n{%- if n %}b{% endif %}", "ab"},
      {"{{ '{{' }}{{ '%}' }}", "{{%}"},
      {"{{ \"}}\" }}", "}}"},
      {"{{ {'a':{'b':1}} }}", "{'a': {'b': 1}}"},
      {"{{ {'a':{'b':1}}.a.b}}", "1"},
      {"{% set x = {'a':'%}'} %}{{ x }}", "{'a': '%}'}"},
      {"{{ '{#' }}#}", "{##}"},
      {"{% if n %}\n\n{% endif %}x", "\nx"},
      {"{% set x = 1 -%}\n\n{%- set y = 2 %}{{ x }}{{ y }}", "12"},
      {"{{\n n\n}}", "5"},
      {"{%\n set q = 1\n%}{{ q }}", "1"},
      {"{{ n\n+\n1 }}", "6"},
      {"{{ 'a\nb' }}", "a\nb"},
      {"a{% if true %}\n{% endif %}b\n ", "ab\n "},
      {"\n", ""},
      {"", ""},
      {"  ", "  "},
      {"\n\n", "\n"},
      {"{% if true %}{% endif %}\n", ""},
      {"x\n{%- if true %}\ny{% endif %}", "xy"},
  });
}

}  // namespace
}  // namespace consonant::jinja
