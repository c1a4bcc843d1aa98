"""The gateway's own request fields and headers, read the same way in every dialect."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal, TypeVar

import msgspec
from msgspec import Meta

from gwd.core import tags
from gwd.core.errors import InvalidValue, MissingParameter
from gwd.core.request import Embed, Preferences, Request, Sender

MAX_MODELS: Final = 4
MAX_NAME: Final = 256

AnyRequest = TypeVar("AnyRequest", bound=Request)


class SortWire(msgspec.Struct, frozen=True):
    by: Annotated[
        Literal["price", "throughput", "latency"] | None,
        Meta(description="By what endpoints are tried in order."),
    ] = None
    partition: Annotated[
        Literal["model", "none"],
        Meta(
            description="`model` sorts the endpoints of each model by themselves, `none` those of all models together."
        ),
    ] = "model"


# Each name is looked for at every endpoint.
Names = Annotated[list[Annotated[str, Meta(max_length=MAX_NAME)]], Meta(max_length=100)]


class ProviderWire(msgspec.Struct, frozen=True):
    """The `provider` object; unknown fields are ignored."""

    order: Annotated[
        Names | None,
        Meta(
            description="Providers to try first, in this order, by slug, name or an endpoint's tag. Here and below a"
            " name that the catalog does not have is refused."
        ),
    ] = None
    only: Annotated[Names | None, Meta(description="The only providers that may serve.")] = None
    ignore: Annotated[Names | None, Meta(description="Providers that may not serve.")] = None
    allow_fallbacks: Annotated[
        bool | None, Meta(description="False tries the first endpoint and no other.")
    ] = None
    sort: Annotated[
        Literal["price", "throughput", "latency"] | SortWire | None,
        Meta(description="By what endpoints are tried in order."),
    ] = None
    require_parameters: Annotated[
        bool | None,
        Meta(
            description="True leaves out endpoints that do not take every parameter of the request."
        ),
    ] = None
    data_collection: Annotated[
        Literal["allow", "deny"] | None,
        Meta(description="`deny` leaves out endpoints that are flagged as training on inputs."),
    ] = None


class UsageWire(msgspec.Struct, frozen=True):
    include: Annotated[
        bool | None, Meta(description="True puts the cost into the answer's usage.")
    ] = None


ModelName = Annotated[
    str,
    Meta(
        description="The model: its id, such as openai/gpt-5, or an alias. Without one, and without `models`, that of"
        " the key's workspace."
    ),
]
ModelNames = Annotated[
    list[str],
    Meta(
        description="Models in the order in which they are tried, four in all; the first that can serve does. A name"
        " that is no model's is refused."
    ),
]
Streamed = Annotated[bool, Meta(description="True answers as a stream of events.")]
Preferred = Annotated[
    ProviderWire | None, Meta(description="Which endpoints may serve, in which order.")
]
Shown = Annotated[UsageWire | None, Meta(description="What the answer shall say of its cost.")]
SessionId = Annotated[
    str, Meta(description="Your name of the session, for the records; at most 256 characters.")
]
User = Annotated[
    str,
    Meta(description="Your name of whoever asks, for the records; at most 256 characters."),
]
Metadata = Annotated[
    Any,
    Meta(
        description="Pairs of your own. Its `tags`, a text with commas between or a list of texts, are the request's"
        " tags, for reports and budgets: at most eight of 64 characters each. They win over the header `x-gw-tags`."
    ),
]


def models_of(model: str | None, models: Sequence[str] | None) -> tuple[str, ...]:
    """The primary model and the fallbacks without duplicates; empty if none is named."""
    named = list(dict.fromkeys([*([model] if model else []), *(models or ())]))
    if len(named) > MAX_MODELS:
        raise InvalidValue(f"`models`: at most {MAX_MODELS} models in all", param="models")
    if any(len(name) > MAX_NAME for name in named):
        raise InvalidValue(f"`model`: a name has at most {MAX_NAME} characters", param="model")
    if not all(named):
        raise InvalidValue("`models` must not hold empty names", param="models")
    return tuple(named)


def with_model(request: AnyRequest, default: str | None) -> AnyRequest:
    """The request, with the default model where it names none and wants text. Raises MissingParameter without one."""
    if request.models:
        return request
    if default is None or isinstance(request.body, Embed):
        raise MissingParameter(
            "`model` is required: name a model such as openai/gpt-5", param="model"
        )
    return msgspec.structs.replace(request, models=(default,))


def preferences_of(provider: ProviderWire | None) -> Preferences:
    if provider is None:
        return _DEFAULT
    sort = provider.sort if isinstance(provider.sort, SortWire) else SortWire(by=provider.sort)
    return Preferences(
        order=tuple(provider.order or ()),
        only=tuple(provider.only or ()),
        ignore=tuple(provider.ignore or ()),
        allow_fallbacks=provider.allow_fallbacks is not False,
        sort=sort.by,
        partition=sort.partition,
        require_parameters=provider.require_parameters is True,
        data_collection=provider.data_collection or "allow",
    )


def sender_of(
    headers: Mapping[str, str],
    *,
    session_id: str | None = None,
    user: str | None = None,
    metadata: object = None,
) -> Sender:
    """Who the client says it is; a body field wins over its header.

    Raises InvalidValue above 256 characters, and for tags that are none.
    """
    for name, value in (("session_id", session_id), ("user", user)):
        if value is not None and len(value) > MAX_NAME:
            raise InvalidValue(f"`{name}` must be at most {MAX_NAME} characters", param=name)
    return Sender(
        session_id=session_id or _header(headers, "x-gw-session-id"),
        user_id=user or _header(headers, "x-gw-user-id"),
        referer=_header(headers, "http-referer"),
        title=_header(headers, "x-title"),
        tags=_tags(headers, metadata),
    )


def wants_receipt(headers: Mapping[str, str]) -> bool:
    """X-GW-Metadata: enabled."""
    return headers.get("x-gw-metadata", "").strip().lower() == "enabled"


def wants_cost(usage: UsageWire | None) -> bool:
    return usage is not None and usage.include is True


def clean_text(text: str) -> str:
    """Text fit for a record: no control characters, no lone surrogates, at most 256 characters."""
    printable = "".join(c for c in text if c.isprintable())
    return printable.encode("utf-8", "replace").decode("utf-8")[:MAX_NAME]


def _tags(headers: Mapping[str, str], metadata: object) -> tuple[str, ...]:
    if isinstance(metadata, dict) and (given := metadata.get("tags")) is not None:
        return _tags_of_body(given)
    text = headers.get("x-gw-tags")
    return tags.from_text(text, param="x-gw-tags") if text else ()


def _tags_of_body(given: object) -> tuple[str, ...]:
    param = "metadata.tags"
    if isinstance(given, str):
        return tags.from_text(given, param=param)
    if isinstance(given, list) and all(isinstance(word, str) for word in given):
        return tags.checked(given, param=param)
    raise InvalidValue(
        f"`{param}` must be a text with commas between the tags, or a list of texts", param=param
    )


def _header(headers: Mapping[str, str], name: str) -> str | None:
    value = headers.get(name)
    return clean_text(value) or None if value else None


_DEFAULT: Final = Preferences()
