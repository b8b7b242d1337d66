# SPDX-License-Identifier: Apache-2.0
"""Just enough C++ lexing to find functions and their lengths. Every step keeps line numbers: what is taken out of the text
is replaced by blanks, newlines stay.
"""
import re
from typing import Iterator, NamedTuple

TOKEN = re.compile(
    r"""(?P<line>//(?:[^\n\\]|\\.|\\\n)*)
      | (?P<block>/\*.*?(?:\*/|\Z))
      | (?P<raw>(?:u8|[uUL])?R"(?P<mark>[^\s()\\]{0,16})\(.*?\)(?P=mark)")
      | (?P<number>\b\d(?:'?[\w.])*)
      | (?P<string>"(?:[^"\\\n]|\\.)*")
      | (?P<char>'(?:[^'\\\n]|\\.)*')""",
    re.S | re.X,
)


class Unbalanced(Exception):
    def __init__(self, line: int, what: str):
        super().__init__(f"{what}: the functions of this file can't be measured")
        self.line = line


class Function(NamedTuple):
    name: str
    first: int  # the line of its head
    last: int

    @property
    def lines(self) -> int:
        return self.last - self.first + 1


def blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def without_comments(text: str) -> str:
    def keep(match: re.Match) -> str:
        return blank(match.group()) if match.lastgroup in ("line", "block") else match.group()

    return TOKEN.sub(keep, text)


def without_literals(text: str) -> str:
    """Strings and characters become empty ones: "" and ''. Comments must be out already."""

    def empty(match: re.Match) -> str:
        if match.lastgroup == "number":
            return match.group()
        quote = "'" if match.lastgroup == "char" else '"'
        return quote + blank(match.group()[2:]) + quote

    return TOKEN.sub(empty, text)


def without_directives(text: str) -> str:
    """Preprocessor lines go, and of #if ... #else ... #endif the first branch stays, so that braces balance."""
    out = []
    dropped = []  # for each open #if, whether its present branch is dropped
    continued = False
    for line in text.split("\n"):
        directive = re.match(r"\s*#\s*(\w*)", line)
        if continued or directive:
            if directive and not continued:
                word = directive.group(1)
                if word in ("if", "ifdef", "ifndef"):
                    dropped.append(False)
                elif word in ("else", "elif", "elifdef", "elifndef") and dropped:
                    dropped[-1] = True
                elif word == "endif" and dropped:
                    dropped.pop()
            continued = line.endswith("\\")
            out.append(blank(line))
        else:
            out.append(blank(line) if any(dropped) else line)
    return "\n".join(out)


def without_groups(head: str, opening: str, closing: str) -> str:
    """What lies outside of all brackets of this kind; each group leaves its two brackets."""
    out = []
    depth = 0
    for char in head:
        if char == closing and depth:
            depth -= 1
        if depth == 0:
            out.append(char)
        if char == opening:
            depth += 1
    return "".join(out)


def without_templates(head: str) -> str:
    """Drops each template<...> clause, whose keywords say nothing about what is declared."""
    while match := re.search(r"\btemplate\s*<", head):
        depth, at = 1, match.end()
        while at < len(head) and depth:
            depth += {"<": 1, ">": -1}.get(head[at], 0)
            at += 1
        head = head[: match.start()] + " " + head[at:]
    return head


def kind_of(head: str) -> str:
    """What a brace at namespace or class scope opens, from the text that leads to it: scope, function or value."""
    head = without_groups(without_groups(without_templates(head), "(", ")"), "{", "}")
    if re.search(r"\bnamespace\b", head) or re.search(r'\bextern\s*"\s*"\s*$', head):
        return "scope"
    named = re.sub(r"\boperator\s*[^\s\w(]+", "operator", head)
    assigned = re.search(r"(?<![=!<>])=(?!=)", named)
    if assigned:
        return "function" if "[" in named[assigned.end():] else "value"
    after = named.rsplit(")", 1)[-1]
    if re.fullmatch(r"[\s&]*((const|noexcept|override|final|try|mutable|volatile)\b[\s&]*)*", after) and ")" in named:
        return "function"
    if re.match(r"\s*(class|struct|union|enum)\b", named) or re.search(r"\b(class|struct|union|enum)\b", after):
        return "scope"
    member_value = re.search(r"\)[^:]*(?<!:):(?!:)", named) and re.search(r"[\w>]\s*$", named)
    return "function" if ")" in named and not member_value else "value"


def name_of(head: str) -> str:
    flat = " ".join(without_templates(head).split())
    match = re.search(r"([~\w:]+(?:\s*operator[^\w(]+)?|operator\s*\S+?)\s*\(", flat)
    return match.group(1) if match else flat[:40] or "a function"


def functions(text: str) -> Iterator[Function]:
    """Functions at namespace and class scope, and lambdas that initialise a variable there."""
    text = without_directives(without_literals(without_comments(text)))
    scopes = []  # (kind, line, name) for each open brace outside of function bodies
    inside = 0  # depth of braces in a function's body or in a value
    parens = 0
    head_start = 0
    line = 1
    for at, char in enumerate(text):
        if char == "\n":
            line += 1
        elif inside:
            inside += {"{": 1, "}": -1}.get(char, 0)
            if inside == 0:
                kind, first, name = scopes.pop()
                if kind == "function":
                    yield Function(name, first, line)
                    head_start = at + 1
        elif char in "()":
            parens = max(0, parens + (1 if char == "(" else -1))
        elif parens:
            continue
        elif char == ";":
            head_start = at + 1
        elif char == "{":
            head = text[head_start:at]
            head = re.sub(r"^(\s*(public|private|protected)\s*:)+", lambda m: blank(m.group()), head)
            kind = kind_of(head)
            first = line - head.lstrip().count("\n")
            scopes.append((kind, first, name_of(head)))
            if kind == "scope":
                head_start = at + 1
            else:
                inside = 1
        elif char == "}":
            if not scopes:
                raise Unbalanced(line, "a closing brace without its opening one")
            scopes.pop()
            head_start = at + 1
    if scopes:
        raise Unbalanced(scopes[-1][1], "an opening brace is never closed")
