"""Paths, operators and placeholders of case files (README.md: Placeholders, Assertions)."""

import json
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

TOKEN = re.compile(r"\[\*\]|\[(-?\d+)\]|\[\?([^=\]]+)=([^\]]*)\]|([^.\[\]]+)|\.")
PLACEHOLDER = re.compile(r"\{\{([a-z_]+)(?:\+(\d+)s)?\}\}")
NEEDS_VALUE = {"equals", "contains", "matches"}

Step = tuple[str, Any]


class NothingThere(Exception):
    """The path leads nowhere."""


class BadCase(Exception):
    """The case file says something that the README does not know."""


def load_json(text: str) -> Any:
    """JSON with exact numbers; NaN and Infinity are not JSON."""
    return json.loads(text, parse_float=Decimal, parse_constant=_refuse_constant)


def load_json_or_none(text: str) -> Any:
    try:
        return load_json(text)
    except ValueError:
        return None


def _refuse_constant(word: str) -> None:
    raise ValueError(f"{word} is not JSON")


def plain_decimal(number: Decimal | int | str) -> str:
    """Decimal string without exponent and without trailing zeros: 0.0000002, 10, 0."""
    text = format(Decimal(number), "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in ("-0", "") else text


def compact_json(value: Any) -> str:
    """JSON without spaces and without ASCII escapes, numbers without exponent."""
    if isinstance(value, dict):
        return (
            "{"
            + ",".join(f"{compact_json(str(k))}:{compact_json(v)}" for k, v in value.items())
            + "}"
        )
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(compact_json(member) for member in value) + "]"
    if isinstance(value, Decimal):
        return format(value, "f")
    return json.dumps(value, ensure_ascii=False)


# --- paths -------------------------------------------------------------------------------------


def parse_path(path: str) -> list[Step]:
    """'a.b[0][?k=v][*].length()' -> list of (kind, argument)."""
    steps: list[Step] = []
    position = 0
    while position < len(path):
        token = TOKEN.match(path, position)
        if token is None:
            raise BadCase(f"path {path!r} is not understood at {position}")
        position = token.end()
        index, key, wanted, name = token.groups()
        if token.group() == "[*]":
            steps.append(("each", None))
        elif index is not None:
            steps.append(("index", int(index)))
        elif key is not None:
            steps.append(("where", (key, wanted)))
        elif name == "length()":
            steps.append(("length", None))
        elif name is not None:
            steps.append(("name", name))
    return steps


def find(root: Any, path: str) -> Any:
    return _walk(root, parse_path(path))


def _walk(value: Any, steps: list[Step]) -> Any:
    for position, (kind, argument) in enumerate(steps):
        if kind == "each":
            return list(_found_in_each(value, steps[position + 1 :]))
        value = _step(value, kind, argument)
    return value


def _found_in_each(members: Any, rest: list[Step]) -> Iterator[Any]:
    if not isinstance(members, list):
        raise NothingThere
    for member in members:
        try:
            yield _walk(member, rest)
        except NothingThere:
            continue


def _step(value: Any, kind: str, argument: Any) -> Any:
    if kind == "name" and isinstance(value, dict) and argument in value:
        return value[argument]
    if kind == "index" and isinstance(value, list) and -len(value) <= argument < len(value):
        return value[argument]
    if kind == "length" and isinstance(value, (list, str, dict)):
        return len(value)
    if kind == "where" and isinstance(value, list):
        key, wanted = argument
        for member in value:
            if isinstance(member, dict) and key in member and _as_text(member[key]) == wanted:
                return member
    raise NothingThere


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else compact_json(value)


# --- operators ---------------------------------------------------------------------------------


def same(left: Any, right: Any) -> bool:
    """The same JSON value; numbers by value, and true is not 1."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, (int, Decimal)) and isinstance(right, (int, Decimal)):
        return left == right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[k], right[k]) for k in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return type(left) is type(right) and left == right


def contains(value: Any, part: Any) -> bool:
    if isinstance(value, str):
        return isinstance(part, str) and part in value
    if isinstance(value, list):
        return any(same(member, part) or _has_fields(member, part) for member in value)
    return _has_fields(value, part)


def _has_fields(value: Any, part: Any) -> bool:
    if not (isinstance(value, dict) and isinstance(part, dict)):
        return False
    return all(key in value and same(value[key], part[key]) for key in part)


def failure(assertion: dict[str, Any], root: Any) -> str | None:
    """None if the assertion holds, else one line that says what was expected and what was got."""
    op = assertion["op"]
    if op not in NEEDS_VALUE | {"absent"}:
        raise BadCase(f"unknown op {op!r}")
    try:
        got = find(root, assertion["path"])
    except NothingThere:
        return (
            None
            if op == "absent"
            else _reported(assertion, assertion.get("value"), "nothing at this path")
        )
    if op == "absent":
        return _reported(assertion, "", compact_json(got))
    if "value_path" in assertion:
        try:
            value = find(root, assertion["value_path"])
        except NothingThere:
            return _reported(assertion, assertion["value_path"], "nothing at value_path")
    else:
        value = assertion["value"]
    holds = {
        "equals": lambda: same(got, value),
        "contains": lambda: contains(got, value),
        "matches": lambda: re.search(value, _as_text(got), re.DOTALL) is not None,
    }[op]()
    return None if holds else _reported(assertion, value, compact_json(got))


def _reported(assertion: dict[str, Any], value: Any, got: str) -> str:
    expected = (
        assertion["op"] if assertion["op"] == "absent" else f"{assertion['op']} {_as_text(value)}"
    )
    attempt = f"[attempt {assertion['attempt']}]" if "attempt" in assertion else ""
    return f"{assertion['where']}{attempt} {assertion['path']}: expected {cut(expected)}, got {cut(got)}"


def cut(text: str, limit: int = 160) -> str:
    text = text.replace("\n", "\\n")
    return text if len(text) <= limit else f"{text[: limit - 30]} … ({len(text)} characters)"


# --- placeholders ------------------------------------------------------------------------------


def fill(value: Any, names: dict[str, Any], *, escape: bool = False) -> Any:
    """Placeholders replaced in every string of a value; `escape` for regular expressions."""
    if isinstance(value, dict):
        return {key: fill(member, names, escape=escape) for key, member in value.items()}
    if isinstance(value, list):
        return [fill(member, names, escape=escape) for member in value]
    if not isinstance(value, str):
        return value
    whole = PLACEHOLDER.fullmatch(value)
    if whole and not escape:
        return _named(whole, names)

    def text(found: re.Match[str]) -> str:
        replacement = _as_text(_named(found, names))
        return re.escape(replacement) if escape else replacement

    return PLACEHOLDER.sub(text, value)


def _named(found: re.Match[str], names: dict[str, Any]) -> Any:
    name, seconds = found.groups()
    if name not in names:
        raise BadCase(f"placeholder {found.group()} has no value")
    return names[name](int(seconds or 0)) if callable(names[name]) else names[name]


def fill_assertion(assertion: dict[str, Any], names: dict[str, Any]) -> dict[str, Any]:
    value = fill(assertion.get("value"), names, escape=assertion["op"] == "matches")
    return {**assertion, "value": value} if "value" in assertion else assertion
