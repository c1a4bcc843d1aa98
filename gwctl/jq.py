"""The part of jq that `--jq` understands: paths, pipes, picks, select, map and a few functions.

Grammar, loosest first: `a | b`, `a, b`, `a // b`, `or`, `and`, comparisons, `+ -`, `* /`, then
paths (`.a.b`, `.["a b"]`, `.[0]`, `.[1:3]`, `.[]`, a trailing `?`), `{a, b: .c}`, `[…]`, literals
and `f(…)`.
"""

import re
from dataclasses import dataclass
from typing import Any

from gwctl import jq_filters as make
from gwctl import jsontext
from gwctl.errors import CommandError, usage
from gwctl.jq_filters import Filter
from gwctl.jq_values import FUNCTIONS, each

_TOKEN = re.compile(
    r'\s*(?:(?P<string>"(?:[^"\\]|\\.)*")|(?P<number>\d+(?:\.\d+)?)'
    r"|(?P<field>\.[A-Za-z_]\w*)|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<op>//|==|!=|<=|>=|\.\.|[.|,:()\[\]{}<>+\-*/?]))"
)


def run(expression: str, value: object) -> list[Any]:
    """Every output of the expression for one input."""
    return list(parsed(expression)(value))


def parsed(expression: str) -> Filter:
    """The expression as a filter; raises a usage error that names the place it cannot read."""
    return _Parser(_tokens(expression), expression).parse()


_LEVELS: tuple[tuple[str, ...], ...] = (
    ("or",),
    ("and",),
    ("==", "!=", "<", "<=", ">", ">="),
    ("+", "-"),
    ("*", "/"),
)


@dataclass
class _Token:
    kind: str
    text: str
    at: int


def _tokens(expression: str) -> list[_Token]:
    tokens: list[_Token] = []
    at = 0
    while expression[at:].strip():
        match = _TOKEN.match(expression, at)
        if match is None:
            raise _bad(expression, at)
        kind = str(match.lastgroup)
        tokens.append(_Token(kind, match[kind], match.start(kind)))
        at = match.end()
    return tokens


def _bad(expression: str, at: int) -> CommandError:
    rest = expression[at:].strip() or "the end"
    return usage(
        f"--jq does not understand {rest!r} in {expression!r}",
        do="gwctl help formatting lists what it understands; pipe --json into jq for the rest",
    )


class _Parser:
    """Turns tokens into a filter by recursive descent."""

    def __init__(self, tokens: list[_Token], expression: str) -> None:
        self.tokens = tokens
        self.expression = expression
        self.at = 0

    def parse(self) -> Filter:
        if not self.tokens:
            return make.identity
        result = self.pipe()
        if self.at < len(self.tokens):
            raise self.bad()
        return result

    def bad(self) -> CommandError:
        at = self.tokens[self.at].at if self.at < len(self.tokens) else len(self.expression)
        return _bad(self.expression, at)

    def take(self, *texts: str) -> str | None:
        token = self.tokens[self.at] if self.at < len(self.tokens) else None
        if token is None or token.kind == "string" or token.text not in texts:
            return None
        self.at += 1
        return token.text

    def expect(self, text: str) -> None:
        if self.take(text) is None:
            raise self.bad()

    def kind(self, kind: str) -> str | None:
        token = self.tokens[self.at] if self.at < len(self.tokens) else None
        if token is None or token.kind != kind:
            return None
        self.at += 1
        return token.text

    def pipe(self) -> Filter:
        left = self.comma()
        while self.take("|"):
            left = make.pipe(left, self.comma())
        return left

    def comma(self) -> Filter:
        parts = [self.alternative()]
        while self.take(","):
            parts.append(self.alternative())
        return parts[0] if len(parts) == 1 else lambda value: (o for p in parts for o in p(value))

    def alternative(self) -> Filter:
        left = self.binary(0)
        if self.take("//"):
            return make.alternative(left, self.alternative())
        return left

    def binary(self, level: int) -> Filter:
        if level == len(_LEVELS):
            return self.postfix()
        left = self.binary(level + 1)
        while (operator := self.take(*_LEVELS[level])) is not None:
            left = make.binary(operator, left, self.binary(level + 1))
        return left

    def postfix(self) -> Filter:
        term = self.term()
        while True:
            if (field := self.kind("field")) is not None:
                term = make.pipe(term, make.field(make.literal(field[1:])))
            elif self.take("["):
                term = make.pipe(term, self.index())
            elif self.take("?"):
                term = make.quiet(term)
            elif (key := self.dotted_string()) is not None:
                term = make.pipe(term, make.field(make.literal(key)))
            elif self.dot_bracket():
                self.at += 1
            else:
                return term

    def dot_bracket(self) -> bool:
        """Whether `.[` follows: the same as `[` alone."""
        return [token.text for token in self.tokens[self.at : self.at + 2]] == [".", "["]

    def dotted_string(self) -> str | None:
        """The key of a following `."key"`."""
        following = self.tokens[self.at : self.at + 2]
        if len(following) < 2 or following[0].text != "." or following[1].kind != "string":
            return None
        self.at += 2
        return str(jsontext.loads(following[1].text))

    def index(self) -> Filter:
        """What stands between brackets: nothing, a slice, or an index or key."""
        if self.take("]"):
            return each
        low = None if self.take(":") else self.pipe()
        if low is None or self.take(":"):
            high = None if self.take("]") else self.pipe()
            if high is not None:
                self.expect("]")
            return make.cut(low, high)
        self.expect("]")
        return make.field(low)

    def term(self) -> Filter:
        if (field := self.kind("field")) is not None:
            return make.field(make.literal(field[1:]))
        if (string := self.kind("string")) is not None:
            return make.literal(jsontext.loads(string))
        if (number := self.kind("number")) is not None:
            return make.literal(jsontext.loads(number))
        if (name := self.kind("name")) is not None:
            return self.call(name)
        if self.take("-"):
            return make.binary("-", make.literal(0), self.postfix())
        if self.take("("):
            inner = self.pipe()
            self.expect(")")
            return inner
        if self.take("["):
            if self.take("]"):
                return make.literal([])
            inner = self.pipe()
            self.expect("]")
            return lambda value: iter([list(inner(value))])
        if self.take("{"):
            return self.object()
        if self.take("."):
            string = self.kind("string")
            return (
                make.identity
                if string is None
                else make.field(make.literal(jsontext.loads(string)))
            )
        raise self.bad()

    def object(self) -> Filter:
        entries: list[tuple[str, Filter]] = []
        while not self.take("}"):
            string = self.kind("string")
            key = self.kind("name") if string is None else str(jsontext.loads(string))
            if key is None:
                raise self.bad()
            value = self.alternative() if self.take(":") else make.field(make.literal(key))
            entries.append((key, value))
            if not self.take(","):
                self.expect("}")
                break
        return make.make_object(entries)

    def call(self, name: str) -> Filter:
        constants = {"true": True, "false": False, "null": None}
        if name in constants:
            return make.literal(constants[name])
        if name in FUNCTIONS:
            return make.plain_function(FUNCTIONS[name])
        if name in make.WITH_ARGUMENT:
            self.expect("(")
            argument = self.pipe()
            self.expect(")")
            return make.WITH_ARGUMENT[name](argument)
        self.at -= 1
        raise self.bad()
