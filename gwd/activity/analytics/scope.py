"""Whose generations a caller may see, as conditions that records and day sums share."""

import msgspec

from gwd.store.connection import Value


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """One organization; of it one workspace or certain keys, where the caller sees no more."""

    organization_id: str
    workspace_id: str | None = None
    key_ids: tuple[str, ...] | None = None

    def conditions(self) -> tuple[list[str], list[Value]]:
        """SQL and its values."""
        conditions, values = ["organization_id = ?"], [self.organization_id]
        if self.workspace_id is not None:
            conditions.append("workspace_id = ?")
            values.append(self.workspace_id)
        if self.key_ids is not None:
            conditions.append("key_id IN (SELECT value FROM json_each(?))")
            values.append(msgspec.json.encode(self.key_ids).decode())
        return conditions, list[Value](values)
