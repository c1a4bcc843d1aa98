"""What an expression of PromQL asks for: its metrics, the labels it picks by, the labels it groups by.

No evaluation: enough to hold rules and dashboards against the metrics that exist. `promtool`, if there, does the rest.
"""

import re

import msgspec

_STRING = r'"(?:[^"\\]|\\.)*"'
_SELECTOR = re.compile(rf"\b([a-z_:][\w:]*)\s*\{{((?:[^{{}}\"]|{_STRING})*)\}}")
_MATCHER = re.compile(rf"\s*(\w+)\s*(=~|!~|!=|=)\s*({_STRING})\s*(?:,|$)")
_GROUPING = re.compile(r"\b(?:by|on|without|ignoring|group_left|group_right)\s*\(([\w\s,]*)\)")
_RANGE = re.compile(r"\[(?:\d+(?:ms|[smhdwy])|\$__rate_interval)\]")
_CALL = re.compile(r"\b([a-z_]\w*)\s*(?=\()")
_NUMBER = re.compile(r"\b\d+(?:\.\d+)?(?:e\d+)?\b")
_NAME = re.compile(r"\b[a-z_][\w:]*")
_WORDS = {"and", "or", "unless", "bool"}
_FUNCTIONS = {
    *("sum", "min", "max", "count", "avg", "rate", "increase", "changes", "vector"),
    "histogram_quantile",
}


class Matcher(msgspec.Struct, frozen=True):
    """`label` `operator` one of `values`: the alternatives of a plain pattern."""

    label: str
    operator: str
    values: tuple[str, ...]


class Asked(msgspec.Struct, frozen=True):
    """What an expression asks for; a metric without braces has no matchers."""

    metrics: dict[str, list[Matcher]]
    grouped_by: set[str]


def read(expression: str) -> Asked:
    """Raises ValueError for what is not PromQL as it is used here."""
    rest = _RANGE.sub(" ", expression)
    metrics: dict[str, list[Matcher]] = {}

    def selector(found: re.Match[str]) -> str:
        metrics.setdefault(found[1], []).extend(_matchers(found[2]))
        return " 1 "

    rest = _SELECTOR.sub(selector, rest)
    grouped_by = {
        label.strip() for labels in _GROUPING.findall(rest) for label in labels.split(",")
    }
    rest = _GROUPING.sub(" ", rest)
    unknown = set(_CALL.findall(rest)) - _FUNCTIONS - _WORDS
    if unknown:
        raise ValueError(f"no function {', '.join(sorted(unknown))}: {expression}")
    rest = _NUMBER.sub(" ", rest)
    for name in _NAME.findall(rest):
        if name not in _FUNCTIONS | _WORDS:
            metrics.setdefault(name, [])
    rest = _NAME.sub(" ", rest)
    if re.sub(r"[-+*/<>=!,()\s]", "", rest) or rest.count("(") != rest.count(")"):
        raise ValueError(f"not understood: {expression}")
    return Asked(metrics, grouped_by - {""})


def _matchers(text: str) -> list[Matcher]:
    found, end = [], 0
    for match in _MATCHER.finditer(text):
        if match.start() != end:
            break
        end = match.end()
        values = match[3][1:-1]
        is_pattern = match[2] in ("=~", "!~")
        found.append(
            Matcher(match[1], match[2], tuple(values.split("|") if is_pattern else [values]))
        )
    if text[end:].strip():
        raise ValueError(f"no matchers: {text}")
    return found
