"""Who used a model lately, and for how much: what people are told before it is retired or its price changes."""

from typing import Final

import msgspec

from gwd.activity.lists import number_at
from gwd.store import Connection

_BY_KEY: Final = (
    "SELECT key_id, workspace_id, COUNT(*), COALESCE(SUM(cost_total_nano), 0)"
    " FROM generation INDEXED BY generation_by_model"
    " WHERE organization_id = ? AND model = ? AND rowid >= ? AND status <> 'refused'"
    " GROUP BY key_id, workspace_id ORDER BY 3 DESC"
)


class KeyUsage(msgspec.Struct, frozen=True, kw_only=True):
    """What one key did with a model."""

    key_id: str
    workspace_id: str | None
    requests: int
    charged_nano: int


class ModelUsage(msgspec.Struct, frozen=True, kw_only=True):
    """What an organization did with a model, by key, the busiest first."""

    keys: tuple[KeyUsage, ...]

    @property
    def requests(self) -> int:
        return sum(key.requests for key in self.keys)

    @property
    def charged_nano(self) -> int:
        return sum(key.charged_nano for key in self.keys)


def usage_of_model(
    connection: Connection, organization_id: str, model: str, *, since_us: int
) -> ModelUsage:
    """Requests that ended since, refused ones aside."""
    first = number_at(connection, organization_id, since_us)
    rows = connection.rows(_BY_KEY, (organization_id, model, first))
    return ModelUsage(
        keys=tuple(
            KeyUsage(key_id=key_id, workspace_id=workspace_id, requests=count, charged_nano=nano)
            for key_id, workspace_id, count, nano in rows
        )
    )
