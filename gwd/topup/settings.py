"""What an organization wants of automatic top-up: GET and PATCH /credits/auto-topup."""

from decimal import Decimal
from typing import Annotated, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from gwd.core.clock import iso
from gwd.core.errors import InvalidValue
from gwd.core.fields import Moment, Usd
from gwd.core.inputs import UsdInput
from gwd.core.money import MoneyError, nano_from_usd, usd_or_none
from gwd.store.connection import Connection

AttemptStatus = Literal["succeeded", "retrying", "failed", "stopped"]

_GET: Final = (
    "SELECT enabled, threshold_nano, amount_nano, monthly_cap_nano, hook_url, sealed_secret, last_attempt_at,"
    " last_attempt_status, last_attempt_error FROM auto_topup WHERE organization_id = ?"
)
_PUT: Final = (
    "INSERT INTO auto_topup (organization_id, enabled, threshold_nano, amount_nano, monthly_cap_nano, hook_url,"
    " sealed_secret, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (organization_id) DO UPDATE SET"
    " enabled = excluded.enabled, threshold_nano = excluded.threshold_nano, amount_nano = excluded.amount_nano,"
    " monthly_cap_nano = excluded.monthly_cap_nano, hook_url = excluded.hook_url,"
    " sealed_secret = excluded.sealed_secret, updated_at = excluded.updated_at"
)


class TopUp(msgspec.Struct, frozen=True, kw_only=True):
    """One organization's settings. `sealed_secret` signs calls of `hook_url` and changes with it."""

    enabled: bool = False
    threshold_nano: int | None = None
    amount_nano: int | None = None
    monthly_cap_nano: int | None = None
    hook_url: str | None = None
    sealed_secret: str | None = None
    last_attempt_at_us: int | None = None
    last_attempt_status: AttemptStatus | None = None
    last_attempt_error: str | None = None


class LastAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """How the latest attempt to buy credit went."""

    at: Annotated[Moment, Meta(description="When it was made.")]
    status: Annotated[
        AttemptStatus | None,
        Meta(
            description="`retrying` is tried again by itself; `stopped` was not tried, because of the monthly cap."
        ),
    ]
    error: Annotated[str | None, Meta(description="What went wrong; null if nothing did.")]


class TopUpRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Credit that is bought by itself through a payment hook. The hook's secret is never in it."""

    enabled: Annotated[bool, Meta(description="Whether credit is bought by itself.")]
    threshold: Annotated[
        Usd | None, Meta(description="Below which balance in USD it is bought; null for not set.")
    ]
    amount: Annotated[
        Usd | None, Meta(description="How much is bought at a time, USD; null for not set.")
    ]
    monthly_cap: Annotated[
        Usd | None,
        Meta(description="The most that is bought in a calendar month, USD; null for no cap."),
    ]
    hook_url: Annotated[
        str | None,
        Meta(description="The address that is asked to take the payment; null for not set."),
    ]
    last_attempt: Annotated[
        LastAttempt | None, Meta(description="The latest attempt; null if there was none.")
    ]


class PatchTopUp(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Changes of automatic top-up: absent is unchanged, null clears."""

    enabled: Annotated[
        bool | UnsetType,
        Meta(description="Whether it is on; it needs `threshold`, `amount` and `hook_url`."),
    ] = UNSET
    threshold: Annotated[
        UsdInput | UnsetType | None,
        Meta(description="Below which balance credit is bought."),
    ] = UNSET
    amount: Annotated[
        UsdInput | UnsetType | None, Meta(description="How much is bought; more than 0.")
    ] = UNSET
    monthly_cap: Annotated[
        UsdInput | UnsetType | None,
        Meta(description="The most that is bought in a month, in UTC. Null is no cap."),
    ] = UNSET
    hook_url: Annotated[
        str | UnsetType | None,
        Meta(
            description="The address of your payment hook, which takes the money. A new one has a new signing secret."
        ),
    ] = UNSET


def get(connection: Connection, organization_id: str) -> TopUp:
    """The settings; an organization that never set any has it switched off."""
    row = connection.row(_GET, (organization_id,))
    if row is None:
        return TopUp()
    enabled, threshold_nano, amount_nano, monthly_cap_nano, hook_url, sealed_secret, *last = row
    last_attempt_at_us, last_attempt_status, last_attempt_error = last
    return TopUp(
        enabled=bool(enabled),
        threshold_nano=threshold_nano,
        amount_nano=amount_nano,
        monthly_cap_nano=monthly_cap_nano,
        hook_url=hook_url,
        sealed_secret=sealed_secret,
        last_attempt_at_us=last_attempt_at_us,
        last_attempt_status=last_attempt_status,
        last_attempt_error=last_attempt_error,
    )


def patch(
    connection: Connection,
    organization_id: str,
    changes: PatchTopUp,
    *,
    sealed_secret: str | None,
    now_us: int,
) -> TopUp:
    """Change the settings. `sealed_secret` is given when the hook changes: each address has a secret of its own.

    Raises InvalidValue for amounts that cannot be, and for switching on what is incomplete.
    """
    before = get(connection, organization_id)
    hook_url = before.hook_url if isinstance(changes.hook_url, UnsetType) else changes.hook_url
    assert hook_url in (None, before.hook_url) or sealed_secret is not None
    after = msgspec.structs.replace(
        before,
        enabled=before.enabled if isinstance(changes.enabled, UnsetType) else changes.enabled,
        threshold_nano=_money(changes.threshold, before.threshold_nano, "threshold"),
        amount_nano=_money(changes.amount, before.amount_nano, "amount"),
        monthly_cap_nano=_money(changes.monthly_cap, before.monthly_cap_nano, "monthly_cap"),
        hook_url=hook_url,
        sealed_secret=None if hook_url is None else sealed_secret or before.sealed_secret,
    )
    _check(after)
    connection.execute(
        _PUT,
        (
            organization_id,
            int(after.enabled),
            after.threshold_nano,
            after.amount_nano,
            after.monthly_cap_nano,
            after.hook_url,
            after.sealed_secret,
            now_us,
        ),
    )
    return after


def record(settings: TopUp) -> TopUpRecord:
    """The settings as the API shows them."""
    last = None
    if settings.last_attempt_at_us is not None:
        last = LastAttempt(
            at=iso(settings.last_attempt_at_us),
            status=settings.last_attempt_status,
            error=settings.last_attempt_error,
        )
    return TopUpRecord(
        enabled=settings.enabled,
        threshold=usd_or_none(settings.threshold_nano),
        amount=usd_or_none(settings.amount_nano),
        monthly_cap=usd_or_none(settings.monthly_cap_nano),
        hook_url=settings.hook_url,
        last_attempt=last,
    )


def _check(settings: TopUp) -> None:
    if settings.amount_nano == 0:
        raise InvalidValue("amount must be more than 0 USD", param="amount")
    cap_nano, amount_nano = settings.monthly_cap_nano, settings.amount_nano
    if cap_nano is not None and amount_nano is not None and cap_nano < amount_nano:
        raise InvalidValue(
            "monthly_cap must be at least amount, or nothing could ever be bought; null removes it",
            param="monthly_cap",
        )
    if not settings.enabled:
        return
    for name, value in (
        ("threshold", settings.threshold_nano),
        ("amount", settings.amount_nano),
        ("hook_url", settings.hook_url),
    ):
        if value is None:
            raise InvalidValue(
                f"automatic top-up needs {name} before it can be enabled", param=name
            )


def _money(usd: Decimal | UnsetType | None, before_nano: int | None, param: str) -> int | None:
    if isinstance(usd, UnsetType):
        return before_nano
    if usd is None:
        return None
    try:
        return nano_from_usd(usd)
    except MoneyError as error:
        raise InvalidValue(f"{param} {error}", param=param) from None
