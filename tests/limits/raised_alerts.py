"""What was told to whom: the rows of alerts and of their deliveries."""

from decimal import Decimal
from typing import Any

import msgspec

from gwd.store import Connection
from tests.limits.till import decoded
from tests.support.node import Gateway


class RaisedAlert(msgspec.Struct, frozen=True, kw_only=True):
    """One alert. `recipients` are the addresses of its deliveries."""

    type: str
    category: str
    severity: str
    title: str
    message: str
    url: str
    data: dict[str, Any]
    recipients: tuple[str, ...]


async def raised_alerts(gateway: Gateway, category: str | None = None) -> list[RaisedAlert]:
    """All alerts (of one category), oldest first."""
    await gateway.at_rest()
    found: list[RaisedAlert] = await gateway.store.read(_raised_alerts)
    return [one for one in found if category in (None, one.category)]


async def percents(gateway: Gateway, category: str) -> list[int]:
    """The thresholds that were told, oldest first."""
    return [one.data["threshold_percent"] for one in await raised_alerts(gateway, category)]


def _raised_alerts(connection: Connection) -> list[RaisedAlert]:
    rows = connection.rows(
        "SELECT id, type, category, severity, title, message, url, data FROM alert ORDER BY created_at, rowid"
    )
    return [
        RaisedAlert(
            type=row[1],
            category=row[2],
            severity=row[3],
            title=row[4],
            message=row[5],
            url=row[6],
            data=decoded(row[7].encode()),
            recipients=tuple(
                each[0]
                for each in connection.rows(
                    "SELECT recipient FROM delivery WHERE event_id = ? AND recipient IS NOT NULL ORDER BY rowid",
                    (row[0],),
                )
            ),
        )
        for row in rows
    ]


def cents(amount: Any) -> int:
    """USD as whole cents."""
    return int(Decimal(str(amount)) * 100)
