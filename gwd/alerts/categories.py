"""The categories people subscribe to, and per organization who is notified: GET and PATCH /notifications/alerts."""

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from gwd.alerts.tables import AlertSettingTable, DestinationTable
from gwd.core.clock import TimeError, iso, us_from_iso
from gwd.core.errors import InvalidValue, NotFound
from gwd.core.fields import Id, Moment, WholePercent
from gwd.core.inputs import MomentInput, PercentInput
from gwd.store import Connection

Category = Literal[
    "low_balance",
    "budget_threshold",
    "key_limit",
    "auto_topup",
    "model_availability",
    "price_change",
    "model_deprecation",
    "destination",
    "provider_key",
    "node",
]
EmailRole = Literal["member", "billing", "admin", "owner"]

# Who gets an email unless the organization says otherwise: owners and admins.
EMAIL_ROLES: Final[dict[Category, tuple[EmailRole, ...]]] = {
    "low_balance": ("owner", "admin", "billing"),
    "budget_threshold": ("owner", "admin"),
    "key_limit": ("owner", "admin"),
    "auto_topup": ("owner", "admin", "billing"),
    "model_availability": (),
    "price_change": (),
    "model_deprecation": ("owner", "admin"),
    "destination": ("owner",),
    "provider_key": ("owner", "admin"),
    "node": ("owner", "admin"),
}

ALWAYS: Final[dict[Category, tuple[EmailRole, ...]]] = {"destination": ("owner",)}
"""Who gets mail even of a category that is switched off or muted."""


class AlertSetting(msgspec.Struct, frozen=True, kw_only=True):
    """Who hears of the alerts of one category in one organization."""

    category: Annotated[Category, Meta(description="What the alerts are about.")]
    enabled: Annotated[
        bool, Meta(description="Whether anybody is told; the alerts are on record in any case.")
    ] = True
    thresholds: Annotated[
        list[WholePercent] | None,
        Meta(description="Which percentages are told of, for alerts that have some; null for all."),
    ] = None
    channels: Annotated[
        list[Id] | None,
        Meta(description="Which destinations hear of it; null for all that subscribe to it."),
    ] = None
    email_roles: Annotated[
        list[EmailRole], Meta(description="Members with which roles are told by mail.")
    ]
    muted_until: Annotated[
        Moment | None,
        Meta(
            description="Until when nobody is told, whatever is enabled; null or past where it is not muted."
        ),
    ] = None

    def is_heard(self, now_us: int) -> bool:
        """Whether somebody is told now."""
        return self.enabled and (
            self.muted_until is None or us_from_iso(self.muted_until) <= now_us
        )


class PatchAlertSetting(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of PATCH /notifications/alerts for one category: absent is unchanged, null is the default."""

    category: Annotated[Category, Meta(description="What the alerts are about.")]
    enabled: Annotated[bool | UnsetType, Meta(description="Whether anybody is told.")] = UNSET
    thresholds: (
        Annotated[
            list[PercentInput],
            Meta(max_length=100, description="Which percentages are told of. Null is all."),
        ]
        | UnsetType
        | None
    ) = UNSET
    channels: (
        Annotated[
            list[str],
            Meta(
                max_length=100,
                description="The ids of the destinations that hear of it. Null is all that subscribe to it.",
            ),
        ]
        | UnsetType
        | None
    ) = UNSET
    email_roles: (
        Annotated[
            list[EmailRole],
            Meta(
                max_length=8,
                description="Members with which roles are told by mail. Null is the default.",
            ),
        ]
        | UnsetType
        | None
    ) = UNSET
    muted_until: Annotated[
        MomentInput | UnsetType | None,
        Meta(description="Until when nobody is told. Null ends it."),
    ] = UNSET


def setting(connection: Connection, organization_id: str, category: Category) -> AlertSetting:
    """What an organization wants of one category."""
    row = connection.row(
        "SELECT enabled, thresholds, channels, email_roles, muted_until FROM alert_setting"
        " WHERE organization_id = ? AND category = ?",
        (organization_id, category),
    )
    default = list(EMAIL_ROLES[category])
    if row is None:
        return AlertSetting(category=category, email_roles=default)
    enabled, thresholds, channels, email_roles, muted_us = row
    return AlertSetting(
        category=category,
        enabled=bool(enabled),
        thresholds=_list(thresholds),
        channels=_list(channels),
        email_roles=default if email_roles is None else msgspec.json.decode(email_roles),
        muted_until=None if muted_us is None else iso(muted_us),
    )


def list_settings(connection: Connection, organization_id: str) -> list[AlertSetting]:
    """All categories, in the order of the page."""
    return [setting(connection, organization_id, category) for category in EMAIL_ROLES]


def patch_setting(
    connection: Connection, organization_id: str, changes: PatchAlertSetting
) -> AlertSetting:
    """Change one category. Owners always get mail about a disabled destination."""
    fields: dict[str, Any] = {
        name: value
        for name in ("enabled", "thresholds", "channels", "email_roles")
        if (value := getattr(changes, name)) is not UNSET
    }
    if changes.muted_until is not UNSET:
        fields["muted_until"] = _moment(changes.muted_until)
    _check(connection, organization_id, changes.category, fields)
    if fields:
        connection.run(
            AlertSettingTable.insert(
                organization_id=organization_id, category=changes.category, **fields
            ).on_conflict(
                conflict_target=[AlertSettingTable.organization_id, AlertSettingTable.category],
                update=fields,
            )
        )
    return setting(connection, organization_id, changes.category)


def _list(text: str | None) -> Any:
    return None if text is None else msgspec.json.decode(text)


def _moment(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return us_from_iso(text)
    except TimeError as error:
        raise InvalidValue(f"`muted_until` {error}", param="muted_until") from None


def _check(
    connection: Connection, organization_id: str, category: Category, fields: dict[str, Any]
) -> None:
    thresholds = fields.get("thresholds")
    if thresholds is not None:
        if not all(1 <= percent <= 100 for percent in thresholds):
            raise InvalidValue("thresholds takes percentages from 1 to 100.", param="thresholds")
        fields["thresholds"] = sorted(set(thresholds))
    for index, destination_id in enumerate(fields.get("channels") or ()):
        own = DestinationTable.select().where(
            (DestinationTable.id == destination_id)
            & (DestinationTable.organization_id == organization_id)
        )
        if not connection.count(own):
            raise NotFound("No such destination.", param=f"channels[{index}]")
    roles = fields.get("email_roles")
    if category == "destination" and roles is not None and "owner" not in roles:
        raise InvalidValue(
            "Owners are always told by email that a destination was disabled; keep owner in email_roles.",
            param="email_roles",
        )
