"""The settings of an organization: defaults, validation, and the revision that tells the pipeline to look again."""

from decimal import Decimal
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

from gwd.core.caller import Caller
from gwd.core.errors import Forbidden, InvalidValue, NotFound
from gwd.core.fields import Count, Usd
from gwd.core.inputs import NumberInput, UsdInput
from gwd.core.money import MoneyError, nano_from_usd, usd_or_none
from gwd.orgs import checks, content_log
from gwd.orgs.content_log import ContentLog
from gwd.orgs.policy import DataPolicy, NameList, Policy, Sort, checked_models, policy_of
from gwd.orgs.rights import require
from gwd.store import Connection, cached

DEFAULT_LOW_BALANCE_NANO: Final = 10_000_000_000
DEFAULT_FEE_BPS: Final = 500
MAX_RETENTION_DAYS: Final = 3_650
_HUNDREDTH: Final = Decimal("0.01")

Days = Annotated[int, Meta(ge=1, le=MAX_RETENTION_DAYS)]
EmailPercent = Annotated[int, Meta(ge=0, le=100, extra_json_schema={"x-kind": "percent"})]


class Settings(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All settings with their defaults; only what differs from a default is stored."""

    forward_retired_models: bool = True
    allowed_models: list[str] | None = None
    allowed_providers: list[str] | None = None
    ignored_providers: list[str] = []
    default_provider_sort: Sort | None = None
    data_policy: DataPolicy = "allow"
    routing_strategy: Literal["expiry_first"] = "expiry_first"
    default_rate_limit_per_minute: int | None = None
    byok_fee_bps: int = DEFAULT_FEE_BPS
    content_log: ContentLog | None = None
    retention_days: int | None = None
    low_balance_threshold_nano: int | None = DEFAULT_LOW_BALANCE_NANO
    alert_email_min_percent: int = 80
    is_filtered_model_catalog_enabled: bool = False
    deprecation_alerts: Literal["all", "used"] = "all"


class OrganizationState(msgspec.Struct, frozen=True):
    """What the pipeline's snapshot holds of an organization; `revision` is compared at each admission."""

    settings: Settings
    revision: int
    suspended: bool


class SettingsRecord(msgspec.Struct, frozen=True, kw_only=True):
    """How an organization wants its requests served and its people told, defaults included."""

    forward_retired_models: Annotated[
        bool,
        Meta(
            description="Whether a request for a retired model goes to its successor if it has one."
        ),
    ]
    allowed_models: Annotated[
        list[str] | None,
        Meta(
            description="Models that its keys may use: ids, aliases, and patterns in which `*` stands for any"
            " characters; null for all."
        ),
    ]
    allowed_providers: Annotated[
        list[str] | None, Meta(description="Providers its requests may go to; null for all.")
    ]
    ignored_providers: Annotated[list[str], Meta(description="Providers its requests never go to.")]
    default_provider_sort: Annotated[
        Sort | None,
        Meta(
            description="By what requests prefer providers unless they, their key or its workspace say so; null for a"
            " balance of weight and price."
        ),
    ]
    data_policy: Annotated[
        DataPolicy,
        Meta(
            description="`deny` leaves out endpoints that are flagged as training on inputs (`trains_on_inputs`)."
        ),
    ]
    routing_strategy: Annotated[
        Literal["expiry_first"],
        Meta(description="Prepaid credit at providers that expires first is used first."),
    ]
    store_prompts: Annotated[
        bool,
        Meta(description="Whether prompts and answers are stored: whether `content_log` is set."),
    ]
    content_log: Annotated[
        ContentLog | None,
        Meta(
            description="What is stored of requests and answers, sealed; null: nothing of either is stored."
        ),
    ]
    retention_days: Annotated[
        int | None,
        Meta(
            description="After how many days users, sessions, applications and tags of requests are forgotten; null for"
            " never."
        ),
    ]
    alert_email_min_percent: Annotated[
        int, Meta(description="From which threshold on alerts go by mail too, in percent.")
    ]
    is_filtered_model_catalog_enabled: Annotated[
        bool,
        Meta(
            description="Whether the list of models shows its inference keys only what they may use."
        ),
    ]
    deprecation_alerts: Annotated[
        Literal["all", "used"],
        Meta(description="Whether all deprecated models are told of, or those it has used."),
    ]
    default_rate_limit_per_minute: Annotated[
        Count, Meta(description="Requests in any 60 seconds for keys without a lower limit.")
    ]
    byok_fee_percent: Annotated[
        Raw,
        Meta(
            description="What of the list price is charged for requests through own provider keys, in percent.",
            extra_json_schema={"type": "number", "x-kind": "percent"},
        ),
    ]
    low_balance_threshold: Annotated[
        Usd | None,
        Meta(description="Below which balance in USD an alert is raised; null for no alert."),
    ]


class PatchSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Changes of an organization's settings: absent is unchanged, null is the default or none."""

    forward_retired_models: Annotated[
        bool | UnsetType,
        Meta(description="Whether a request for a retired model goes to its successor."),
    ] = UNSET
    allowed_models: Annotated[
        NameList | UnsetType | None,
        Meta(
            description="The models that may be used: ids, aliases, or patterns such as openai/* or */gpt-5*. Null is"
            " all of them."
        ),
    ] = UNSET
    allowed_providers: Annotated[
        NameList | UnsetType | None,
        Meta(
            description="The providers that may serve, by slug, name or an endpoint's tag. Null is all of them."
        ),
    ] = UNSET
    ignored_providers: Annotated[
        NameList | UnsetType,
        Meta(description="Providers that never serve, by slug, name or an endpoint's tag."),
    ] = UNSET
    default_provider_sort: Annotated[
        Sort | UnsetType | None,
        Meta(
            description="By what endpoints are tried in order, where neither a request nor its key or workspace names"
            " anything. Null balances by price and health."
        ),
    ] = UNSET
    data_policy: Annotated[
        DataPolicy | UnsetType,
        Meta(
            description="`deny` leaves out endpoints that are flagged as training on inputs; keys and requests can only"
            " be stricter."
        ),
    ] = UNSET
    routing_strategy: Annotated[
        Literal["expiry_first"] | UnsetType,
        Meta(description="Which credit pays first: what expires first."),
    ] = UNSET
    default_rate_limit_per_minute: Annotated[
        int | UnsetType | None,
        Meta(
            description="Requests in any 60 seconds for keys without a limit of their own, up to the node's ceiling."
            " Null is the ceiling.",
            extra_json_schema={"minimum": 1},
        ),
    ] = UNSET
    byok_fee_percent: Annotated[
        NumberInput | UnsetType,
        Meta(
            description="The fee on requests that the owner's own vendor key pays, in percent of their list price, with"
            " at most two decimals. Set by the operator.",
            extra_json_schema={"minimum": 0, "maximum": 100, "x-kind": "percent"},
        ),
    ] = UNSET
    store_prompts: Annotated[
        bool | UnsetType,
        Meta(
            description="Says what `content_log` decides; a value that does not fit it is refused."
        ),
    ] = UNSET
    content_log: Annotated[
        ContentLog | UnsetType | None,
        Meta(
            description="What is stored of requests and answers from now on, whole: what is left out of it has its"
            " default. Null stores nothing more; what there is stays until its time is over or it is erased."
        ),
    ] = UNSET
    retention_days: Annotated[
        Days | UnsetType | None,
        Meta(
            description="After how many days users, sessions, applications and tags are removed from the records of"
            " requests. Null keeps them."
        ),
    ] = UNSET
    low_balance_threshold: Annotated[
        UsdInput | UnsetType | None,
        Meta(description="Below which balance an alert is raised. Null raises none."),
    ] = UNSET
    alert_email_min_percent: Annotated[
        EmailPercent | UnsetType,
        Meta(description="From which percentage of a limit on its alerts are sent by mail, too."),
    ] = UNSET
    is_filtered_model_catalog_enabled: Annotated[
        bool | UnsetType,
        Meta(description="Whether GET /models shows a key only the models that it may use."),
    ] = UNSET
    deprecation_alerts: Annotated[
        Literal["all", "used"] | UnsetType,
        Meta(
            description="Whether the deprecation of every model raises an alert, or only of those that were used."
        ),
    ] = UNSET


_decoder: Final = msgspec.json.Decoder(Settings)
_encoder: Final = msgspec.json.Encoder()


@cached("settings")
def settings(connection: Connection, organization_id: str) -> OrganizationState:
    """The organization's settings, revision and suspension. Raises NotFound."""
    row = connection.row(
        "SELECT settings, revision, suspended FROM organization WHERE id = ? AND deleted_at IS NULL",
        (organization_id,),
    )
    if row is None:
        raise NotFound("No such organization.")
    stored, its_revision, suspended = row
    return OrganizationState(_decoder.decode(stored), its_revision, bool(suspended))


def is_deleted(connection: Connection, organization_id: str) -> bool:
    """Whether the organization is deleted, or never existed."""
    try:
        settings(connection, organization_id)
    except NotFound:
        return True
    return False


@cached("organization revision")
def revision(connection: Connection, organization_id: str) -> int:
    """The revision to compare a snapshot with, inside the admission transaction; -1 if there is no organization."""
    row = connection.row("SELECT revision FROM organization WHERE id = ?", (organization_id,))
    return -1 if row is None else int(row[0])


def retentions(connection: Connection) -> list[tuple[str, int]]:
    """(organization, days) of those that do not keep for ever who and what asked."""
    rows = connection.rows(
        "SELECT id, settings FROM organization WHERE settings LIKE '%retention_days%'"
    )
    kept = [(row[0], _decoder.decode(row[1]).retention_days) for row in rows]
    return [(organization_id, days) for organization_id, days in kept if days is not None]


def content_logs(connection: Connection) -> list[tuple[str, int]]:
    """(organization, days) of those that have their requests stored."""
    rows = connection.rows(
        "SELECT id, settings FROM organization WHERE settings LIKE '%content_log%' AND deleted_at IS NULL"
    )
    kept = [(row[0], _decoder.decode(row[1]).content_log) for row in rows]
    return [(organization_id, log.days) for organization_id, log in kept if log is not None]


def bump_revision(connection: Connection, organization_id: str, *, now_us: int) -> None:
    """Tell every snapshot that something it holds of this organization has changed."""
    connection.execute(
        "UPDATE organization SET revision = revision + 1, updated_at = ? WHERE id = ?",
        (now_us, organization_id),
    )


def patch_settings(
    connection: Connection,
    organization_id: str,
    changes: PatchSettings,
    *,
    actor: Caller,
    rate_limit_ceiling: int,
    now_us: int,
) -> OrganizationState:
    """Change what is named, after checking all of it. The BYOK fee, and another organization's settings, are the
    operator's to set."""
    require(actor, "settings.write")
    if organization_id != actor.organization_id:
        require(actor, "organizations.manage")
    before = settings(connection, organization_id)
    if changes.byok_fee_percent is not UNSET and actor.role != "operator":
        raise Forbidden("byok_fee_percent is set by the operator.", param="byok_fee_percent")
    if changes.content_log and organization_id != actor.organization_id:
        raise Forbidden(
            "content_log is switched on by the organization itself; an operator may only switch it off.",
            param="content_log",
        )
    after = msgspec.structs.replace(before.settings, **_changed(changes, rate_limit_ceiling))
    if changes.store_prompts not in (UNSET, after.content_log is not None):
        raise InvalidValue(
            'store_prompts follows content_log: send content_log as {"days": 7} to store prompts and answers,'
            " as null to store none.",
            param="store_prompts",
        )
    if after == before.settings:
        return before
    connection.execute(
        "UPDATE organization SET settings = ? WHERE id = ?",
        (_encoder.encode(after).decode(), organization_id),
    )
    bump_revision(connection, organization_id, now_us=now_us)
    return settings(connection, organization_id)


def policy(held: Settings) -> Policy | None:
    """What the organization lets requests use; None where that is everything."""
    return policy_of(
        "organization",
        allowed_models=held.allowed_models,
        allowed_providers=held.allowed_providers,
        ignored_providers=held.ignored_providers,
        data_policy=held.data_policy,
    )


def default_rate_limit(held: Settings, rate_limit_ceiling: int) -> int:
    """Requests a minute for keys without a lower limit of their own; the node's ceiling always holds."""
    limit = held.default_rate_limit_per_minute
    return rate_limit_ceiling if limit is None else min(limit, rate_limit_ceiling)


def fee_percent(held: Settings) -> Raw:
    """What of the list price is charged for requests through own provider keys, as a JSON number."""
    return Raw(_percent_text(held.byok_fee_bps).encode())


def record(state: OrganizationState, *, rate_limit_ceiling: int) -> SettingsRecord:
    """The settings as the API shows them."""
    held = state.settings
    shown: dict[str, Any] = {name: getattr(held, name) for name in _PLAIN}
    return SettingsRecord(
        **shown,
        store_prompts=held.content_log is not None,
        default_rate_limit_per_minute=default_rate_limit(held, rate_limit_ceiling),
        byok_fee_percent=fee_percent(held),
        low_balance_threshold=usd_or_none(held.low_balance_threshold_nano),
    )


_CONVERTED: Final = frozenset(
    ("default_rate_limit_per_minute", "byok_fee_percent", "low_balance_threshold", "store_prompts")
)
_PLAIN: Final = frozenset(PatchSettings.__struct_fields__) - _CONVERTED


def _changed(changes: PatchSettings, rate_limit_ceiling: int) -> dict[str, Any]:
    """The fields to replace, named as `Settings` names them, each checked."""
    fields: dict[str, Any] = {
        name: value for name in _PLAIN if (value := getattr(changes, name)) is not UNSET
    }
    if "allowed_models" in fields:
        fields["allowed_models"] = checked_models(fields["allowed_models"])
    if "allowed_providers" in fields:
        fields["allowed_providers"] = checks.allow_list(
            fields["allowed_providers"], param="allowed_providers"
        )
    if "ignored_providers" in fields:
        fields["ignored_providers"] = checks.names(
            fields["ignored_providers"], param="ignored_providers"
        )
    if "content_log" in fields:
        fields["content_log"] = content_log.checked(fields["content_log"])
    if changes.default_rate_limit_per_minute is not UNSET:
        limit = changes.default_rate_limit_per_minute
        _in_range(limit, 1, rate_limit_ceiling, param="default_rate_limit_per_minute")
        fields["default_rate_limit_per_minute"] = limit
    if changes.byok_fee_percent is not UNSET:
        fields["byok_fee_bps"] = _bps(changes.byok_fee_percent)
    if changes.low_balance_threshold is not UNSET:
        fields["low_balance_threshold_nano"] = _threshold(changes.low_balance_threshold)
    return fields


def _in_range(value: int | None, lowest: int, highest: int, *, param: str) -> None:
    if value is not None and not lowest <= value <= highest:
        raise InvalidValue(f"{param} must be from {lowest} to {highest}.", param=param)


def _bps(percent: Decimal) -> int:
    in_range = percent.is_finite() and 0 <= percent <= 100
    if not in_range or percent != percent.quantize(_HUNDREDTH):
        raise InvalidValue(
            "byok_fee_percent must be from 0 to 100 with at most two decimals.",
            param="byok_fee_percent",
        )
    return int(percent * 100)


def _threshold(amount: Decimal | None) -> int | None:
    if amount is None:
        return None
    try:
        return nano_from_usd(amount)
    except MoneyError as error:
        raise InvalidValue(
            f"low_balance_threshold {error}.", param="low_balance_threshold"
        ) from None


def _percent_text(bps: int) -> str:
    whole, rest = divmod(bps, 100)
    return f"{whole}.{rest:02d}".rstrip("0").rstrip(".") if rest else str(whole)
