// SPDX-License-Identifier: Apache-2.0
// Loops, variables and their scopes.
// Each expected text is what jinja2 3.1.6 makes of the template.
#include "text/jinja/test_render.hpp"

namespace consonant::jinja {
namespace {

TEST(JinjaStatements, Loops) {
  expect_texts({
      {"{% for x in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ "
       "loop.last }}{{ loop.length }}{{ loop.depth }}{{ loop.depth0 }}|{% endfor %}",
       "1032TrueFalse310|2121FalseFalse310|3210FalseTrue310|"},
      {"{% for x in l %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }}|{% endfor %}", "<3>1|3<1>2|1<2>|"},
      {"{% for x in l %}{{ loop.previtem is defined }}{{ loop.nextitem is defined }}{% endfor %}",
       "FalseTrueTrueTrueTrueFalse"},
      {"{% for x in l %}{{ loop.cycle('a','b') }}{{ loop.changed(x) }}{% endfor %}", "aTruebTrueaTrue"},
      {"{% for x in [1,1,2,2,1] %}{{ loop.changed(x) }}{% if loop.changed(x) %}never{% endif %}{% endfor %}",
       "TrueFalseTrueFalseTrue"},
      {"{% for x in el %}a{% else %}b{% endfor %}", "b"},
      {"{% for x in l %}a{% else %}b{% endfor %}", "aaa"},
      {"{% for x in l if x > 1 %}{{ x }}{{ loop.index }}/{{ loop.length }}{{ loop.last }},{% else %}none{% endfor %}",
       "31/2False,22/2True,"},
      {"{% for x in l if x > 10 %}{{ x }}{% else %}none{% endfor %}", "none"},
      {"{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}", "b=1;a=x;items=7;n=None;"},
      {"{% for k in d %}{{ k }}{% endfor %}", "baitemsn"},
      {"{% for k, v in d|dictsort %}{{ k }}{% endfor %}", "abitemsn"},
      {"{% for k, v in d.items() if v %}{{ k }}{{ loop.previtem }}{% endfor %}", "ba('b', 1)items('a', 'x')"},
      {"{% for (a, b), c in [((1,2),3)] %}{{ a }}{{ b }}{{ c }}{% endfor %}", "123"},
      {"{% for a,b in ['xy'] %}{{a}}{{b}}{% endfor %}", "xy"},
      {"{% for x in undef %}a{% else %}b{% endfor %}", "b"},
      {"{% for c in 'äb' %}[{{ c }}]{% endfor %}", "[ä][b]"},
      {"{% for x in range(5) %}{% if x == 2 %}{% continue %}{% endif %}{% if x == 4 %}{% break %}{% endif %}{{ x }}{% "
       "endfor %}",
       "013"},
      {"{% for x in range(3) %}{% continue %}{% else %}E{% endfor %}", "E"},
      {"{% for x in range(3) %}{% break %}{% else %}E{% endfor %}", "E"},
      {"{% for x in range(3) %}{{ x }}{% if x == 1 %}{% break %}{% endif %}{% else %}E{% endfor %}", "01"},
      {"{% for x in l recursive %}{{ x }}{% if x == 3 %}({{ loop([7,8]) }}){% endif %}{{ loop.depth }}{% endfor %}",
       "3(7282)11121"},
      {"{% for n in [{'v':1,'c':[{'v':2,'c':[{'v':3}]}]},{'v':4}] recursive %}{{ n.v }}{{ loop.depth0 }}{% if n.c "
       "%}[{{ loop(n.c) }}]{% endif %}{% endfor %}",
       "10[21[32]]40"},
      {"{% for x in [1,2] %}{% for y in [1,2] %}{{ loop.index }}{{ x }}{{ y }} {% endfor %}{{ loop.index }}{% endfor "
       "%}",
       "111 212 1121 222 2"},
      {"{% for x in [1,2] %}{% set o = loop %}{% for y in 'ab' %}{{ o.index }}{{ loop.index }} {% endfor %}{% endfor "
       "%}",
       "11 12 21 22 "},
      {"{% set loop = 5 %}{{ loop }}{% for x in l %}{{ loop.index }}{% endfor %}{{ loop }}", "51235"},
      {"{% for x in l %}{{ loop }}{% endfor %}", "<LoopContext 1/3><LoopContext 2/3><LoopContext 3/3>"},
      {"{{ x }}{% for x in l %}{{ x }}{% endfor %}{{ x }}", "312"},
      {"{% set x = 9 %}{% for x in l %}{{ x }}{% endfor %}{{ x }}", "3129"},
      {"{% set x = 9 %}{% for y in l %}{% set x = y %}{{ x }}{% endfor %}{{ x }}", "3129"},
      {"{% for y in l %}{{ n }}{% set n = y %}{{ n }}{% endfor %}{{ n }}", "5351525"},
      {"{% for i in [1] %}{{ n }}{% endfor %}{% set n = 3 %}{{ n }}", "3"},
      {"{{ n }}{% for i in [1] %}{{ n }}{% endfor %}{% set n = 3 %}{{ n }}", "553"},
      {"{% for i in [1,2] %}{% if i == 1 %}{% set n = 'in' %}{% endif %}{{ n }}{% endfor %}{{ n }}", "in55"},
      {"{% set ns = namespace(a=1) %}{% for x in l %}{% set ns.a = ns.a + x %}{% endfor %}{{ ns.a }}", "7"},
  });
}

TEST(JinjaStatements, MoreLoops) {
  expect_texts({
      {"{% set ns = namespace(done=false) %}{% for x in l if not ns.done %}{{ x }}{% if x == 1 %}{% set ns.done = true "
       "%}{% endif %}{% endfor %}",
       "31"},
      {"{% set ns = namespace(done=false) %}{% for x in l if not ns.done %}{{ x }}{{ loop.last }}{% set ns.done = true "
       "%}{% endfor %}",
       "3False1True"},
      {"{% set ns = namespace(items=[]) %}{% for x in l %}{% set ns.items = ns.items + [x] %}{% endfor %}{{ ns.items "
       "}}",
       "[3, 1, 2]"},
      {"{% for x in l: %}{{ x }}{% endfor %}", "312"},
      {"{% for i in [1,2] %}{% if i == 2 %}{{ v }}{% endif %}{% set v = i %}{% endfor %}", ""},
      {"{% set v = 0 %}{% for i in [1,2] %}{% if i == 2 %}{{ v }}{% endif %}{% set v = i %}{% endfor %}", "0"},
      {"{% for i in [1] %}{% set k = 1 %}{% for j in [1] %}{{ k }}{% set k = 2 %}{{ k }}{% endfor %}{{ k }}{% endfor "
       "%}{{ k }}",
       "121"},
      {"{% for n in [n] %}{{ n }}{% endfor %}{{ n }}", "55"},
      {"{% for x in l if x != n %}{{ x }}{% endfor %}", "312"},
      {"{% for l in l %}{{ l }}{% endfor %}{{ l }}", "312[3, 1, 2]"},
      {"{% set it = l|select('odd') %}{% for x in it %}{{ x }}{{ loop.last }}{% endfor %}{{ it|list }}",
       "3False1True[]"},
      {"{% for x in l|map('string') %}{{ loop.length }}{{ loop.revindex }}{{ x }}{% endfor %}", "333321312"},
      {"{% for x in l|reverse %}{{ loop.length }}{{ x }}{% endfor %}", "323133"},
      {"{% for x in d.values() %}{{ loop.nextitem }}{% endfor %}", "x7None"},
      {"{% set r = range(3) %}{% for x in r %}{{ x }}{% endfor %}{{ r|list }}", "012[0, 1, 2]"},
      {"{% for g in ld|groupby('k') %}{{ g.grouper }}:{{ g.list|length }}{{ g[0] }}{% endfor %}", "x:2xy:1y"},
      {"{% for k, g in ld|groupby('k') %}{{ k }}{{ g|map(attribute='v')|join(',') }};{% endfor %}", "x1,3.5;y2;"},
      {"{% set j = joiner('; ') %}{% for x in l %}{{ j() }}{{ x }}{% endfor %}", "3; 1; 2"},
      {"{% for m in [{'role':'a'}] %}{% if m.content is defined and m.content is string %}x{% else %}y{% endif %}{{ "
       "m['content'] }}{{ m.get('content','z') }}{% endfor %}",
       "yz"},
      {"{% for i in [1,2] %}{% set n = n + 1 %}{{ n }}{% endfor %}{{ n }}", "665"},
      {"{% for x in l %}{% for y in l if loop.index > 1 %}{{ y }}{% endfor %}{% endfor %}", "312312"},
      {"{% for y in l if loop %}{{ y }}{% endfor %}", ""},
      {"{% for x in [[1,2],[3]] %}{% for y in x %}{{ loop.first }}{% endfor %}{{ loop.last }}{% endfor %}",
       "TrueFalseFalseTrueTrue"},
      {"{% for k, v in {'a':1}.items() recursive %}{{ k }}{{ v }}{% endfor %}", "a1"},
      {"{% for x in [[1,[2]],[3]] recursive %}{% if x is iterable %}{{ loop(x) }}{% else %}{{ x }}{% endif %}{% else "
       "%}E{% endfor %}",
       "123"},
      {"{% for x in [] recursive %}{% else %}E{% endfor %}", "E"},
      {"{% for x in [1,2] recursive %}{{ loop.nextitem }}{% endfor %}", "2"},
      {"{% set x = 1 %}{% for i in [1] recursive %}{% set x = 2 %}{{ x }}{% endfor %}{{ x }}", "21"},
      {"{% for x in [1,[2,3]] recursive %}{% if x is number %}{{ x }}{{ loop.index }}{% continue %}{% endif %}{{ "
       "loop(x) }}{% endfor %}",
       "112132"},
      {"{% set tools = [{'name':'f','parameters':{'type':'object','properties':{'x':{'type':'integer'}}}}] %}{{ "
       "tools|tojson(indent=4) }}{% for t in tools %}{{ t | tojson }}{% endfor %}",
       "[\n    {\n        \"name\": \"f\",\n        \"parameters\": {\n            \"type\": \"object\",\n            "
       "\"properties\": {\n                \"x\": {\n                    \"type\": \"integer\"\n                }\n    "
       "        }\n        }\n    }\n]{\"name\": \"f\", \"parameters\": {\"type\": \"object\", \"properties\": {\"x\": "
       "{\"type\": \"integer\"}}}}"},
  });
}

TEST(JinjaStatements, LoopsRefused) {
  expect_refused({
      "{% for a, b in [(1,2,3)] %}{% endfor %}",
      "{% for a, b in [(1,)] %}{% endfor %}",
      "{% for a, b in [1] %}{% endfor %}",
      "{% for x in 5 %}{% endfor %}",
      "{% for x in none %}{% endfor %}",
      "{% for x in l %}{% endfor %}{% continue %}",
      "{% for x in l %}{{ loop([1]) }}{% endfor %}",
      "{% for x in l %}{% set loop = 1 %}{% endfor %}",
      "{% for loop in l %}{{ loop }}{% endfor %}",
      "{% for %}",
      "{% for x in %}{% endfor %}",
      "{% for x l %}{% endfor %}",
      "{% for x in el %}{{ 1|nope }}{% endfor %}",
      "{% if 0 %}{% for x in l %}{{ x|nope }}{% endfor %}{% endif %}",
  });
}

TEST(JinjaStatements, Variables) {
  expect_texts({
      {"{% if false %}{% set n = 1 %}{% endif %}{{ n }}", "5"},
      {"{% if true %}{% set n = 1 %}{% endif %}{{ n }}", "1"},
      {"{% if n %}{% set q = 1 %}{% else %}{% set q = 2 %}{% endif %}{{ q }}", "1"},
      {"{% if z %}{% set q = 1 %}{% elif n %}{% set q = 3 %}{% else %}{% set q = 2 %}{% endif %}{{ q }}", "3"},
      {"{% if z %}{% set n = 1 %}{% elif z %}{% set n = 3 %}{% endif %}{{ n }}", "5"},
      {"{% set ns = namespace() %}{% set ns.x = 1 %}{{ ns.x }}{{ ns.y is defined }}{{ ns.y }}", "1False"},
      {"{% set ns = namespace(a=1,b=2) %}{% set ns.a, ns.b = ns.b, ns.a %}{{ ns.a }}{{ ns.b }}", "21"},
      {"{% set ns = namespace({'items':3}) %}{{ ns.items }}", "3"},
      {"{% set a, b = 1, 2 %}{{ a }}{{ b }}", "12"},
      {"{% set (a, b) = 'xy' %}{{ a }}{{ b }}", "xy"},
      {"{% set a = 1, %}{{ a }}", "(1,)"},
      {"{% set a = 1, 2 %}{{ a }}", "(1, 2)"},
      {"{% set é = 1 %}{{ é }}", "1"},
      {"{% set _a1 = 1 %}{{ _a1 }}", "1"},
      {"{% set f = 'x'|upper %}{{ f }}", "X"},
      {"{% set it = l|map('string') %}{{ it|list }}{{ it|list }}", "['3', '1', '2'][]"},
      {"{% set c = cycler('a','b','c') %}{{ c.next() }}{{ c.next() }}{{ c.current }}{{ c.reset() }}{{ c.next() }}",
       "abcNonea"},
      {"{% set x = n if n > 10 %}{{ x is defined }}{{ x }}", "False"},
      {"{% set messages = [{'role':'user','content':'hi'}] %}{{ messages[0]['role'] }}{{ messages[-1].content }}{{ "
       "messages[1:]|length }}",
       "userhi0"},
      {"{% set l2 = l + [4] %}{{ l2 }}{{ l }}", "[3, 1, 2, 4][3, 1, 2]"},
      {"{% set x = 'a' %}{% set x = x ~ 'b' %}{{ x }}", "ab"},
      {"{% set x = x ~ 'b' %}{{ x }}", "b"},
      {"{% set n = n + 1 %}{{ n }}", "6"},
      {"{% set s = s|upper %}{{ s }}", "HELLO WORLD"},
      {"{{ n }}{% set n = n + 1 %}{{ n }}", "56"},
      {"{{ ns }}{% set ns = namespace(a=1) %}", ""},
      {"{% set ns = namespace(a=1) %}{{ ns is mapping }}{{ ns is iterable }}{{ ns is defined }}{{ ns == ns }}",
       "FalseFalseTrueTrue"},
      {"{% set ns = namespace(a=[]) %}{% set ns.a = [ns.a] %}{{ ns.a }}", "[[]]"},
  });
}

TEST(JinjaStatements, VariablesRefused) {
  expect_refused({
      "{% set d.x = 1 %}",
      "{% set q.x = 1 %}",
      "{% set a, b = [1] %}",
      "{% set %}",
      "{% set 1 = 2 %}",
      "{% set none = 2 %}",
      "{% set x.y.z = 1 %}",
      "{% set _ = l.append(1) %}",
  });
}

TEST(JinjaStatements, Others) {
  expect_texts({
      {"{% print 1 %}{% print 1, 'a' %}", "11a"},
      {"%}", "%}"},
      {"}}", "}}"},
      {"{ {", "{ {"},
      {"{% if n %}a{% elif z %}b{% else %}c{% endif %}", "a"},
      {"{% if z %}a{% elif z %}b{% elif n %}c{% else %}d{% endif %}", "c"},
      {"{% if n: %}a{% else: %}b{% endif %}", "a"},
      {"{% if n is defined and n > 3 %}y{% endif %}", "y"},
      {"{% if not z %}y{% endif %}", "y"},
      {"{% if l %}L{% endif %}{% if el %}E{% endif %}{% if undef %}U{% endif %}", "L"},
      {"{% if n, z %}t{% endif %}", "t"},
      {"{{ Ω }}", ""},
      {"{{ 日本 is defined }}", "False"},
      {"{{ d.日 }}", ""},
      {"{{ range(3)|map('string')|join('-') }}", "0-1-2"},
      {"{{ undef|length }}", "0"},
      {"{{ undef|list }}", "[]"},
      {"{{ l.append }}", ""},
      {"{{ l.sort is defined }}", "False"},
      {"{{ loop }}", ""},
      {"{{ 1 if 1 else nofilter|nope }}", "1"},
      {"{% if 0 %}{{ 1|nope }}{% endif %}ok", "ok"},
      {"{% if 0 %}{{ 1 is nope }}{% endif %}ok", "ok"},
      {"{{ 'a' if n else 'b' }}{{ 'c' ~ 'd' if z else 'e' }}", "ae"},
      {"{{ n|string|length + 1 }}", "2"},
      {"{{ (s|length) * 2 }}", "22"},
      {"{{ s[:n] ~ '...' if s|length > n else s }}", "Hello..."},
      {"{{ l[n-3] }}", "2"},
      {"{{ d['a' ~ ''] }}", "x"},
      {"{{ not n == 5 }}", "False"},
      {"{{ n in [5] and s in ['x'] }}", "False"},
      {"{%- for message in ld %}\n    {%- if loop.first %}\n        {{- message.k }}\n    {%- endif %}\n    {{- '\\n' "
       "+ message.v|string }}\n{%- endfor %}\n",
       "x\n1\n2\n3.5"},
      {"{{ [l, ls]|map('first')|list }}", "[3, 'b']"},
      {"{{ ld|map(attribute='k')|map('upper')|join }}", "XYX"},
      {"{{ ld|selectattr('k','==','x')|map(attribute='v')|sum }}", "4.5"},
      {"{{ ld|map(attribute='v', default=0)|sum }}", "6.5"},
      {"{{ l|map(attribute=0)|list }}", "[Undefined, Undefined, Undefined]"},
      {"{{ ['ab','cd']|map('first')|join }}", "ac"},
      {"{{ ['ab']|map(attribute=1)|list }}", "['b']"},
      {"{{ [[1,2]]|map(attribute='1')|list }}", "[2]"},
  });
}

TEST(JinjaStatements, OthersRefused) {
  expect_refused({
      "{% break %}",
      "{% do 1 %}",
      "{% if %}{% endif %}",
      "{% if n %}",
      "{% endif %}",
      "{% foo %}",
      "{{",
      "{{ }}",
      "{{ 1 + }}",
      "{{ (1 }}",
      "{{ 1) }}",
      "{{ [1 }}",
      "{% if n %}{% else %}{% else %}{% endif %}",
      "{% if n %}{% endfor %}",
      "{{ 'abc }}",
      "{{ a b }}",
      "{{ 1 2 }}",
      "{{ a.1.b }}",
      "{{ a. }}",
      "{{ a | }}",
      "{{ a is }}",
      "{{ f(a=1, 2) }}",
      "{{ f(*a, *b) }}",
      "{{ @ }}",
      "{{ a ? b }}",
      "{{ a ! b }}",
      "{{ $x }}",
      "{{ a² }}",
      "{{ raise_exception('a' ~ n) }}",
      "{% if n > 3 %}{{ raise_exception('big') }}{% endif %}",
      "{{ (n if n > 10).foo }}",
      "{{ undef.foo }}",
      "{{ d.nope.foo }}",
      "{{ undef() }}",
      "{{ d.nope() }}",
      "{{ n() }}",
      "{{ s.foo() }}",
      "{{ undef + 1 }}",
      "{{ undef.foo is defined }}",
      "{{ d.nope.foo is defined }}",
      "{{ d.update({}) }}",
      "{{ d.setdefault('a', 1) }}",
      "{% extends 'x' %}",
      "{% include 'x' %}",
      "{% import 'x' as y %}",
      "{% from 'x' import y %}",
      "{% if 1 %}{{ 1|nope }}{% endif %}",
      "{{ l|map('nope')|first }}",
  });
}

}  // namespace
}  // namespace consonant::jinja
