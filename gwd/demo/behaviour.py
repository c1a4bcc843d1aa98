"""What the vendor does wrong, or differently, in one call; and how that is written inside a prompt.

`parse("status=429 retry_after=3")` and `parse("error=overloaded error_after=4")` read the text between
`[[fault:` and `]]`, of the header `x-demo-fault`, or after `#` in a model's name (there commas may stand for
blanks). A word without `=` is one of FLAGS. Events are counted from 1 in the order they are sent; BEFORE_HEADERS
in place of a count means before the status line.
"""

import re
import shlex
from typing import Final, Literal

import msgspec

BEFORE_HEADERS: Final = -1

UsageKind = Literal[
    "honest",
    "missing",
    "null",
    "zero",
    "negative",
    "string",
    "float",
    "boolean",
    "huge",
    "cached_over_prompt",
    "reasoning_over_completion",
    "wrong_total",
    "every_event",
    "twice",
]
ErrorKind = Literal["server_error", "overloaded", "rate_limit", "quota", "invalid_request"]
Malformed = Literal[
    "bad_json",
    "html",
    "json_for_stream",
    "stream_for_json",
    "empty_body",
    "wrong_shape",
    "big_line",
]


class BehaviourError(ValueError):
    """The text does not describe a behaviour; the message names the word and the remedy."""


class PlannedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call the answer shall hold; `arguments` is sent as it is, valid JSON or not."""

    name: str
    arguments: str = "{}"


class Behaviour(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One call's deviation from the honest answer; without arguments there is none."""

    # An answer of another status. `body` (text) or `body_bytes` replaces the vendor's own error body.
    status: int | None = None
    message: str | None = None
    code: str | None = None
    error_type: str | None = None
    retry_after: str | None = None
    headers: dict[str, str] = {}
    body: str | None = None
    body_bytes: bytes | None = None
    content_type: str | None = None

    # Time, in seconds.
    delay_s: float = 0.0
    first_event_delay_s: float = 0.0
    event_delay_s: float = 0.0
    tokens_per_second: float | None = None
    stall_after: int | None = None

    # The connection and the bytes on it.
    cut: Literal["close", "reset", "end"] | None = None
    cut_after: int = 1
    write_bytes: int = 0
    write_delay_s: float = 0.0
    line_ending: Literal["lf", "crlf", "cr"] = "lf"
    comments: bool = False
    bom: bool = False
    space: bool = True
    multi_line: bool = False
    odd_json: bool = False

    # What the answer says.
    malformed: Malformed | None = None
    malformed_after: int = 1
    error: ErrorKind | None = None
    error_after: int = 0
    usage: UsageKind = "honest"
    usage_object: dict[str, object] | None = None
    finish: str = "honest"
    done: bool = True
    empty: bool = False
    interleave: bool = False
    index_zero: bool = False
    redacted: bool = False

    # What the answer holds.
    text: str | None = None
    reasoning: str | None = None
    tokens: int | None = None
    calls: tuple[PlannedCall, ...] | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    cache_write_1h_tokens: int | None = None
    reasoning_tokens: int | None = None

    # Which calls: the first `times` that carry these words, or only those to one model.
    times: int | None = None
    only_model: str | None = None


HONEST: Final = Behaviour()

FLAGS: Final[dict[str, dict[str, object]]] = {
    "rate_limited": {"status": 429, "retry_after": "3"},
    "quota": {"status": 429, "code": "insufficient_quota"},
    "overloaded": {"status": 529},
    "server_error": {"status": 500},
    "cut_before_headers": {"cut": "close", "cut_after": BEFORE_HEADERS},
    "reset_before_headers": {"cut": "reset", "cut_after": BEFORE_HEADERS},
    "cut": {"cut": "close"},
    "reset": {"cut": "reset"},
    "truncate": {"cut": "end"},
    "stall": {"stall_after": 1},
    "stall_before_headers": {"stall_after": BEFORE_HEADERS},
    "stall_before_first_event": {"stall_after": 0},
    "drip": {"write_bytes": 1, "write_delay_s": 0.05},
    "one_byte": {"write_bytes": 1},
    "crlf": {"line_ending": "crlf"},
    "cr": {"line_ending": "cr"},
    "comments": {"comments": True},
    "bom": {"bom": True},
    "no_space": {"space": False},
    "multi_line": {"multi_line": True},
    "odd_json": {"odd_json": True},
    "bad_json": {"malformed": "bad_json"},
    "html": {"malformed": "html"},
    "json_for_stream": {"malformed": "json_for_stream"},
    "stream_for_json": {"malformed": "stream_for_json"},
    "empty_body": {"malformed": "empty_body"},
    "wrong_shape": {"malformed": "wrong_shape"},
    "big_line": {"malformed": "big_line"},
    "error_first": {"error": "server_error", "error_after": 0},
    "error_mid_stream": {"error": "server_error", "error_after": 4},
    "overloaded_first": {"error": "overloaded", "error_after": 0},
    "overloaded_mid_stream": {"error": "overloaded", "error_after": 4},
    "no_usage": {"usage": "missing"},
    "zero_usage": {"usage": "zero"},
    "no_done": {"done": False},
    "no_finish": {"finish": "none"},
    "empty": {"empty": True},
    "refusal": {"finish": "refusal"},
    "content_filter": {"finish": "content_filter"},
    "interleave": {"interleave": True},
    "index_zero": {"index_zero": True},
    "redacted": {"redacted": True},
    "once": {"times": 1},
}
# Not to be written in a prompt: they are objects or bytes.
_IN_CODE_ONLY = frozenset({"headers", "body_bytes", "usage_object", "calls"})
_DIRECTIVE = re.compile(r"\[\[fault:(.*?)\]\]", re.DOTALL)


def parse(text: str) -> Behaviour:
    """The behaviour a text describes; raises BehaviourError."""
    fields: dict[str, object] = {}
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise BehaviourError(f"fault {text!r}: {error}; put values with blanks in quotes") from None
    for word in words:
        name, equals, value = word.partition("=")
        if equals:
            if name in _IN_CODE_ONLY or name not in Behaviour.__struct_fields__:
                raise BehaviourError(f"fault: {name!r} is not known; known are {_known_names()}")
            fields[name] = value
        elif name in FLAGS:
            fields.update(FLAGS[name])
        else:
            raise BehaviourError(f"fault: {name!r} is no flag; flags are {', '.join(FLAGS)}")
    try:
        return msgspec.convert(fields, Behaviour, strict=False)
    except msgspec.ValidationError as error:
        raise BehaviourError(f"fault {text!r}: {error}") from None


def directive_in(text: str) -> str | None:
    """The words between `[[fault:` and `]]`, if the text has such a place."""
    found = _DIRECTIVE.search(text)
    return found[1].strip() if found else None


def _known_names() -> str:
    return ", ".join(name for name in Behaviour.__struct_fields__ if name not in _IN_CODE_ONLY)
