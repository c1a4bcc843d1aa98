"""What the bodies of POST and PATCH /keys may hold, and the check of each field."""

from decimal import Decimal
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, UnsetType

from gwd.core.caller import KeyKind, Role
from gwd.core.clock import TimeError, us_from_iso
from gwd.core.errors import InvalidValue
from gwd.core.money import MoneyError, nano_from_usd
from gwd.core.periods import Reset
from gwd.keys import models
from gwd.orgs import checks

DEFAULT_THRESHOLDS: Final = [50, 80, 90, 100]
MAX_THRESHOLDS: Final = 10
MAX_IN_FLIGHT_CAP: Final = 10_000

ModelList = Annotated[list[str], msgspec.Meta(max_length=1_000)]
ThresholdList = Annotated[list[int], msgspec.Meta(max_length=100)]


class CreateKey(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of POST /keys.

    `role` is for management keys: admin, or the caller's own if lower, when absent. `user_id` is the caller's member
    when absent. With `if_absent` a live key of this name is left as it is and answered instead.
    """

    name: str
    type: KeyKind = "inference"
    role: Role | None = None
    user_id: str | None = None
    workspace_id: str | None = None
    limit: Decimal | None = None
    limit_reset: Reset | None = None
    include_byok_in_limit: bool = False
    strict: bool = False
    in_flight_cap: int | None = None
    rate_limit_per_minute: int | None = None
    allowed_models: ModelList | None = None
    alert_thresholds: ThresholdList | None = None
    expires_at: str | None = None
    external_user: str | None = None
    if_absent: bool = False


class PatchKey(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of PATCH /keys/{id or hash}: absent is unchanged, null clears. Usage is never touched."""

    name: str | UnsetType = UNSET
    disabled: bool | UnsetType = UNSET
    limit: Decimal | UnsetType | None = UNSET
    limit_reset: Reset | UnsetType | None = UNSET
    include_byok_in_limit: bool | UnsetType = UNSET
    strict: bool | UnsetType = UNSET
    in_flight_cap: int | UnsetType | None = UNSET
    rate_limit_per_minute: int | UnsetType | None = UNSET
    allowed_models: ModelList | UnsetType | None = UNSET
    alert_thresholds: ThresholdList | UnsetType | None = UNSET
    expires_at: str | UnsetType | None = UNSET
    external_user: str | UnsetType | None = UNSET


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
            case "in_flight_cap":
                checked[name] = _in_range(value, MAX_IN_FLIGHT_CAP, param=name)
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
    if len(percents) > MAX_THRESHOLDS or not all(1 <= percent <= 100 for percent in percents):
        raise InvalidValue(
            f"alert_thresholds takes at most {MAX_THRESHOLDS} percentages from 1 to 100.",
            param="alert_thresholds",
        )
    return sorted(set(percents))


def _in_range(value: int | None, highest: int, *, param: str) -> int | None:
    if value is not None and not 1 <= value <= highest:
        raise InvalidValue(f"{param} must be from 1 to {highest}.", param=param)
    return value
