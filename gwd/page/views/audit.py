"""The audit trail: who changed what, newest first."""

from typing import Final

from gwd.page.answer import Shown
from gwd.page.ask import Ask
from gwd.page.request import Field
from gwd.page.table import Act, Page
from gwd.page.views.keys import people

_PLACES: Final = {
    "key": "/keys/",
    "budget": "/budgets/",
    "destination": "/settings/notifications/",
    "member": "/settings/people/",
    "byok": "/settings/provider-keys/",
    "model": "/models/",
}


def audit(ask: Ask) -> Shown:
    """What was changed, with links to what is still there."""
    wanted = {
        "action": ask.query.or_none("action"),
        "actor": ask.query.or_none("actor"),
        "subject_id": ask.query.or_none("subject"),
        "after": ask.query.or_none("after"),
        "limit": 50,
    }
    found = ask("/audit", query=wanted)
    values = {
        "lines": found["data"],
        "next": found["next"],
        "names": people(ask),
        "subject_places": _PLACES,
        "filters": {name: ask.query.text(name) for name in ("action", "actor", "subject")},
    }
    return Shown(template="audit.html", values=values)


PAGES: Final = (
    Page(
        path="/settings/audit",
        title="Audit",
        view=audit,
        right="audit.read",
        query=(
            Field("action", 100),
            Field("actor", 100),
            Field("subject", 300),
            Field("after", 100),
        ),
        nav="Audit",
        icon="audit",
        is_setting=True,
    ),
)
ACTS: Final[tuple[Act, ...]] = ()
