"""What stands in the body of a failed answer, whatever format it claims to be of: one reading for all adapters.

Servers copy each other's addresses but not always each other's errors: Google's stand at its OpenAI-format address,
routers pass on what they were told, gateways in front answer in their own shape.
"""

from typing import Any, Final

import msgspec

from gwd.core.lenient_json import UNREADABLE
from gwd.vendors.second_reading import read_any

_MAX_TEXT: Final = 8_000
_DEPTH: Final = 4
# What the codes of a `base_resp` (MiniMax) stand for.
_BASE_STATUS: Final = {
    1001: 504,
    1002: 429,
    1004: 401,
    1008: 402,
    1026: 400,
    1039: 429,
    1041: 429,
    2013: 400,
    2049: 401,
    2056: 402,
}


class ErrorBody(msgspec.Struct, frozen=True, kw_only=True):
    """An error as it was told: its code, its type (or status word), its text, and all its fields.

    `readable` is whether the body was JSON at all: what stands in front of a vendor answers in its own form.
    """

    code: str | None = None
    kind: str | None = None
    message: str = ""
    fields: dict[str, Any] = {}
    readable: bool = True

    def named_status(self) -> int | None:
        """The HTTP status that an error inside an answer of status 200 names as its code."""
        for text in (_text(self.fields.get("http_code")), _text(self.fields.get("code"))):
            if text is not None and text.isdigit() and len(text) == 3 and 400 <= int(text) <= 599:
                return int(text)
        return None


def read(body: bytes) -> ErrorBody:
    """The error that a body holds; a body of another kind speaks for itself, a web page says nothing."""
    try:
        return of(read_any(body))
    except UNREADABLE:
        text = body[:_MAX_TEXT].decode("utf-8", "replace").strip()
        return ErrorBody(message="" if text.startswith("<") else text, readable=False)


def of(value: object) -> ErrorBody:
    """The error in a decoded value: bare, in a list, or under the names that servers give it."""
    outer: dict[str, Any] = {}
    for _ in range(_DEPTH):
        if isinstance(value, list) and value:
            value = next((item for item in value if isinstance(item, dict)), value[0])
        inner = _inner(value)
        if inner is None:
            break
        assert isinstance(value, dict)
        outer, value = value, inner
    if isinstance(value, str):
        value = {**outer, "message": value}
    if not isinstance(value, dict):
        return ErrorBody()
    code, word = _text(value.get("code")), value.get("status")
    word = word if isinstance(word, str) and not word.isdigit() else None
    if word and code is not None and code.isdigit():
        code = word  # Google's codes are statuses; its words say more
    kind = _text(value.get("type"))
    inner_code = value.get("innererror")
    if isinstance(inner_code, dict):
        kind = _text(inner_code.get("code")) or kind
    return ErrorBody(
        code=code or _text(value.get("error_code")),
        kind=(None if kind in ("error", "about:blank") else kind) or word,
        message=_message(value) or _message(outer),
        fields=value,
    )


def base_error(value: dict[str, Any]) -> dict[str, Any] | None:
    """A `base_resp` that tells of a failure, which comes with status 200, as an error object."""
    base = value.get("base_resp")
    if not isinstance(base, dict):
        return None
    code = base.get("status_code")
    if type(code) is not int or code == 0:
        return None
    return {"code": code, "http_code": _BASE_STATUS.get(code), "message": base.get("status_msg")}


def _inner(value: object) -> object | None:
    if not isinstance(value, dict):
        return None
    found = value.get("error") or value.get("errors") or base_error(value)
    return found if isinstance(found, dict | list | str) else None


def _message(error: dict[str, Any]) -> str:
    for name in ("message", "detail", "msg", "error_description", "title"):
        reported = error.get(name)
        if not reported:
            continue
        text = reported if isinstance(reported, str) else msgspec.json.encode(reported).decode()
        return text[:_MAX_TEXT]
    return ""


def _text(value: object) -> str | None:
    if isinstance(value, str):
        return value or None
    return str(value) if type(value) is int else None
