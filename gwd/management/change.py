"""Who changes something, from where and when: what every use case here is told, in one value."""

from typing import Any

import msgspec

from gwd.audit import service as audit
from gwd.audit.service import Origin
from gwd.core.caller import Caller
from gwd.store import Connection


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """The caller who changes something in their own organization."""

    actor: Caller
    now_us: int
    origin: Origin | None = None

    @property
    def organization_id(self) -> str:
        """The organization that is changed."""
        return self.actor.organization_id


def note(
    connection: Connection,
    change: Change,
    action: str,
    subject: tuple[str, str],
    details: dict[str, Any],
    *,
    organization_id: str | None = None,
) -> None:
    """Write the change into the audit trail; `subject` is type and id."""
    audit.record(
        connection,
        change.actor,
        action,
        *subject,
        details,
        now_us=change.now_us,
        organization_id=organization_id,
        origin=change.origin,
    )


def named(changes: msgspec.Struct) -> dict[str, Any]:
    """The fields a PATCH names, as the audit trail tells them."""
    return {
        name: value
        for name in changes.__struct_fields__
        if (value := getattr(changes, name)) is not msgspec.UNSET
    }
