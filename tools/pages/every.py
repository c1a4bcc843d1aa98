"""Every generated page: a new one is one line here."""

from tools.pages import alerts, api, commands_page, errors, logs, manual, metrics, schema, settings


def pages() -> dict[str, str]:
    """Path of each page, from the root of the project, and its text."""
    return {
        "docs/api.md": api.page(),
        "docs/settings.md": settings.page(),
        "gwctl/schema.json": schema.page(),
        "docs/errors.md": errors.page(),
        "docs/metrics.md": metrics.page(),
        "docs/logs.md": logs.page(),
        "docs/logs.schema.json": logs.schema(),
        "docs/alert-types.md": alerts.page(),
        "docs/gwctl.md": commands_page.page(),
        **{f"docs/man/{name}": text for name, text in manual.pages().items()},
    }
