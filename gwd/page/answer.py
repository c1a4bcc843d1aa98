"""What the page answers: status, headers that every answer carries, and where the browser goes on."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

HTML: Final = "text/html; charset=utf-8"
SAFE: Final = {
    "content-security-policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self';"
        " form-action 'self'; frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'"
    ),
    "referrer-policy": "same-origin",  # with no-referrer a browser sends `Origin: null` with our own forms
    "x-content-type-options": "nosniff",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
PRIVATE: Final = SAFE | {"cache-control": "no-store"}
STATIC: Final = SAFE | {"cache-control": "public, max-age=31536000, immutable"}


class Sent(msgspec.Struct, frozen=True, kw_only=True):
    """An answer as HTTP has it."""

    status: int = 200
    body: bytes | str = b""
    content_type: str = HTML
    headers: Mapping[str, str] = {}


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """A page to be rendered: which template, with what. `title` replaces the table's."""

    template: str
    values: dict[str, Any] = {}
    title: str | None = None
    status: int = 200
    headers: Mapping[str, str] = {}


class Download(msgspec.Struct, frozen=True, kw_only=True):
    """A file instead of a page."""

    name: str
    content_type: str
    body: bytes


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """Something was done: the page below /app on which to go on, and the code of the sentence that says so there."""

    path: str
    did: str


def see_other(location: str, **headers: str) -> Sent:
    """The browser goes on with a GET."""
    return Sent(status=303, headers={"location": location} | headers)
