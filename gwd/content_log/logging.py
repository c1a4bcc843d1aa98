"""Whose requests an organization has stored, read once from its settings and asked at every request."""

import msgspec

from gwd.core.personal_data import Redactor
from gwd.keys.admission import families_of_ids
from gwd.orgs.content_log import ContentLog
from gwd.store import Connection


class Logging(msgspec.Struct, frozen=True, kw_only=True):
    """`families` and `workspaces` None: all of them. `redactor` hides what is to be hidden."""

    families: frozenset[str] | None
    workspaces: frozenset[str] | None
    redactor: Redactor

    def wants(self, *, family_id: str, workspace_id: str | None) -> bool:
        """Whether a request of a key of this family, in this workspace, is stored."""
        if self.families is None and self.workspaces is None:
            return True
        return family_id in (self.families or ()) or workspace_id in (self.workspaces or ())


def logging_of(
    connection: Connection, organization_id: str, wanted: ContentLog | None
) -> Logging | None:
    """None where nothing is stored, so that nothing has to be asked."""
    if wanted is None:
        return None
    return Logging(
        families=None
        if wanted.keys is None
        else frozenset(families_of_ids(connection, organization_id, wanted.keys).values()),
        workspaces=None if wanted.workspaces is None else frozenset(wanted.workspaces),
        redactor=wanted.redactor(),
    )
