"""The list of a server's models: how it is asked for, and what it says of each, whatever the server calls that.

Servers copy each other's list and add facts of their own under names of their own, so one reading takes all of them:
the names below, in this order. Read on 2026-11-29: pages of 1,000 at most with `after_id` (platform.claude.com,
Models), `pageSize` and `pageToken` (ai.google.dev, models.list); `max_input_tokens` and `max_tokens` (Anthropic),
`inputTokenLimit` and `outputTokenLimit` (Gemini), `top_provider` (openrouter.ai, TopProviderInfo).
"""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

import msgspec

from gwd.core.clock import US_PER_S, TimeError, us_from_iso
from gwd.core.target import Service, UpstreamCall
from gwd.core.vendor_format import ModelList
from gwd.vendors.base import UndecodableError
from gwd.vendors.call import configured_headers, credential_header, url_for
from gwd.vendors.faults import scrub
from gwd.vendors.second_reading import read_any
from gwd.vendors.structure import check_structure

MAX_NAME: Final = 256
MAX_TOKENS: Final = 1_000_000_000
PAGE: Final = 1_000
_ROWS: Final = ("data", "models")
_IDS: Final = ("id", "name", "model")
_NAMES: Final = ("display_name", "displayName", "name", "id")
_CONTEXTS: Final = (
    *("context_length", "context_window", "max_model_len", "max_context_length"),
    *("max_input_tokens", "inputTokenLimit"),
)
_OUTPUTS: Final = ("max_completion_tokens", "max_output_tokens", "outputTokenLimit", "max_tokens")
_OWNERS: Final = ("owned_by", "organization")
_MOMENTS: Final = ("created", "created_at")
_INNER: Final = ("top_provider", "metadata")
"""Objects within a model's that hold further facts."""

_EARLIEST_US: Final = us_from_iso("2015-01-01T00:00:00Z")
_LATEST_US: Final = us_from_iso("2100-01-01T00:00:00Z")


class _Way(msgspec.Struct, frozen=True, kw_only=True):
    """How one kind of server is asked: version of the path, query of a page, and the field of the next page's place."""

    version: str = "v1"
    version_is_last: bool = False
    page: str = ""
    place: str = ""
    headers: Mapping[str, str] = {}


_WAYS: Final[Mapping[ModelList, _Way]] = {
    "openai": _Way(),
    "anthropic": _Way(
        version_is_last=True,
        page=f"limit={PAGE}",
        place="after_id",
        headers={"anthropic-version": "2023-06-01"},
    ),
    "gemini": _Way(version="v1beta", page=f"pageSize={PAGE}", place="pageToken"),
}


class ListedModel(msgspec.Struct, frozen=True, kw_only=True):
    """What a server says of one of its models; None where it says nothing. `created_us` is since 1970."""

    id: str
    name: str
    context_length: int | None
    max_completion_tokens: int | None
    owned_by: str | None
    created_us: int | None


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of the list, and the place of the next one; None at the end."""

    models: list[ListedModel]
    next: str | None


def call_for(service: Service, place: str | None) -> UpstreamCall:
    """The call for a page of the list: the first, or the one at a place."""
    way = _WAYS[service.format.model_list]
    at = f"{way.place}={quote(place, safe='')}" if place is not None else ""
    return UpstreamCall(
        method="GET",
        url=url_for(
            service.base_url,
            "models",
            version=way.version,
            version_is_last=way.version_is_last,
            query="&".join(filter(None, (way.page, at))),
        ),
        headers={
            "accept": "application/json",
            **credential_header(service),
            **way.headers,
            **configured_headers(service),
        },
        body=b"",
        stream=False,
    )


def read_page(body: bytes, service: Service) -> Page:
    """Raises UndecodableError, or what is UNREADABLE, for what is no list of models."""
    check_structure(body)
    answer = read_any(body)
    rows = answer
    if isinstance(answer, Mapping):
        rows = next((answer[name] for name in _ROWS if isinstance(answer.get(name), list)), None)
    if not isinstance(rows, list):
        raise UndecodableError("it holds no list of models")
    models = [model for row in rows if (model := _model(row)) is not None]
    return Page(models=models, next=_next(answer, service))


def bare_id(name: str) -> str:
    """A model's name as lists and endpoints have it in common: Gemini's list puts its collection before it."""
    return name.removeprefix("models/")


def _next(answer: Any, service: Service) -> str | None:
    if not isinstance(answer, Mapping):
        return None
    place: object = None
    match service.format.model_list:
        case "anthropic":
            place = answer.get("last_id") if answer.get("has_more") is True else None
        case "gemini":
            place = answer.get("nextPageToken")
        case "openai":
            pass
    return place if isinstance(place, str) and place else None


def _model(row: object) -> ListedModel | None:
    """None for a row without a name that an endpoint could have."""
    if isinstance(row, str):
        row = {"id": row}
    if not isinstance(row, Mapping):
        return None
    found = next(filter(None, (_text(row.get(name)) for name in _IDS)), None)
    if found is None:
        return None
    facts = [row, *(inner for name in _INNER if isinstance(inner := row.get(name), Mapping))]
    return ListedModel(
        id=bare_id(found),
        name=bare_id(next(filter(None, (_text(row.get(name)) for name in _NAMES)), found)),
        context_length=_tokens(facts, _CONTEXTS),
        max_completion_tokens=_tokens(facts, _OUTPUTS),
        owned_by=next(filter(None, (_text(row.get(name)) for name in _OWNERS)), None),
        created_us=next(filter(None, (_moment(row.get(name)) for name in _MOMENTS)), None),
    )


def _text(value: object) -> str | None:
    if not isinstance(value, str) or not 0 < len(value) <= MAX_NAME:
        return None
    return value if value.isprintable() and scrub(value) == value else None


def _tokens(facts: list[Mapping[str, Any]], names: tuple[str, ...]) -> int | None:
    for fact in facts:
        for name in names:
            value = fact.get(name)
            if type(value) is int and 0 < value <= MAX_TOKENS:
                return value
    return None


def _moment(value: object) -> int | None:
    """Seconds since 1970 or a time with an offset; years in which there were no such models are placeholders."""
    at_us: int | None = None
    if type(value) in (int, float):
        at_us = int(min(max(float(value), 0), _LATEST_US) * US_PER_S)  # type: ignore[arg-type]
    elif isinstance(value, str):
        try:
            at_us = us_from_iso(value)
        except TimeError:
            return None
    return at_us if at_us is not None and _EARLIEST_US <= at_us < _LATEST_US else None
