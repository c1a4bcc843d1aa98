"""Who hears that a vendor turns away a key: the organization whose own it is, for the platform's keys the operator's.

Once per trouble: it ends when the key serves again or is changed.
"""

from collections.abc import Mapping
from functools import partial

from gwd import alerts
from gwd.alerts import notices
from gwd.core.clock import iso
from gwd.credentials import trouble as credential_trouble
from gwd.credentials.trouble import Trouble, Troubled
from gwd.orgs import organizations
from gwd.orgs.settings import is_deleted
from gwd.store import Connection


def note_trouble(connection: Connection, news: Mapping[str, Trouble], *, app_url: str) -> None:
    """Put what vendors said on the credentials' records, and raise or close the alerts of it.

    No alert can undo what is on record.
    """
    for credential_id, trouble in news.items():
        known = credential_trouble.note(connection, credential_id, trouble)
        if known is None:
            continue
        if trouble.reason is None:
            alerts.clear(connection, _mark_name(credential_id))
        elif trouble.is_certain:
            connection.in_savepoint(
                "the alert about a provider key",
                partial(_raise_failing, connection, known, trouble, app_url),
            )


def _raise_failing(connection: Connection, known: Troubled, trouble: Trouble, app_url: str) -> None:
    assert trouble.reason is not None
    organization_id = known.organization_id or organizations.operator_id(connection)
    if organization_id is None or is_deleted(connection, organization_id):
        return
    alerts.raise_(
        connection,
        organization_id,
        notices.provider_key_failing(
            credential_id=known.id,
            name=known.name,
            label=known.label,
            provider=known.provider,
            is_own=known.organization_id is not None,
            reason=trouble.reason,
            first_seen_at=iso(trouble.first_us),
            failures=trouble.failures,
            app_url=app_url,
        ),
        now_us=trouble.last_us,
        # A change of the key raises the level: what fails after it is another trouble.
        once=alerts.Mark(name=_mark_name(known.id), value=known.updated_at),
    )


def _mark_name(credential_id: str) -> str:
    return f"provider_key:{credential_id}"
