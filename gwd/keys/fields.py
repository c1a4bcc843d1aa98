"""What the bodies of POST and PATCH /keys may hold, and the check of each field."""

from decimal import Decimal
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from gwd.core import tags
from gwd.core.caller import KeyKind, Role
from gwd.core.clock import TimeError, us_from_iso
from gwd.core.errors import InvalidValue
from gwd.core.inputs import MomentInput, NameInput, PercentInput, TextInput, UsdInput
from gwd.core.money import MoneyError, nano_from_usd
from gwd.core.patches import FIXED, patch_of
from gwd.core.periods import Reset
from gwd.core.tags import TagsInput
from gwd.orgs import checks
from gwd.orgs.policy import DataPolicy, NameList, Sort, checked_models

DEFAULT_THRESHOLDS: Final = [50, 80, 90, 100]
MAX_THRESHOLDS: Final = 10
MAX_IN_FLIGHT_CAP: Final = 10_000

ThresholdList = Annotated[list[PercentInput], Meta(max_length=MAX_THRESHOLDS)]
InFlight = Annotated[int, Meta(ge=1, le=MAX_IN_FLIGHT_CAP)]
PerMinute = Annotated[int, Meta(extra_json_schema={"minimum": 1})]


class CreateKey(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of POST /keys."""

    name: Annotated[
        NameInput, Meta(description="What people call the key; at most 100 characters.")
    ]
    type: Annotated[
        KeyKind,
        FIXED,
        Meta(description="An inference key sends prompts, a management key administers."),
    ] = "inference"
    role: Annotated[
        Role | None,
        FIXED,
        Meta(
            description="What a management key may do at most; admin, or the caller's own role if that is lower, when"
            " absent."
        ),
    ] = None
    user_id: Annotated[
        str | None,
        FIXED,
        Meta(description="The member whose key it is; the caller's own when absent."),
    ] = None
    workspace_id: Annotated[
        str | None,
        FIXED,
        Meta(
            description="The workspace it lives in, by id or slug; `default` for an inference key when absent."
        ),
    ] = None
    limit: Annotated[
        UsdInput | None,
        Meta(
            description="What the key and its rotations may spend, USD, at most nine decimals; null for no limit."
        ),
    ] = None
    limit_reset: Annotated[
        Reset | None,
        Meta(description="How often the limit starts again, UTC; null for a limit for life."),
    ] = None
    include_byok_in_limit: Annotated[
        bool,
        Meta(
            description="Whether inference through own provider keys counts against `limit`, at its list price."
        ),
    ] = False
    strict: Annotated[
        bool,
        Meta(
            description="Whether running requests count against `limit` with all that they may cost, so that it cannot"
            " be overshot."
        ),
    ] = False
    in_flight_cap: Annotated[
        InFlight | None,
        Meta(
            description="How many requests may run at the same time; null for the node's default."
        ),
    ] = None
    rate_limit_per_minute: Annotated[
        PerMinute | None,
        Meta(
            description="How many requests may be made in any 60 seconds, at most the node's ceiling; null for the"
            " default of the organization."
        ),
    ] = None
    allowed_models: Annotated[
        NameList | None,
        Meta(
            description="Models that the key may use: ids, aliases, or patterns such as openai/* or */gpt-5*; null for"
            " all."
        ),
    ] = None
    allowed_providers: Annotated[
        NameList | None,
        Meta(
            description="Providers its requests may go to, by slug, name or an endpoint's tag, as far as the"
            " organization allows them; null for all."
        ),
    ] = None
    ignored_providers: Annotated[
        NameList,
        Meta(
            description="Providers its requests never go to, beside those that the organization ignores."
        ),
    ] = []
    default_provider_sort: Annotated[
        Sort | None,
        Meta(
            description="By what its requests prefer providers unless they say so; null for the workspace's or the"
            " organization's."
        ),
    ] = None
    data_policy: Annotated[
        DataPolicy,
        Meta(
            description="`deny` leaves out endpoints that are flagged as training on inputs; `allow` is as strict as"
            " the organization."
        ),
    ] = "allow"
    alert_thresholds: Annotated[
        ThresholdList | None,
        Meta(
            description="At which percentages of `limit` an alert is raised; null for 50, 80, 90 and 100."
        ),
    ] = None
    tags: Annotated[
        TagsInput,
        Meta(
            description="Tags that each of its requests bears beside its own, for reports and budgets; at most eight."
        ),
    ] = []
    expires_at: Annotated[
        MomentInput | None,
        Meta(description="From when on the key is refused, with an offset; null for never."),
    ] = None
    external_user: Annotated[
        TextInput | None,
        Meta(description="Your own name for the person or system behind the key; null for none."),
    ] = None
    if_absent: Annotated[
        bool,
        FIXED,
        Meta(
            description="Whether a live key of this name is left as it is and answered instead of making another."
        ),
    ] = False


PatchKey: Final = patch_of(
    CreateKey,
    "PatchKey",
    "The body of PATCH /keys/{id or hash}: absent is unchanged, null clears. Usage is never touched.",
    disabled=Annotated[bool, Meta(description="Whether the key is refused until it is enabled.")],
)


def changeable(new: CreateKey) -> dict[str, Any]:
    """The fields of a new key that can be changed later, too."""
    return {name: getattr(new, name) for name in PatchKey.__struct_fields__ if hasattr(new, name)}


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
                checked[name] = checked_models(value)
            case "allowed_providers":
                checked[name] = checks.allow_list(value, param=name)
            case "ignored_providers":
                checked[name] = checks.names(value, param=name)
            case "alert_thresholds":
                checked["alert_thresholds"] = _thresholds(value)
            case "expires_at":
                checked["expires_at"] = _expiry_us(value, now_us)
            case "external_user":
                checked["external_user"] = checks.optional_text(value, param="external_user")
            case "rate_limit_per_minute" | "in_flight_cap":
                is_rate = name == "rate_limit_per_minute"
                highest = rate_limit_ceiling if is_rate else MAX_IN_FLIGHT_CAP
                checked[name] = _in_range(value, highest, param=name)
            case "tags":
                checked[name] = list(tags.checked(value, param=name))
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
