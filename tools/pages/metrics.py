"""docs/metrics.md: every family of /metrics with its type, labels and meaning, and when somebody should look."""

from gwd.api.metrics import FAMILIES, PROCESS, Family
from tools.pages.markdown import page as whole
from tools.pages.markdown import table

_INTRODUCTION = """\
`GET /metrics` at the root of the node's address answers in Prometheus text. With `[server] metrics_port` set it is on
that listener only. Labels are routes, codes, reasons, adapters and providers: closed sets, and never a key, a user or
an organization. A histogram `NAME` is served as `NAME_bucket` (with `le`), `NAME_sum` and `NAME_count`."""


def page() -> str:
    """The page."""
    rows = [
        (f"`{_served(family)}`", family.kind, _labels(family.labels), family.text, family.alert)
        for family in FAMILIES
    ]
    process = [
        (
            f"`{metric.name}{'_total' * (metric.type == 'counter')}`",
            metric.type,
            metric.documentation,
        )
        for metric in PROCESS.collect()
    ]
    return whole(
        "Metrics",
        _INTRODUCTION,
        table(("metric", "type", "labels", "meaning", "worth an alert"), rows),
        "## The process",
        table(("metric", "type", "meaning"), process),
    )


def _served(family: Family) -> str:
    return f"{family.name}_total" if family.kind == "counter" else family.name


def _labels(labels: tuple[str, ...]) -> str:
    return ", ".join(f"`{label}`" for label in labels)
