"""GET /notifications/events: the alerts that were raised, whether or not they were sent anywhere."""

from typing import Final, get_args

from gwd.alerts import service as alerts
from gwd.alerts.categories import Category
from gwd.alerts.service import AlertFilter, Severity
from gwd.api.management import Answer, Call, one, walked
from gwd.api.query import Query, Text, Words
from gwd.store import Connection

FILTERS: Final = (
    Query("category", Words(get_args(Category)), "Only alerts of this category."),
    Query("type", Text(), "Only alerts of this type."),
    Query("severity", Words(get_args(Severity)), "Only alerts of this severity."),
)


def list_(connection: Connection, call: Call) -> Answer:
    """Alerts that were raised, newest first.

    Newest first.
    """
    asked = call.walk()
    events, total = alerts.list_events(
        connection,
        call.organization_id,
        AlertFilter(
            category=call.query.get("category"),
            type=call.query.get("type"),
            severity=call.query.get("severity"),
            from_us=call.query.get("from"),
            to_us=call.query.get("to"),
        ),
        limit=asked.size,
        offset=asked.offset,
        after=asked.after,
        before=asked.before,
    )
    return walked(asked, events, total, alerts.record, lambda event: event.id)


def get(connection: Connection, call: Call) -> Answer:
    """One alert."""
    return one(alerts.record(alerts.get(connection, call.organization_id, call.path["event"])))
