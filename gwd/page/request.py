"""What a browser sends, read strictly: forms, queries, where it comes from, where it wants to go on."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from gwd.core.errors import Forbidden, InvalidRequest, InvalidValue, UnsupportedMediaType

MAX_FORM_BYTES: Final = 64 * 1024
MAX_FIELDS: Final = 200
MAX_DIGITS: Final = 15
FORM: Final = "application/x-www-form-urlencoded"
CSRF: Final = "csrf"
AGAIN: Final = "again_key"
USER_NAME: Final = "username"  # there for password managers

_PLAIN_PATH: Final = re.compile(r"[\x21-\x7e]+")


class Stranger(Forbidden):
    """A form that does not come from a page of ours."""


class Field(msgspec.Struct, frozen=True):
    """A field of a form: as often as it may be sent, and how long it may be."""

    name: str
    most: int = 2_000
    is_many: bool = False


class Form(msgspec.Struct, frozen=True):
    """The fields of a form that were sent."""

    texts: Mapping[str, tuple[str, ...]]

    def text(self, name: str) -> str:
        """Without blanks around it; empty where it was not sent."""
        return next(iter(self.texts.get(name, ())), "").strip()

    def or_none(self, name: str) -> str | None:
        return self.text(name) or None

    def whole(self, name: str) -> int | None:
        """A whole number; None where nothing was typed. Raises the InvalidValue that names the field."""
        text = self.text(name)
        if not text:
            return None
        if not (text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS):
            raise InvalidValue(f"`{name}` must be a whole number such as 600", param=name)
        return int(text)

    def wholes(self, name: str) -> list[int]:
        """Whole numbers in one field, parted by commas or blanks. Raises the InvalidValue that names the field."""
        words = self.names(name)
        if not all(word.isascii() and word.isdigit() and len(word) <= MAX_DIGITS for word in words):
            raise InvalidValue(f"`{name}` must be whole numbers such as 50, 80, 100", param=name)
        return [int(word) for word in words]

    def flag(self, name: str) -> bool:
        return bool(self.text(name))

    def many(self, name: str) -> list[str]:
        return [text.strip() for text in self.texts.get(name, ()) if text.strip()]

    def names(self, name: str) -> list[str]:
        """A list in one field: parted by commas, blanks or lines."""
        return [word for word in re.split(r"[\s,]+", self.text(name)) if word]


def form(body: bytes, content_type: str, fields: Sequence[Field]) -> Form:
    """A form as it was sent. Raises the 400 that names what is wrong."""
    if body and content_type.partition(";")[0].strip().lower() != FORM:
        raise UnsupportedMediaType(f"a form is sent as {FORM}")
    if len(body) > MAX_FORM_BYTES:
        raise InvalidRequest(f"the form is larger than {MAX_FORM_BYTES} bytes; send less")
    try:
        pairs = parse_qsl(
            body.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=bool(body),
            max_num_fields=MAX_FIELDS,
            errors="strict",
        )
    except ValueError:  # decoding errors are some, too
        raise InvalidRequest("the form cannot be read; reload the page and send it again") from None
    known = {field.name: field for field in fields}
    return Form(_texts(pairs, known, "field"))


def query(raw: str, fields: Sequence[Field]) -> Form:
    """The query of a page. Raises the 400 that names what is wrong."""
    try:
        pairs = parse_qsl(raw, keep_blank_values=True, max_num_fields=MAX_FIELDS, errors="strict")
    except ValueError:
        raise InvalidRequest("the address cannot be read; open the page anew") from None
    known = {field.name: field for field in fields}
    return Form(_texts(pairs, known, "parameter"))


def require_ours(headers: Mapping[str, str], app_url: str) -> None:
    """A POST comes from a page of this origin. Raises Stranger."""
    site = headers.get("sec-fetch-site")
    if site is not None:
        if site != "same-origin":
            raise Stranger(
                "this form was not sent from a page of this gateway; nothing was changed"
            )
        return
    origin = headers.get("origin", "")
    host = urlsplit(origin).netloc if origin.startswith(("http://", "https://")) else ""
    if not host or host.lower() not in (headers.get("host", "").lower(), urlsplit(app_url).netloc):
        raise Stranger(
            "this form does not say that it comes from this gateway; nothing was changed"
        )


def next_path(text: str, root: str) -> str:
    """Where to go on after signing in: a page of ours, or the first one."""
    first = f"{root}/"
    if not text.startswith(first) or _PLAIN_PATH.fullmatch(text) is None:
        return first
    plain = unquote(text, errors="replace")
    if "\\" in plain or "//" in plain or not plain.isprintable():
        return first
    if any(part in (".", "..") for part in plain.split("?")[0].split("/")):
        return first
    return text


def _texts(
    pairs: Iterable[tuple[str, str]], known: Mapping[str, Field], what: str
) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for name, text in pairs:
        field = known.get(name)
        if field is None:
            raise InvalidRequest(f"this page knows no {what} `{name[:50]}`", param=name[:50])
        if name in found and not field.is_many:
            raise InvalidRequest(f"the {what} `{name}` was sent twice", param=name)
        if len(text) > field.most:
            raise InvalidValue(
                f"`{name}` has {len(text):,} characters; at most {field.most:,} are taken",
                param=name,
            )
        found[name] = (*found.get(name, ()), text)
    return found
