// SPDX-License-Identifier: Apache-2.0
// Filters of texts and numbers.
// Each expected text is what jinja2 3.1.6 makes of the template.
#include "text/jinja/test_render.hpp"

namespace consonant::jinja {
namespace {

TEST(JinjaTextFilters, Texts) {
  expect_texts({
      {"{{ x|default(3) }}", "3"},
      {"{{ x|default }}", ""},
      {"{{ none|default(1) }}", "None"},
      {"{{ ''|default('q',true) }}", "q"},
      {"{{ 0|d(5,true) }}", "5"},
      {"{{ ws|trim }}", "pad"},
      {"{{ 'xax'|trim('x') }}", "a"},
      {"{{ s|replace('l','L',2) }}", "HeLLo World"},
      {"{{ 5|replace(5,6) }}", "6"},
      {"{{ 'a'|center(4)~'|' }}", " a  |"},
      {"{{ \"%s\" | format('x') }}", "x"},
      {"{{ \"%s-%s\"|format(1,2) }}", "1-2"},
      {"{{ \"%(a)s\"|format(a=3) }}", "3"},
      {"{{ 5|string ~ 'x' }}", "5x"},
      {"{{ s|upper }}", "HELLO WORLD"},
      {"{{ s|lower }}", "hello world"},
      {"{{ s|title }}", "Hello World"},
      {"{{ s|capitalize }}", "Hello world"},
      {"{{ 'foo-bar (baz) [q] {w} <x'|title }}", "Foo-Bar (Baz) [Q] {W} <X"},
      {"{{ 5|upper }}", "5"},
      {"{{ none|lower }}", "none"},
      {"{{ x|upper }}", ""},
      {"{{ 'a  b'|title }}", "A  B"},
      {"{{ s|indent }}", "Hello World"},
      {"{{ m|indent }}", "line1\n    line2\n    line3\n    q\n    z"},
      {"{{ m|indent(2) }}", "line1\n  line2\n  line3\n  q\n  z"},
      {"{{ m|indent('--') }}", "line1\n--line2\n--line3\n--q\n--z"},
      {"{{ m|indent(2,true) }}", "  line1\n  line2\n  line3\n  q\n  z"},
      {"{{ \"a\\n\\nb\"|indent }}", "a\n\n    b"},
      {"{{ \"a\\n\\nb\"|indent(blank=true) }}", "a\n    \n    b"},
      {"{{ \"\"|indent(first=true) }}", "    "},
      {"{{ \"a\\n\"|indent(2)~'|' }}", "a\n|"},
      {"{{ \"foo bar baz qux\"|truncate(9) }}", "foo..."},
      {"{{ \"foo bar baz qux\"|truncate(9,true) }}", "foo ba..."},
      {"{{ \"foo bar baz qux\"|truncate(11) }}", "foo bar baz qux"},
      {"{{ \"foo bar baz qux\"|truncate(11,false,'...',0) }}", "foo bar..."},
      {"{{ \"foo bar\"|truncate(5,leeway=0) }}", "fo..."},
      {"{{ 'abc'|truncate(3) }}", "abc"},
      {"{{ 'foobarbazqux'|truncate(6,leeway=0) }}", "foo..."},
      {"{{ s|wordcount }}", "2"},
      {"{{ u|wordcount }}", "3"},
  });
}

TEST(JinjaTextFilters, MoreTexts) {
  expect_texts({
      {"{{ \"a-b c_d 1.5\"|wordcount }}", "5"},
      {"{{ ''|wordcount }}", "0"},
      {"{{ 'a & b'|urlencode }}", "a%20%26%20b"},
      {"{{ {'a b':'c/d'}|urlencode }}", "a+b=c%2Fd"},
      {"{{ '/x?y=z'|urlencode }}", "/x%3Fy%3Dz"},
      {"{{ [('a',1),('b','ü')]|urlencode }}", "a=1&b=%C3%BC"},
      {"{{ 'ü'|urlencode }}", "%C3%BC"},
      {"{{ 5|urlencode }}", "5"},
      {"{{ 'a'|attr('upper') is callable }}", "True"},
      {"{{ d|attr('b') }}", ""},
      {"{{ d|attr('get') is callable }}", "True"},
      {"{{ 1 if true else s|nope }}", "1"},
      {"{{ s|upper|lower|title }}", "Hello World"},
      {"{{ (s|upper).lower() }}", "hello world"},
      {"{{ s|upper ~ 'x' }}", "HELLO WORLDx"},
      {"{{ s.upper()|lower }}", "hello world"},
      {"{{ -5|string }}", "-5"},
      {"{{ 0.1|string }}", "0.1"},
      {"{{ 'a-b'|replace('-','+') }}", "a+b"},
      {"{{ s|replace(old='o', new='x') }}", "Hellx Wxrld"},
      {"{{ s|trim(chars='Hd') }}", "ello Worl"},
      {"{{ s|default(default_value=1) }}", "Hello World"},
      {"{{ m|indent(width=1, first=true) }}", " line1\n line2\n line3\n q\n z"},
      {"{{ none|string }}", "None"},
      {"{{ none|title }}", "None"},
      {"{{ none|trim }}", "None"},
      {"{{ none|wordcount }}", "1"},
      {"{{ none|replace('N','n') }}", "none"},
      {"{{ true|upper }}", "TRUE"},
      {"{{ l|upper }}", "[3, 1, 2]"},
      {"{{ '日本語'|upper }}", "日本語"},
      {"{{ '日本語'|truncate(3) }}", "日本語"},
      {"{{ '日本語テキスト'|truncate(5,true,'…',0) }}", "日本語テ…"},
      {"{{ x|default(y) }}", ""},
      {"{{ x|default(y)|default('end') }}", "end"},
      {"{{ (x|default(none)) is none }}", "True"},
      {"{{ 'Ünï'|lower }}", "ünï"},
      {"{{ 'ŒUVRE'|capitalize }}", "Œuvre"},
      {"{{ 'éa'|capitalize }}", "Éa"},
      {"{{ 'ǳa'|title }}", "Ǳa"},
      {"{{ '\\u00a0x\\u2003'|trim }}", "x"},
      {"{{ '\\x1fx'|trim }}", "x"},
  });
}

TEST(JinjaTextFilters, TextsRefused) {
  expect_refused({
      "{{ s|nope }}",
      "{{ 1 + 2|string }}",
      "{{ s|trim(foo=1) }}",
      "{{ s|upper(1) }}",
      "{{ none|indent }}",
      "{{ 5|indent }}",
  });
}

TEST(JinjaTextFilters, Numbers) {
  expect_texts({
      {"{{ l|sum }}", "6"},
      {"{{ ld|sum(attribute='v') }}", "6.5"},
      {"{{ el|sum }}", "0"},
      {"{{ [1.5,2]|sum }}", "3.5"},
      {"{{ l|sum(start=10) }}", "16"},
      {"{{ [[1],[2]]|sum(start=[]) }}", "[1, 2]"},
      {"{{ l|min }}", "1"},
      {"{{ l|max }}", "3"},
      {"{{ ls|min }}", "A"},
      {"{{ ls|max }}", "c"},
      {"{{ ld|max(attribute='v') }}", "{'k': 'x', 'v': 3.5}"},
      {"{{ el|min }}", ""},
      {"{{ ls|max(case_sensitive=true) }}", "c"},
      {"{{ '5'|int }}", "5"},
      {"{{ '5.9'|int }}", "5"},
      {"{{ 'abc'|int }}", "0"},
      {"{{ 'abc'|int(7) }}", "7"},
      {"{{ '0x1f'|int(base=16) }}", "31"},
      {"{{ 'ff'|int(0,16) }}", "255"},
      {"{{ 5.9|int }}", "5"},
      {"{{ -5.9|int }}", "-5"},
      {"{{ none|int }}", "0"},
      {"{{ true|int }}", "1"},
      {"{{ '1e3'|int }}", "1000"},
      {"{{ ' 42 '|int }}", "42"},
      {"{{ '1_000'|int }}", "1000"},
      {"{{ '٣'|int }}", "3"},
      {"{{ '0b11'|int(base=2) }}", "3"},
      {"{{ '12'|int(base=0) }}", "12"},
      {"{{ '5.5'|float }}", "5.5"},
      {"{{ 5|float }}", "5.0"},
      {"{{ 'x'|float }}", "0.0"},
      {"{{ 'x'|float(1.5) }}", "1.5"},
      {"{{ '1e3'|float }}", "1000.0"},
      {"{{ 'inf'|float }}", "inf"},
      {"{{ '-inf'|float }}", "-inf"},
      {"{{ 'nan'|float }}", "nan"},
      {"{{ none|float }}", "0.0"},
      {"{{ ' 1.5 '|float }}", "1.5"},
      {"{{ '1_0.0'|float }}", "10.0"},
      {"{{ '.5'|float }}", "0.5"},
      {"{{ '5.'|float }}", "5.0"},
      {"{{ '1e400'|float }}", "inf"},
      {"{{ 2.5|round }}", "2.0"},
      {"{{ 3.5|round }}", "4.0"},
      {"{{ 2.675|round(2) }}", "2.67"},
      {"{{ 2.5|round(0,'ceil') }}", "3.0"},
      {"{{ 2.1|round(0,'ceil') }}", "3.0"},
      {"{{ 2.9|round(0,'floor') }}", "2.0"},
      {"{{ 42|round }}", "42"},
      {"{{ 42.55|round(1) }}", "42.5"},
      {"{{ -2.5|round }}", "-2.0"},
      {"{{ 42|round(1,'ceil') }}", "42.0"},
      {"{{ 1234.5678|round(2,'floor') }}", "1234.56"},
      {"{{ 0.5|round }}", "0.0"},
      {"{{ 1.5|round|int }}", "2"},
      {"{{ true|round }}", "1"},
      {"{{ -5|abs }}", "5"},
      {"{{ 5.5|abs }}", "5.5"},
      {"{{ neg|abs }}", "3"},
      {"{{ 1 + (2|float) }}", "3.0"},
      {"{{ 3|int * 2 }}", "6"},
      {"{{ 1e308*10|int }}", "inf"},
      {"{{ 1e18|int }}", "1000000000000000000"},
      {"{{ 1.0|int }}", "1"},
      {"{{ '%f' % ('inf'|float) }}", "inf"},
  });
}

TEST(JinjaTextFilters, NumbersRefused) {
  expect_refused({
      "{{ x|int }}",
      "{{ x|abs }}",
      "{{ [none,1]|max }}",
  });
}

TEST(JinjaTextFilters, Json) {
  expect_texts({
      {"{{ ('a'|safe)|tojson }}", "\"a\""},
      {"{{ d|tojson }}", "{\"b\": 1, \"a\": \"x\", \"items\": 7, \"n\": null}"},
      {"{{ l|tojson }}", "[3, 1, 2]"},
      {"{{ s|tojson }}", "\"Hello World\""},
      {"{{ u|tojson }}", "\"Grüße, 世界 👋🏽\\n x\""},
      {"{{ h|tojson }}", "\"<a href=\\\"x\\\">'&'</a>\""},
      {"{{ none|tojson }}", "null"},
      {"{{ true|tojson }}", "true"},
      {"{{ 1.0|tojson }}", "1.0"},
      {"{{ nest|tojson(indent=2) }}",
       "{\n  \"a\": {\n    \"b\": [\n      1,\n      {\n        \"c\": \"deep\"\n      }\n    ]\n  }\n}"},
      {"{{ d|tojson(sort_keys=true) }}", "{\"a\": \"x\", \"b\": 1, \"items\": 7, \"n\": null}"},
      {"{{ l|tojson(separators=(',',':')) }}", "[3,1,2]"},
      {"{{ u|tojson(ensure_ascii=true) }}", "\"Gr\\u00fc\\u00dfe, \\u4e16\\u754c \\ud83d\\udc4b\\ud83c\\udffd\\n x\""},
      {"{{ el|tojson(indent=2) }}", "[]"},
      {"{{ {'a':[],'b':{}}|tojson(indent=1) }}", "{\n \"a\": [],\n \"b\": {}\n}"},
      {"{{ (1,2)|tojson }}", "[1, 2]"},
      {"{{ {1:2,none:3,true:4,1.5:6}|tojson }}", "{\"1\": 4, \"null\": 3, \"1.5\": 6}"},
      {"{{ nest|tojson(indent='--') }}",
       "{\n--\"a\": {\n----\"b\": [\n------1,\n------{\n--------\"c\": \"deep\"\n------}\n----]\n--}\n}"},
      {"{{ nest|tojson(indent=0) }}", "{\n\"a\": {\n\"b\": [\n1,\n{\n\"c\": \"deep\"\n}\n]\n}\n}"},
      {"{{ bigf|tojson }}", "1e+22"},
      {"{{ smallf|tojson }}", "1.5e-07"},
      {"{{ \"\\u007f\\u2028/\"|tojson }}", "\"\177\342\200\250/\""},
      {"{{ '\\x00\\x1f\"\\\\'|tojson }}", "\"\\u0000\\u001f\\\"\\\\\""},
      {"{{ {}|tojson }}", "{}"},
      {"{{ [x]|tojson if false else 'k' }}", "k"},
  });
}

TEST(JinjaTextFilters, JsonRefused) {
  expect_refused({
      "{{ x|tojson }}",
      "{{ range(3)|tojson }}",
      "{{ l|map('string')|tojson }}",
  });
}

TEST(JinjaTextFilters, Markup) {
  expect_texts({
      {"{{ h|escape }}", "&lt;a href=&#34;x&#34;&gt;&#39;&amp;&#39;&lt;/a&gt;"},
      {"{{ h|e }}", "&lt;a href=&#34;x&#34;&gt;&#39;&amp;&#39;&lt;/a&gt;"},
      {"{{ h|safe }}", "<a href=\"x\">'&'</a>"},
      {"{{ h|escape|string }}", "&lt;a href=&#34;x&#34;&gt;&#39;&amp;&#39;&lt;/a&gt;"},
      {"{{ h|safe + '<b>' }}", "<a href=\"x\">'&'</a>&lt;b&gt;"},
      {"{{ '<b>' + h|safe }}", "&lt;b&gt;<a href=\"x\">'&'</a>"},
      {"{{ '<i>'~(h|safe) }}", "<i><a href=\"x\">'&'</a>"},
      {"{{ ('<b>'|safe)*2 }}", "<b><b>"},
      {"{{ ('%s'|safe) % '<' }}", "&lt;"},
      {"{{ ('<a>'|safe).upper() }}", "<A>"},
      {"{{ [h|safe] }}", "[Markup('<a href=\"x\">\\'&\\'</a>')]"},
      {"{{ ('<b>'|safe)[0:2]+'<' }}", "<b&lt;"},
      {"{{ ('{}'|safe).format('<') }}", "&lt;"},
      {"{{ (','|safe).join(['<','>'|safe]) }}", "&lt;,>"},
      {"{{ ('a<b'|safe).replace('a','<') }}", "&lt;<b"},
      {"{{ ('<'|e)|length }}", "4"},
      {"{{ '<'|e|e }}", "&lt;"},
      {"{{ '<'|e|forceescape }}", "&amp;lt;"},
      {"{{ ('x'|safe) ~ '<' }}", "x<"},
      {"{{ ('a,b'|safe).split(',') }}", "[Markup('a'), Markup('b')]"},
      {"{{ ('a'|safe) is string }}", "True"},
      {"{{ ('<'|safe)|upper }}", "<"},
      {"{{ ('<'|safe)|trim+'>' }}", "<&gt;"},
      {"{{ [('<'|safe),'>']|join('&') }}", "<&>"},
      {"{{ 'a' == 'a'|safe }}", "True"},
  });
}

TEST(JinjaTextFilters, MarkupRefused) {
  expect_refused({
      "{{ ('<'|safe).center(5,'>') }}",
  });
}

}  // namespace
}  // namespace consonant::jinja
