"""Errors in OpenAPI: which codes a status has, and the envelope of each dialect that carries them."""

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from gwd.core import errors
from gwd.core.errors import GatewayError

Json = dict[str, Any]
References = dict[Any, Json]

_ABOUT: Final[dict[int | str, str]] = {
    "4XX": "The vendor refused the request, in its own words and with its own status.",
    400: "The request is wrong; the error names the field and what would do.",
    401: "No key, or none that works.",
    402: "The money is not there: credit, a key's limit or a budget is used up. Nothing was charged.",
    403: "The key is good, and may not do this.",
    404: "No such thing, or another organization's.",
    405: "The path does not take that method; `Allow` names those that it takes.",
    408: "The request took too long to arrive.",
    409: "The state does not allow it; the same request will fail again.",
    413: "The body or the head is too large.",
    415: "The body is not JSON, or is compressed in a way that is not understood.",
    422: "The vendor could not process the request, in its own words.",
    429: "Too many at once or in a minute; `retry-after` says when to come back.",
    500: "The gateway's fault; its log has the request id.",
    502: "The vendors failed to answer.",
    503: "Not now: no endpoint is free, the gateway is stopping, or its disk fails.",
}
OTHER_REFUSAL: Final = "4XX"
EVERY_REQUEST: Final = (400, 408, 413, 415, 500, 503)
EVERY_KEY: Final = (401, 403, 429)


class ErrorDetail(msgspec.Struct, frozen=True, kw_only=True):
    """What went wrong, and what would fix it."""

    type: Annotated[str, Meta(description="The kind of error; every code has one.")]
    code: Annotated[str, Meta(description="The code to branch on. Codes keep their meaning.")]
    message: Annotated[str, Meta(description="A sentence for people. Its wording may change.")]
    param: Annotated[
        str | None,
        Meta(description="The field or query parameter that is wrong; null where it is none."),
    ]
    status: Annotated[int, Meta(description="The HTTP status once more.")]
    metadata: Annotated[dict[str, Any], Meta(description="More about the error; often empty.")]


class ErrorEnvelope(msgspec.Struct, frozen=True):
    """The body of every error outside the dialects messages and gemini."""

    error: Annotated[ErrorDetail, Meta(description="The error.")]


class MessagesErrorDetails(msgspec.Struct, frozen=True, kw_only=True):
    """What this dialect's SDK offers to branch on."""

    error_code: Annotated[str, Meta(description="The gateway's code, as in the other dialects.")]
    param: Annotated[
        str | UnsetType, Meta(description="The field that is wrong, where it is one.")
    ] = UNSET


class MessagesErrorDetail(msgspec.Struct, frozen=True, kw_only=True):
    """What went wrong, and what would fix it."""

    type: Annotated[str, Meta(description="The kind of error in this dialect's words.")]
    message: Annotated[str, Meta(description="A sentence for people. Its wording may change.")]
    details: Annotated[MessagesErrorDetails, Meta(description="The code, and the field.")]
    metadata: Annotated[
        dict[str, Any] | UnsetType, Meta(description="More about the error, where there is more.")
    ] = UNSET


class MessagesErrorEnvelope(msgspec.Struct, frozen=True, kw_only=True):
    """The body of an error in the messages dialect."""

    type: Annotated[Literal["error"], Meta(description="Always `error`.")]
    error: Annotated[MessagesErrorDetail, Meta(description="The error.")]
    request_id: Annotated[str, Meta(description="The request, as in the header x-request-id.")]


class GeminiErrorDetail(msgspec.Struct, frozen=True, kw_only=True):
    """What went wrong, and what would fix it."""

    code: Annotated[int, Meta(description="The HTTP status once more.")]
    message: Annotated[str, Meta(description="A sentence for people. Its wording may change.")]
    status: Annotated[
        str, Meta(description="Google's word for the status, such as INVALID_ARGUMENT.")
    ]
    details: Annotated[
        list[dict[str, Any]],
        Meta(
            description="By `@type`: ErrorInfo, whose `reason` is the gateway's code; BadRequest, which names the"
            " field; RetryInfo, which says how long to wait."
        ),
    ]
    metadata: Annotated[
        dict[str, Any] | UnsetType, Meta(description="More about the error, where there is more.")
    ] = UNSET


class GeminiErrorEnvelope(msgspec.Struct, frozen=True, kw_only=True):
    """The body of an error in Google's dialect."""

    error: Annotated[GeminiErrorDetail, Meta(description="The error.")]


GeminiStreamErrorEnvelope: Any = GeminiErrorEnvelope | list[GeminiErrorEnvelope]
"""Of a stream without `alt=sse` it is an array of one."""
_NAMES: Final[dict[Any, str]] = {
    ErrorEnvelope: "Error",
    MessagesErrorEnvelope: "MessagesError",
    GeminiErrorEnvelope: "GeminiError",
    GeminiStreamErrorEnvelope: "GeminiStreamError",
}


def types() -> list[Any]:
    """The envelopes."""
    return [*_NAMES]


@cache
def codes() -> dict[int | str, tuple[str, ...]]:
    """Every code of the gateway by its status."""
    found: dict[int | str, set[str]] = {OTHER_REFUSAL: {errors.UpstreamRefused.code}}
    for kind in _all(GatewayError):
        found.setdefault(kind.status, set()).add(kind.code)
    # The vendor's own refusals are passed on with their status.
    found.setdefault(422, set()).add("unprocessable")
    return {status: tuple(sorted(each)) for status, each in found.items()}


def components(references: References) -> dict[str, Json]:
    """Every error answer, once for each envelope."""
    return {
        f"{name}{status}": _response(status, references[envelope])
        for envelope, name in _NAMES.items()
        for status in codes()
    }


def responses(numbers: Iterable[int | str], *, envelope: Any = ErrorEnvelope) -> dict[str, Json]:
    """The error answers of an operation by status."""
    return {
        str(number): {"$ref": f"#/components/responses/{_NAMES[envelope]}{number}"}
        for number in sorted(set(numbers), key=str)
    }


def _response(status: int | str, schema: Json) -> Json:
    response: Json = {
        "description": f"{_ABOUT[status]} Codes: {', '.join(codes()[status])}.",
        "content": {"application/json": {"schema": schema}},
    }
    if status in (429, 503):
        response["headers"] = {
            "retry-after": {
                "description": "Seconds to wait, where a time is known.",
                "schema": {"type": "integer"},
            }
        }
    return response


def _all(kind: type[GatewayError]) -> Iterator[type[GatewayError]]:
    yield kind
    for below in kind.__subclasses__():
        if below is not errors.UpstreamRefused:
            yield from _all(below)
