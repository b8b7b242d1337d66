// SPDX-License-Identifier: Apache-2.0
// The methods of Python's types.
// Each expected text is what jinja2 3.1.6 makes of the template.
#include "text/jinja/test_render.hpp"

namespace consonant::jinja {
namespace {

TEST(JinjaMethods, SplitAndStrip) {
  expect_texts({
      {"{{ ws.strip() }}", "pad"},
      {"{{ ws.lstrip() }}", "pad \t\n"},
      {"{{ ws.rstrip() }}", "  pad"},
      {"{{ \"xxaxx\".strip('x') }}", "a"},
      {"{{ \"xyaxy\".lstrip('xy') }}", "axy"},
      {"{{ \"äaä\".strip('ä') }}", "a"},
      {"{{ s.split() }}", "['Hello', 'World']"},
      {"{{ s.split('o') }}", "['Hell', ' W', 'rld']"},
      {"{{ s.split('o',1) }}", "['Hell', ' World']"},
      {"{{ \"a,b,,c\".split(',') }}", "['a', 'b', '', 'c']"},
      {"{{ \"  a  b \".split() }}", "['a', 'b']"},
      {"{{ \"  a  b c \".split(none,1) }}", "['a', 'b c ']"},
      {"{{ s.rsplit('o',1) }}", "['Hello W', 'rld']"},
      {"{{ \"  a  b c \".rsplit(none,1) }}", "['  a  b', 'c']"},
      {"{{ m.splitlines() }}", "['line1', 'line2', 'line3', 'q', 'z']"},
      {"{{ m.splitlines(true) }}", "['line1\\n', 'line2\\r\\n', 'line3\\x0b', 'q\\u2028', 'z']"},
      {"{{ \"\".split() }}", "[]"},
      {"{{ \"\".split(',') }}", "['']"},
      {"{{ ''.splitlines() }}", "[]"},
      {"{{ \"-\".join(['a','b']) }}", "a-b"},
      {"{{ ','.join('abc') }}", "a,b,c"},
      {"{{ ','.join({'a':1,'b':2}) }}", "a,b"},
      {"{{ \"a-b-c\".partition('-') }}", "('a', '-', 'b-c')"},
      {"{{ \"a-b-c\".rpartition('-') }}", "('a-b', '-', 'c')"},
      {"{{ \"abc\".partition('-') }}", "('abc', '', '')"},
      {"{{ \"abc\".rpartition('-') }}", "('', '', 'abc')"},
      {"{{ 'a,b'.split(',')[1] }}", "b"},
      {"{{ s.split(sep='o') }}", "['Hell', ' W', 'rld']"},
      {"{{ s.split(maxsplit=1) }}", "['Hello', 'World']"},
      {"{{ s.split('o', maxsplit=1) }}", "['Hell', ' World']"},
      {"{{ 'a\\nb'.splitlines(keepends=true) }}", "['a\\n', 'b']"},
      {"{{ ' a\\u3000'.strip() }}", "a"},
      {"{{ 'a\\u00a0b c'.split() }}", "['a', 'b', 'c']"},
      {"{{ 'a\\x1cb'.splitlines() }}", "['a', 'b']"},
      {"{{ 'a\\x85b'.splitlines() }}", "['a', 'b']"},
      {"{{ 'a\\r\\n\\nb'.splitlines() }}", "['a', '', 'b']"},
  });
}

TEST(JinjaMethods, SplitAndStripRefused) {
  expect_refused({
      "{{ \"a\".split('') }}",
      "{{ ','.join([1]) }}",
      "{{ s.strip(chars='H') }}",
  });
}

TEST(JinjaMethods, FindAndReplace) {
  expect_texts({
      {"{{ s.startswith('He') }}", "True"},
      {"{{ s.endswith(('ld','x')) }}", "True"},
      {"{{ s.startswith('World',6) }}", "True"},
      {"{{ s.endswith('Wor',0,9) }}", "True"},
      {"{{ s.startswith('') }}", "True"},
      {"{{ ''.startswith('',1) }}", "False"},
      {"{{ s.find('o') }}", "4"},
      {"{{ s.find('o',5) }}", "7"},
      {"{{ s.rfind('o') }}", "7"},
      {"{{ s.find('zz') }}", "-1"},
      {"{{ s.index('W') }}", "6"},
      {"{{ u.find('世') }}", "7"},
      {"{{ s.count('o') }}", "2"},
      {"{{ s.count('') }}", "12"},
      {"{{ u.count('') }}", "16"},
      {"{{ s.count('l',3) }}", "2"},
      {"{{ s.find('',100) }}", "-1"},
      {"{{ s.replace('o','0') }}", "Hell0 W0rld"},
      {"{{ s.replace('o','0',1) }}", "Hell0 World"},
      {"{{ s.replace('','-') }}", "-H-e-l-l-o- -W-o-r-l-d-"},
      {"{{ u.replace('','.') }}", ".G.r.ü.ß.e.,. .世.界. .👋.🏽.\n. .x."},
      {"{{ s.replace('zz','y') }}", "Hello World"},
      {"{{ \"prefix-x\".removeprefix('prefix-') }}", "x"},
      {"{{ \"x.py\".removesuffix('.py') }}", "x"},
      {"{{ 'abc'.removeprefix('z') }}", "abc"},
      {"{{ l.count(1) }}", "1"},
      {"{{ l.index(2) }}", "2"},
      {"{{ (1,2,1).count(1) }}", "2"},
  });
}

TEST(JinjaMethods, FindAndReplaceRefused) {
  expect_refused({
      "{{ s.index('zz') }}",
      "{{ l.index(99) }}",
      "{{ s.replace(old='o',new='x') }}",
  });
}

TEST(JinjaMethods, CaseAndKind) {
  expect_texts({
      {"{{ s.upper() }}", "HELLO WORLD"},
      {"{{ s.lower() }}", "hello world"},
      {"{{ s.title() }}", "Hello World"},
      {"{{ s.capitalize() }}", "Hello world"},
      {"{{ s.swapcase() }}", "hELLO wORLD"},
      {"{{ u.upper() }}", "GRÜSSE, 世界 👋🏽\n X"},
      {"{{ u.lower() }}", "grüße, 世界 👋🏽\n x"},
      {"{{ 'ß'.upper() }}", "SS"},
      {"{{ 'ﬁx'.title() }}", "Fix"},
      {"{{ 'ΑΣ ΟΔΟΣ'.lower() }}", "ας οδος"},
      {"{{ 'İ'.lower() }}", "i\314\207"},
      {"{{ 'straße'.casefold() }}", "strasse"},
      {"{{ 'ǆ'.title() }}", "ǅ"},
      {"{{ 'o\\'neil they\\'re'.title() }}", "O'Neil They'Re"},
      {"{{ \"abc\".isalpha() }}", "True"},
      {"{{ \"12\".isdigit() }}", "True"},
      {"{{ \"a1\".isalnum() }}", "True"},
      {"{{ \" \".isspace() }}", "True"},
      {"{{ \"Ab\".istitle() }}", "True"},
      {"{{ \"AB\".isupper() }}", "True"},
      {"{{ \"ab1\".islower() }}", "True"},
      {"{{ \"\".isalpha() }}", "False"},
      {"{{ \"²\".isdigit() }}", "True"},
      {"{{ \"²\".isdecimal() }}", "False"},
      {"{{ \"a b\".isidentifier() }}", "False"},
      {"{{ \"é\".isascii() }}", "False"},
      {"{{ \"a\\n\".isprintable() }}", "False"},
      {"{{ 1.5.is_integer() }}", "False"},
      {"{{ (2.0).is_integer() }}", "True"},
      {"{{ 'Ünï'.lower() == 'ünï' }}", "True"},
      {"{{ 'ŉa'.capitalize() }}", "ʼNa"},
  });
}

TEST(JinjaMethods, CaseAndKindRefused) {
  expect_refused({
      "{{ s.upper(1) }}",
  });
}

TEST(JinjaMethods, Format) {
  expect_texts({
      {"{{ \"{} {}\".format(1,'a') }}", "1 a"},
      {"{{ \"{0}{1}{0}\".format('x','y') }}", "xyx"},
      {"{{ \"{a}\".format(a=1) }}", "1"},
      {"{{ \"{:>5}|{:<5}|{:^5}\".format(1,2,3) }}", "    1|2    |  3  "},
      {"{{ \"{:05d}\".format(42) }}", "00042"},
      {"{{ \"{:.2f}\".format(3.14159) }}", "3.14"},
      {"{{ \"{:,}\".format(1234567) }}", "1,234,567"},
      {"{{ \"{:x}\".format(255) }}", "ff"},
      {"{{ \"{:#x}\".format(255) }}", "0xff"},
      {"{{ \"{:e}\".format(12345.678) }}", "1.234568e+04"},
      {"{{ \"{:g}\".format(0.0001) }}", "0.0001"},
      {"{{ \"{:%}\".format(0.25) }}", "25.000000%"},
      {"{{ \"{:+d}\".format(5) }}", "+5"},
      {"{{ \"{{}}\".format() }}", "{}"},
      {"{{ \"{!r}\".format('a') }}", "'a'"},
      {"{{ \"{0[a]} {0.b}\".format(d) }}", "x 1"},
      {"{{ \"{:*^9}\".format('mid') }}", "***mid***"},
      {"{{ \"{:10.3}|\".format('abcdef') }}", "abc       |"},
      {"{{ \"{:{w}}|\".format('a', w=5) }}", "a    |"},
      {"{{ \"{:_}\".format(1234567) }}", "1_234_567"},
      {"{{ \"{:.3}\".format(1.0) }}", "1.0"},
      {"{{ \"{:.3}\".format(1234567.0) }}", "1.23e+06"},
      {"{{ \"{:b}\".format(5) }}", "101"},
      {"{{ '{:c}'.format(65) }}", "A"},
      {"{{ '{:>+8.2f}'.format(-2.345) }}", "   -2.35"},
      {"{{ '{}'.format(true) }}", "True"},
      {"{{ '{:d}'.format(true) }}", "1"},
      {"{{ '{:5}|'.format(true) }}", "    1|"},
      {"{{ '{:=+5d}'.format(3) }}", "+   3"},
      {"{{ '{:<05d}'.format(3) }}", "30000"},
      {"{{ '{:05}'.format('a') }}", "a0000"},
      {"{{ 'x'.format(1) }}", "x"},
      {"{{ 'a{}b{}'.format(*[1,2]) }}", "a1b2"},
      {"{{ '{a}{b}'.format(**{'a':1,'b':2}) }}", "12"},
      {"{{ '{}'.format(none) }}", "None"},
      {"{{ '{}'.format([1,'a']) }}", "[1, 'a']"},
      {"{{ '{!s:>5}'.format(none) }}", " None"},
      {"{{ '{:s}'.format('x') }}", "x"},
      {"{{ '{:.1f}%'.format(12.345) }}", "12.3%"},
      {"{{ '{:08.3f}'.format(-3.14159) }}", "-003.142"},
      {"{{ '{:,.2f}'.format(1234567.891) }}", "1,234,567.89"},
      {"{{ '{:^+9d}'.format(7) }}", "   +7    "},
      {"{{ '{:#b} {:#o} {:X}'.format(5,8,255) }}", "0b101 0o10 FF"},
      {"{{ '{:e}'.format(0) }}", "0.000000e+00"},
      {"{{ '{:g}'.format(1e20) }}", "1e+20"},
      {"{{ '{:n}'.format(1000) }}", "1000"},
      {"{{ '{:.0f}'.format(2.5) }}", "2"},
      {"{{ '{:}'.format(1.0) }}", "1.0"},
      {"{{ '{:5}|'.format(1.5) }}", "  1.5|"},
      {"{{ '{:<8}|'.format(2.25) }}", "2.25    |"},
      {"{{ '{:G}'.format(1e-7) }}", "1E-07"},
      {"{{ '{:%}'.format(1) }}", "100.000000%"},
      {"{{ '{:.1%}'.format(0.1234) }}", "12.3%"},
      {"{{ '{:é>5}'.format('x') }}", "ééééx"},
      {"{{ '{0.k}{1[0]}'.format(ld[0], l) }}", "x3"},
      {"{{ '{a[b]}'.format(a={'b':3}) }}", "3"},
      {"{{ '{:_x}'.format(1048575) }}", "f_ffff"},
      {"{{ '{:+}'.format(1.5) }}", "+1.5"},
      {"{{ '{: d}'.format(4) }}", " 4"},
      {"{{ '{a.b.c}'.format(a={'b':{'c':1}}) }}", "1"},
      {"{{ '{:,d}'.format(1234) }}", "1,234"},
      {"{{ '{:,}'.format(-1234567) }}", "-1,234,567"},
      {"{{ '{:,}'.format(123) }}", "123"},
  });
}

TEST(JinjaMethods, FormatRefused) {
  expect_refused({
      "{{ \"{\".format() }}",
      "{{ \"{} {0}\".format(1) }}",
      "{{ \"{1}\".format(1) }}",
      "{{ \"{x}\".format(1) }}",
      "{{ '{}'.format() }}",
      "{{ '{:>10}'.format(none) }}",
      "{{ '{:d}'.format('a') }}",
      "{{ '{:s}'.format(5) }}",
      "{{ '{:.2}'.format(5) }}",
      "{{ '{:z}'.format(5) }}",
      "{{ '{!x}'.format(5) }}",
  });
}

TEST(JinjaMethods, Others) {
  expect_texts({
      {"{{ d.get('b') }}", "1"},
      {"{{ d.get('q') }}", "None"},
      {"{{ d.get('q', 4) }}", "4"},
      {"{{ d.keys() }}", "dict_keys(['b', 'a', 'items', 'n'])"},
      {"{{ d.values() }}", "dict_values([1, 'x', 7, None])"},
      {"{{ d.items() }}", "dict_items([('b', 1), ('a', 'x'), ('items', 7), ('n', None)])"},
      {"{{ \"x\".center(5) }}", "  x  "},
      {"{{ \"ab\".center(5,'*') }}", "**ab*"},
      {"{{ \"a\".ljust(3)~'|' }}", "a  |"},
      {"{{ \"a\".rjust(3,'.') }}", "..a"},
      {"{{ \"-5\".zfill(4) }}", "-005"},
      {"{{ \"+5\".zfill(4) }}", "+005"},
      {"{{ \"abc\".center(2) }}", "abc"},
      {"{{ \"ab\".center(4)~'|' }}", " ab |"},
      {"{{ \"abc\".center(6,'-') }}", "-abc--"},
      {"{{ \"a\\tb\\tc\".expandtabs() }}", "a       b       c"},
      {"{{ \"a\\tb\".expandtabs(4) }}", "a   b"},
      {"{{ 'ab\\n\\tc'.expandtabs(2) }}", "ab\n  c"},
      {"{{ cycler('a','b').next() }}", "a"},
      {"{{ l.copy() }}", "[3, 1, 2]"},
      {"{{ (5).bit_length() }}", "3"},
      {"{{ 'x' if d.get('b') == 1 else 'y' }}", "x"},
      {"{{ d.get('zz', {}).get('q', 'deep') }}", "deep"},
      {"{{ '日本語'.center(7,'・') }}", "・・日本語・・"},
      {"{{ d.keys() == ['b'] }}", "False"},
      {"{{ d.keys() == d.keys() }}", "True"},
      {"{{ d.items() == d.items() }}", "True"},
      {"{{ \"%s\" % d.keys() }}", "dict_keys(['b', 'a', 'items', 'n'])"},
  });
}

TEST(JinjaMethods, OthersRefused) {
  expect_refused({
      "{{ l.append(4) }}",
      "{{ d.update({'a':1}) }}",
      "{{ d.pop('a') }}",
      "{{ s.nope() }}",
  });
}

}  // namespace
}  // namespace consonant::jinja
