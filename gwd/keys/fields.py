"""What the bodies of POST and PATCH /keys may hold, and the check of each field."""

from decimal import Decimal
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, UnsetType

from gwd.core.caller import KeyKind, Role
from gwd.core.clock import TimeError, us_from_iso
from gwd.core.errors import InvalidValue
from gwd.core.inputs import MomentInput, NameInput, PercentInput, TextInput, UsdInput
from gwd.core.money import MoneyError, nano_from_usd
from gwd.core.periods import Reset
from gwd.keys import models
from gwd.orgs import checks

DEFAULT_THRESHOLDS: Final = [50, 80, 90, 100]
MAX_THRESHOLDS: Final = 10
MAX_IN_FLIGHT_CAP: Final = 10_000

ModelList = Annotated[
    list[str],
    Meta(
        max_length=checks.LIST_LENGTH,
        description="The models it may use: ids, aliases, or vendor/*. Null is all of them.",
    ),
]
ThresholdList = Annotated[
    list[PercentInput],
    Meta(
        max_length=MAX_THRESHOLDS,
        description="At which percentages of its limit an alert is raised. Null is 50, 80, 90 and 100.",
    ),
]
Name = Annotated[NameInput, Meta(description="What people call it.")]
Limit = Annotated[
    UsdInput,
    Meta(description="The most it may spend, in all or between two resets. Null is no limit."),
]
KeyReset = Annotated[
    Reset,
    Meta(description="How often the limit starts anew, in UTC. Null is never."),
]
WithByok = Annotated[
    bool,
    Meta(description="Whether requests on the owner's own vendor keys count against the limit."),
]
Strict = Annotated[
    bool,
    Meta(
        description="Whether what its open requests may still cost counts against the limit, so that it can never be"
        " passed."
    ),
]
InFlight = Annotated[
    int,
    Meta(
        ge=1,
        le=MAX_IN_FLIGHT_CAP,
        description="How many of its requests may run at once. Null is the node's own cap.",
    ),
]
PerMinute = Annotated[
    int,
    Meta(
        description="How many requests it may make in any 60 seconds, up to the node's ceiling. Null is the"
        " organization's default.",
        extra_json_schema={"minimum": 1},
    ),
]
Expiry = Annotated[
    MomentInput, Meta(description="From when on it is refused; a time to come. Null is never.")
]
ExternalUser = Annotated[
    TextInput, Meta(description="Your own name of whoever uses it, for your records.")
]


class CreateKey(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A new key."""

    name: Name
    type: Annotated[
        KeyKind, Meta(description="What it is for: requests to models, or calls of this API.")
    ] = "inference"
    role: Annotated[
        Role | None,
        Meta(
            description="What a management key may do, never more than its maker. Null is admin, or the maker's own"
            " role if that is lower."
        ),
    ] = None
    user_id: Annotated[
        str | None,
        Meta(description="The member whose key it is. Null is the maker."),
    ] = None
    workspace_id: Annotated[
        str | None,
        Meta(
            description="Its workspace, by id or slug. Null is the default one; for a management key, all of them."
        ),
    ] = None
    limit: Limit | None = None
    limit_reset: KeyReset | None = None
    include_byok_in_limit: WithByok = False
    strict: Strict = False
    in_flight_cap: InFlight | None = None
    rate_limit_per_minute: PerMinute | None = None
    allowed_models: ModelList | None = None
    alert_thresholds: ThresholdList | None = None
    expires_at: Expiry | None = None
    external_user: ExternalUser | None = None
    if_absent: Annotated[
        bool,
        Meta(
            description="A live key of this name is left as it is and answered in place of a new one."
        ),
    ] = False


class PatchKey(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Changes of a key: absent is unchanged, null clears. What was spent is never touched."""

    name: Name | UnsetType = UNSET
    disabled: Annotated[
        bool | UnsetType, Meta(description="Whether it is refused until it is enabled again.")
    ] = UNSET
    limit: Limit | UnsetType | None = UNSET
    limit_reset: KeyReset | UnsetType | None = UNSET
    include_byok_in_limit: WithByok | UnsetType = UNSET
    strict: Strict | UnsetType = UNSET
    in_flight_cap: InFlight | UnsetType | None = UNSET
    rate_limit_per_minute: PerMinute | UnsetType | None = UNSET
    allowed_models: ModelList | UnsetType | None = UNSET
    alert_thresholds: ThresholdList | UnsetType | None = UNSET
    expires_at: Expiry | UnsetType | None = UNSET
    external_user: ExternalUser | UnsetType | None = UNSET


class KeyFilter(msgspec.Struct, frozen=True, kw_only=True):
    """The query of GET /keys; `workspace_id` may be an id or a slug, `name` is exact."""

    include_disabled: bool = False
    include_expired: bool = False
    workspace_id: str | None = None
    name: str | None = None


def columns(named: dict[str, Any], *, rate_limit_ceiling: int, now_us: int) -> dict[str, Any]:
    """The columns that input fields set, each checked."""
    checked: dict[str, Any] = {}
    for name, value in named.items():
        match name:
            case "name":
                checked["name"] = checks.name(value)
            case "limit":
                checked["limit_nano"] = _limit_nano(value)
            case "allowed_models":
                checked["allowed_models"] = models.checked(value)
            case "alert_thresholds":
                checked["alert_thresholds"] = _thresholds(value)
            case "expires_at":
                checked["expires_at"] = _expiry_us(value, now_us)
            case "external_user":
                checked["external_user"] = checks.optional_text(value, param="external_user")
            case "rate_limit_per_minute":
                checked[name] = _in_range(value, rate_limit_ceiling, param=name)
            case _:
                checked[name] = value
    return checked


def _limit_nano(amount: Decimal | None) -> int | None:
    if amount is None:
        return None
    try:
        return nano_from_usd(amount)
    except MoneyError as error:
        raise InvalidValue(f"limit {error}.", param="limit") from None


def _expiry_us(text: str | None, now_us: int) -> int | None:
    if text is None:
        return None
    try:
        expires_at_us = us_from_iso(text)
    except TimeError as error:
        raise InvalidValue(f"expires_at {error}.", param="expires_at") from None
    if expires_at_us <= now_us:
        raise InvalidValue(
            "expires_at lies in the past; name a later time, or disable the key to end it now.",
            param="expires_at",
        )
    return expires_at_us


def _thresholds(percents: list[int] | None) -> list[int]:
    if percents is None:
        return DEFAULT_THRESHOLDS
    if not all(1 <= percent <= 100 for percent in percents):
        raise InvalidValue(
            "alert_thresholds takes percentages from 1 to 100.", param="alert_thresholds"
        )
    return sorted(set(percents))


def _in_range(value: int | None, highest: int, *, param: str) -> int | None:
    if value is not None and not 1 <= value <= highest:
        raise InvalidValue(f"{param} must be from 1 to {highest}.", param=param)
    return value
