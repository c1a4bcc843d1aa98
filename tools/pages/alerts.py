"""docs/alert-types.md: every type of alert, when it is raised, who hears of it, and what a webhook carries."""

import msgspec

from gwd.alerts import samples
from gwd.alerts.categories import EMAIL_ROLES
from gwd.alerts.service import Alert, NewAlert, record
from gwd.core.clock import us_from_iso
from tools.pages.markdown import page as whole
from tools.pages.markdown import table

_NOW_US = us_from_iso("2026-11-29T12:00:00Z")
_APP = "https://gate.example.com"

_INTRODUCTION = """\
What is told to whom, and how, is in [alerts.md](alerts.md). The category is what destinations subscribe to
(`--event`) and what `gwctl alert settings` changes. A severity is `info`, `warning` or `critical`; the table has the
usual one."""

_MAIL = """\
Members with these roles get mail unless the organization says otherwise. An alert with thresholds is mailed from
`alert_email_min_percent` (80) on; owners hear of a disabled destination even where the category is off or muted.
Destinations hear of every category to which they subscribe."""

_PAYLOADS = """\
The body of a webhook, and what `GET /notifications/events/{id}` answers. `data` depends on the type; fields may be
added to it. These are the samples that `gwctl webhook trigger NAME TYPE` sends: a real one has neither `[test]` in its
title nor `test` in its data."""


def page() -> str:
    """The page."""
    made = {type_: _sample(type_) for type_ in samples.TYPES}
    types = [
        (_link(type_), f"`{alert.category}`", alert.severity, samples.WHEN[type_])
        for type_, alert in made.items()
    ]
    roles = [
        (
            f"`{category}`",
            ", ".join(f"`{t}`" for t, a in made.items() if a.category == category) or "none yet",
            ", ".join(roles) or "nobody",
        )
        for category, roles in EMAIL_ROLES.items()
    ]
    return whole(
        "Types of alerts",
        _INTRODUCTION,
        table(("type", "category", "severity", "when"), types),
        "## Who gets mail",
        _MAIL,
        table(("category", "types", "roles"), roles),
        "## What a webhook carries",
        _PAYLOADS,
        *(f"### {type_}\n\n```json\n{_body(alert)}\n```" for type_, alert in made.items()),
    )


def _sample(type_: str) -> NewAlert:
    made = samples.sample(type_, app_url=_APP, now_us=_NOW_US)
    assert made is not None
    return made


def _body(alert: NewAlert) -> str:
    raised = Alert(
        id="evt_6vR2k8LqZ0TnW4xB1cYd",
        organization_id="org_2mFh7PsXa9VtQ3eJ5uGr",
        category=alert.category,
        type=alert.type,
        severity=alert.severity,
        title=alert.title,
        message=alert.message,
        url=alert.url,
        data={"organization_id": "org_2mFh7PsXa9VtQ3eJ5uGr", **alert.data},
        created_at=_NOW_US,
    )
    return msgspec.json.format(msgspec.json.encode(record(raised)), indent=2).decode()


def _link(type_: str) -> str:
    """To its heading, whose anchor is as code hosts make it."""
    return f"[`{type_}`](#{type_.replace('.', '')})"
