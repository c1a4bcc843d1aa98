"""What the management API takes for providers, models and endpoints, and the rules their fields must meet."""

import re
from collections.abc import Collection
from decimal import Decimal
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, UnsetType

from gwd.catalog.price_body import Pricing, PricingTier
from gwd.core.clock import TimeError, us_from_iso
from gwd.core.errors import InvalidValue
from gwd.core.secret_looks import looks_like_a_credential
from gwd.core.target import Flags
from gwd.core.web_address import WebAddressError, read_web_address, written_out

_SLUG: Final = re.compile(r"[a-z0-9]+(?:[-_.][a-z0-9]+)*")
_MODEL: Final = re.compile(r"[a-z0-9][a-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*")
_ALIAS: Final = re.compile(r"[A-Za-z0-9~][A-Za-z0-9._/-]*")
_TAG: Final = re.compile(r"[a-z0-9]+(?:[-_.][a-z0-9]+)*(?:/[a-z0-9]+(?:[-_.][a-z0-9]+)*)?")
_HEADER: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_FRAMING_HEADERS: Final = frozenset(
    (
        *("host", "connection", "keep-alive", "proxy-connection", "upgrade", "te", "trailer"),
        *("transfer-encoding", "content-length", "content-encoding", "content-type", "expect"),
        *("accept", "accept-encoding", "http2-settings"),
    )
)
MAX_NAME: Final = 256
LEAST_WEIGHT: Final = Decimal("0.000000001")
MAX_WEIGHT: Final = Decimal(1_000_000_000_000)
MAX_FIRST_EVENT_S: Final = 3_600
MAX_HEADER: Final = 4_096
Modality = Literal["text", "image", "file", "audio", "video", "embeddings"]

# What the operator makes is looked at with every request, or sent with every call: it has an end.
Aliases = Annotated[list[str], msgspec.Meta(max_length=64)]
Parameters = Annotated[
    list[Annotated[str, msgspec.Meta(max_length=MAX_NAME)]], msgspec.Meta(max_length=256)
]
Modalities = Annotated[list[Modality], msgspec.Meta(max_length=16)]
Tiers = Annotated[list[PricingTier], msgspec.Meta(max_length=32)]
Headers = Annotated[dict[str, str], msgspec.Meta(max_length=32)]


class _Input(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A strict body: an unknown field is the client's typo and is named."""


class ProviderInput(_Input, frozen=True):
    slug: str
    name: str
    adapter: str
    base_url: str
    headers: Headers = {}
    flags: dict[str, Any] = {}
    disabled: bool = False


class ProviderPatch(_Input, frozen=True):
    name: str | UnsetType = UNSET
    base_url: str | UnsetType = UNSET
    headers: Headers | UnsetType | None = UNSET
    flags: dict[str, Any] | UnsetType | None = UNSET
    disabled: bool | UnsetType = UNSET


class ModelInput(_Input, frozen=True):
    id: str
    name: str
    vendor: str
    context_length: int
    max_completion_tokens: int
    supported_parameters: Parameters
    input_modalities: Modalities = msgspec.field(default_factory=lambda: ["text"])
    output_modalities: Modalities = msgspec.field(default_factory=lambda: ["text"])
    pricing: Pricing | None = None
    pricing_tiers: Tiers = []
    description: str | None = None
    family: str | None = None
    aliases: Aliases = []
    default_max_tokens: int | None = None
    is_moderated: bool = False
    released_at: str | None = None
    deprecated_at: str | None = None
    retired_at: str | None = None
    successor: str | None = None
    accept: bool = False


class ModelPatch(_Input, frozen=True):
    """`pricing` and `pricing_tiers` append a version that takes effect at `effective_at` (default: now).

    A price that looks like a slip (more than tenfold, above 0.001 USD a token) is taken only with `accept`.
    """

    name: str | UnsetType = UNSET
    vendor: str | UnsetType = UNSET
    context_length: int | UnsetType = UNSET
    max_completion_tokens: int | UnsetType = UNSET
    supported_parameters: Parameters | UnsetType = UNSET
    input_modalities: Modalities | UnsetType = UNSET
    output_modalities: Modalities | UnsetType = UNSET
    pricing: Pricing | UnsetType = UNSET
    pricing_tiers: Tiers | UnsetType | None = UNSET
    effective_at: str | UnsetType = UNSET
    description: str | UnsetType | None = UNSET
    family: str | UnsetType | None = UNSET
    aliases: Aliases | UnsetType | None = UNSET
    default_max_tokens: int | UnsetType | None = UNSET
    is_moderated: bool | UnsetType = UNSET
    released_at: str | UnsetType | None = UNSET
    deprecated_at: str | UnsetType | None = UNSET
    retired_at: str | UnsetType | None = UNSET
    successor: str | UnsetType | None = UNSET
    accept: bool = False


class EndpointInput(_Input, frozen=True):
    model: str
    provider: str
    upstream_model: str
    tag: str | None = None
    base_url: str | None = None
    pricing: Pricing | None = None
    pricing_tiers: Tiers = []
    context_length: int | None = None
    max_completion_tokens: int | None = None
    supported_parameters: Parameters | None = None
    flags: dict[str, Any] = {}
    weight: Decimal = Decimal(1)
    disabled: bool = False
    accept: bool = False


class EndpointPatch(_Input, frozen=True):
    """As ModelPatch; a `pricing` of null goes back to the model's price."""

    upstream_model: str | UnsetType = UNSET
    tag: str | UnsetType = UNSET
    base_url: str | UnsetType | None = UNSET
    pricing: Pricing | UnsetType | None = UNSET
    pricing_tiers: Tiers | UnsetType | None = UNSET
    effective_at: str | UnsetType = UNSET
    context_length: int | UnsetType | None = UNSET
    max_completion_tokens: int | UnsetType | None = UNSET
    supported_parameters: Parameters | UnsetType | None = UNSET
    flags: dict[str, Any] | UnsetType | None = UNSET
    weight: Decimal | UnsetType = UNSET
    disabled: bool | UnsetType = UNSET
    accept: bool = False


def check_slug(value: str) -> str:
    if len(value) > MAX_NAME or not _SLUG.fullmatch(value):
        raise InvalidValue(
            "`slug` must be lower-case letters, digits and single hyphens, for example openai",
            param="slug",
        )
    return value


def check_model_id(value: str) -> str:
    if len(value) > MAX_NAME or not _MODEL.fullmatch(value):
        raise InvalidValue("`id` must look like vendor/model, for example openai/gpt-5", param="id")
    return value


def check_aliases(values: list[str]) -> list[str]:
    for value in values:
        if len(value) > MAX_NAME or not _ALIAS.fullmatch(value) or value.startswith("~"):
            raise InvalidValue(
                f"`aliases`: {value!r} must be letters, digits, . _ / and -", param="aliases"
            )
    return list(dict.fromkeys(values))


def check_tag(value: str) -> str:
    if len(value) > MAX_NAME or not _TAG.fullmatch(value):
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


def check_positive(value: int, field: str, *, zero: bool = False) -> int:
    if value < (0 if zero else 1) or value > 1_000_000_000:
        raise InvalidValue(f"`{field}` must be a positive whole number", param=field)
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
    return {name: msgspec.to_builtins(getattr(flags, name)) for name in value}


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
    """https anywhere; plain http to loopback and private addresses, or anywhere if the node's settings allow it."""
    try:
        address = read_web_address(value)
    except WebAddressError as error:
        raise InvalidValue(
            f"`base_url` {error}; an address looks like https://api.openai.com/v1", param="base_url"
        ) from None
    if address.query:
        raise InvalidValue(
            "`base_url` must be an address such as https://api.openai.com/v1, without a query",
            param="base_url",
        )
    if address.scheme == "http" and not (allow_http or _is_near(address.host)):
        raise InvalidValue(
            "`base_url` must use https; plain http is for local addresses, or set [upstream] allow_http = true",
            param="base_url",
        )
    return value.rstrip("/")


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
