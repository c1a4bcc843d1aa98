"""What the management API takes for providers, models and endpoints, and the rules their fields must meet."""

import re
from collections.abc import Collection
from decimal import Decimal
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, UnsetType

from gwd.catalog.fields import (
    ALIAS,
    LEAST_WEIGHT,
    MAX_NAME,
    MAX_WEIGHT,
    MODEL,
    SLUG,
    TAG,
    Accept,
    Adapter,
    Aliases,
    AuthInput,
    BaseUrl,
    CompletionTokens,
    ContextLength,
    DefaultTokens,
    Deprecated,
    Description,
    Disabled,
    Effective,
    Family,
    FlagsInput,
    Headers,
    InputModalities,
    ModelId,
    ModelPricing,
    Moderated,
    Name,
    OutputModalities,
    OwnBaseUrl,
    OwnCompletionTokens,
    OwnContextLength,
    OwnParameters,
    OwnPricing,
    Parameters,
    Released,
    Retired,
    Slug,
    Successor,
    Tag,
    Tiers,
    UpstreamModel,
    Vendor,
    Weight,
)
from gwd.catalog.price_body import Pricing
from gwd.core.clock import TimeError, us_from_iso
from gwd.core.errors import InvalidValue
from gwd.core.secret_patterns import holds_a_credential, looks_like_a_credential
from gwd.core.target import Flags
from gwd.core.web_address import WebAddressError, read_web_address, written_out

_HEADER: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_FIELD_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,63}", re.ASCII)
_NEEDED_FIELDS: Final = frozenset(
    ("model", "messages", "input", "stream", "max_tokens", "max_completion_tokens")
)
_FRAMING_HEADERS: Final = frozenset(
    (
        *("host", "connection", "keep-alive", "proxy-connection", "upgrade", "te", "trailer"),
        *("transfer-encoding", "content-length", "content-encoding", "content-type", "expect"),
        *("accept", "accept-encoding", "http2-settings"),
    )
)
MAX_FIRST_EVENT_S: Final = 3_600
MAX_HEADER: Final = 4_096


class _Input(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A strict body: an unknown field is the client's typo and is named."""


class ProviderInput(_Input, frozen=True):
    """A new provider: whom calls go to, and in which format."""

    slug: Slug
    name: Name
    adapter: Adapter
    base_url: BaseUrl
    auth: AuthInput | UnsetType = UNSET
    headers: Headers = {}
    flags: FlagsInput = {}
    disabled: Disabled = False


class ProviderPatch(_Input, frozen=True):
    """Changes of a provider: absent is unchanged, null clears."""

    name: Name | UnsetType = UNSET
    adapter: Adapter | UnsetType = UNSET
    base_url: BaseUrl | UnsetType = UNSET
    auth: AuthInput | UnsetType = UNSET
    headers: Headers | UnsetType | None = UNSET
    flags: FlagsInput | UnsetType | None = UNSET
    disabled: Disabled | UnsetType = UNSET


class ModelInput(_Input, frozen=True):
    """A new model, as clients can ask for it."""

    id: ModelId
    name: Name
    vendor: Vendor
    context_length: ContextLength
    max_completion_tokens: CompletionTokens
    supported_parameters: Parameters
    input_modalities: InputModalities = msgspec.field(default_factory=lambda: ["text"])
    output_modalities: OutputModalities = msgspec.field(default_factory=lambda: ["text"])
    pricing: ModelPricing = None
    pricing_tiers: Tiers = []
    description: Description | None = None
    family: Family | None = None
    aliases: Aliases = []
    default_max_tokens: DefaultTokens | None = None
    is_moderated: Moderated = False
    released_at: Released | None = None
    deprecated_at: Deprecated | None = None
    retired_at: Retired | None = None
    successor: Successor | None = None
    accept: Accept = False


class ModelPatch(_Input, frozen=True):
    """Changes of a model: absent is unchanged, null clears. Prices are never edited: a new version is added.

    A price that looks like a slip (more than tenfold, above 0.001 USD a token) is taken only with `accept`.
    """

    name: Name | UnsetType = UNSET
    vendor: Vendor | UnsetType = UNSET
    context_length: ContextLength | UnsetType = UNSET
    max_completion_tokens: CompletionTokens | UnsetType = UNSET
    supported_parameters: Parameters | UnsetType = UNSET
    input_modalities: InputModalities | UnsetType = UNSET
    output_modalities: OutputModalities | UnsetType = UNSET
    pricing: Annotated[
        Pricing | UnsetType, Meta(description="New prices, where no endpoint has its own.")
    ] = UNSET
    pricing_tiers: Tiers | UnsetType | None = UNSET
    effective_at: Effective | UnsetType = UNSET
    description: Description | UnsetType | None = UNSET
    family: Family | UnsetType | None = UNSET
    aliases: Aliases | UnsetType | None = UNSET
    default_max_tokens: DefaultTokens | UnsetType | None = UNSET
    is_moderated: Moderated | UnsetType = UNSET
    released_at: Released | UnsetType | None = UNSET
    deprecated_at: Deprecated | UnsetType | None = UNSET
    retired_at: Retired | UnsetType | None = UNSET
    successor: Successor | UnsetType | None = UNSET
    accept: Accept = False


class EndpointInput(_Input, frozen=True):
    """A new endpoint: a model as one provider serves it."""

    model: Annotated[str, Meta(description="The model, by id.")]
    provider: Annotated[str, Meta(description="The provider, by slug.")]
    upstream_model: UpstreamModel
    tag: Annotated[
        Tag | None,
        Meta(
            description="The endpoint's name in requests and records. Null is the provider's slug."
        ),
    ] = None
    base_url: OwnBaseUrl | None = None
    pricing: OwnPricing = None
    pricing_tiers: Tiers = []
    context_length: OwnContextLength | None = None
    max_completion_tokens: OwnCompletionTokens | None = None
    supported_parameters: OwnParameters | None = None
    flags: FlagsInput = {}
    weight: Weight = Decimal(1)
    disabled: Disabled = False
    accept: Accept = False


class EndpointPatch(_Input, frozen=True):
    """Changes of an endpoint: absent is unchanged, null clears. Prices as of a model; null goes back to the model's."""

    upstream_model: UpstreamModel | UnsetType = UNSET
    tag: Tag | UnsetType = UNSET
    base_url: OwnBaseUrl | UnsetType | None = UNSET
    pricing: OwnPricing | UnsetType = UNSET
    pricing_tiers: Tiers | UnsetType | None = UNSET
    effective_at: Effective | UnsetType = UNSET
    context_length: OwnContextLength | UnsetType | None = UNSET
    max_completion_tokens: OwnCompletionTokens | UnsetType | None = UNSET
    supported_parameters: OwnParameters | UnsetType | None = UNSET
    flags: FlagsInput | UnsetType | None = UNSET
    weight: Weight | UnsetType = UNSET
    disabled: Disabled | UnsetType = UNSET
    accept: Accept = False


def check_slug(value: str) -> str:
    if len(value) > MAX_NAME or not SLUG.fullmatch(value):
        raise InvalidValue(
            "`slug` must be lower-case letters, digits and single hyphens, for example openai",
            param="slug",
        )
    return value


def check_model_id(value: str) -> str:
    if len(value) > MAX_NAME or not MODEL.fullmatch(value):
        raise InvalidValue("`id` must look like vendor/model, for example openai/gpt-5", param="id")
    return value


def check_aliases(values: list[str]) -> list[str]:
    for value in values:
        if len(value) > MAX_NAME or not ALIAS.fullmatch(value) or value.startswith("~"):
            raise InvalidValue(
                f"`aliases`: {value!r} must be letters, digits, . _ / and -", param="aliases"
            )
    return list(dict.fromkeys(values))


def check_tag(value: str) -> str:
    if len(value) > MAX_NAME or not TAG.fullmatch(value):
        raise InvalidValue("`tag` must look like slug or slug/variant", param="tag")
    return value


def check_name(value: str, field: str = "name") -> str:
    if not value.strip() or len(value) > MAX_NAME or not value.isprintable():
        raise InvalidValue(f"`{field}` must be 1 to {MAX_NAME} printable characters", param=field)
    return value


def check_adapter(value: str, formats: Collection[str]) -> str:
    """`formats` are the names of those that this node speaks."""
    if value not in formats:
        raise InvalidValue(f"`adapter` must be one of {', '.join(formats)}", param="adapter")
    return value


def check_weight(value: Decimal) -> float:
    if not value.is_finite() or not LEAST_WEIGHT <= value <= MAX_WEIGHT:
        raise InvalidValue(
            f"`weight` must be from {LEAST_WEIGHT:f} to {MAX_WEIGHT:f}", param="weight"
        )
    return float(value)


def check_flags(value: dict[str, Any]) -> dict[str, Any]:
    """Known flags of the right type only, as they are stored; the error names the nearest mistake."""
    try:
        flags = msgspec.convert(value, Flags)
    except msgspec.ValidationError as error:
        known = ", ".join(f.name for f in msgspec.structs.fields(Flags))
        raise InvalidValue(f"`flags`: {error}; known flags: {known}", param="flags") from None
    wait_s = flags.first_event_s
    if wait_s is not None and not 0 < wait_s <= MAX_FIRST_EVENT_S:
        raise InvalidValue(
            f"`flags`: first_event_s must be above 0 and at most {MAX_FIRST_EVENT_S} seconds",
            param="flags",
        )
    needed = next((name for name in flags.refused_fields if not _may_be_refused(name)), None)
    if needed is not None:
        raise InvalidValue(
            f"`flags`: refused_fields cannot hold {needed!r}; it takes names of optional fields such as `user`,"
            " and `messages.name`. What a model takes of the others its supported_parameters say",
            param="flags",
        )
    return {name: msgspec.to_builtins(getattr(flags, name)) for name in value}


def _may_be_refused(name: str) -> bool:
    return name == "messages.name" or (
        _FIELD_NAME.fullmatch(name) is not None and name not in _NEEDED_FIELDS
    )


def check_headers(value: dict[str, str]) -> dict[str, str]:
    for name, text in value.items():
        if not _HEADER.fullmatch(name) or not text.isascii() or not text.isprintable():
            raise InvalidValue(f"`headers`: {name!r} must be a plain ASCII header", param="headers")
        if len(name) + len(text) > MAX_HEADER:
            raise InvalidValue(
                f"`headers`: {name[:MAX_NAME]} is longer than {MAX_HEADER} characters",
                param="headers",
            )
        if looks_like_a_credential(name, text):
            raise InvalidValue(
                f"`headers`: {name} looks like a credential; add it with POST /catalog/credentials, which seals it",
                param="headers",
            )
        if name.lower() in _FRAMING_HEADERS:
            raise InvalidValue(
                f"`headers`: {name} is set by the gateway for each call; leave it out",
                param="headers",
            )
    if len({name.lower() for name in value}) != len(value):
        raise InvalidValue("`headers`: a header is given twice", param="headers")
    return value


def check_base_url(value: str, *, allow_http: bool) -> str:
    """https anywhere; plain http to loopback and private addresses, or anywhere if the node's settings allow it.

    A query is kept; what looks like a credential in it belongs where credentials are sealed.
    """
    try:
        address = read_web_address(value)
    except WebAddressError as error:
        raise InvalidValue(
            f"`base_url` {error}; an address looks like https://api.openai.com/v1", param="base_url"
        ) from None
    if holds_a_credential(address.query):
        raise InvalidValue(
            "`base_url` has what looks like a credential in its query; add it with POST /catalog/credentials, which"
            " seals it, and say with the provider's `auth` which header carries it",
            param="base_url",
        )
    if address.scheme == "http" and not (allow_http or _is_near(address.host)):
        raise InvalidValue(
            "`base_url` must use https; plain http is for local addresses, or set [upstream] allow_http = true",
            param="base_url",
        )
    return value if address.query else value.rstrip("?").rstrip("/")


def moment(value: str | None, field: str) -> int | None:
    """A time of a body to microseconds. Raises InvalidValue naming the field."""
    if value is None:
        return None
    try:
        return us_from_iso(value)
    except TimeError as error:
        raise InvalidValue(f"`{field}` {error}", param=field) from None


def effective_at(value: str | UnsetType) -> int | None:
    """When a price takes effect; None for now."""
    return None if value is UNSET else moment(value, "effective_at")


def _is_near(host: str) -> bool:
    address = written_out(host)
    if address is None:
        return False
    return address.is_loopback or (address.is_private and not address.is_link_local)
