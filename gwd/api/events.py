"""GET /notifications/events: the alerts that were raised, whether or not they were sent anywhere."""

from typing import Any, Final, get_args

from gwd.alerts import service as alerts
from gwd.alerts.categories import Category
from gwd.alerts.service import AlertFilter, Severity
from gwd.api.management import Answer, Call, walked
from gwd.store import Connection

FILTERS: Final = ("category", "type", "severity")


def list_(connection: Connection, call: Call) -> Answer:
    """Newest first."""
    asked = call.walk()
    category: Any = call.choice("category", get_args(Category))
    severity: Any = call.choice("severity", get_args(Severity))
    events, total = alerts.list_events(
        connection,
        call.organization_id,
        AlertFilter(
            category=category,
            type=call.query.get("type"),
            severity=severity,
            from_us=call.moment("from"),
            to_us=call.moment("to"),
        ),
        limit=asked.size,
        offset=asked.offset,
        after=asked.after,
        before=asked.before,
    )
    return walked(asked, events, total, alerts.record, lambda event: event.id)
