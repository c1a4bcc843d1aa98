"""The numbers of the bench as a Markdown table, with the ratio of gwd to each other peer."""

import statistics
from collections.abc import Mapping, Sequence

from tests.bench.load import Numbers

# field, title, format; whether more is better, or None where neither is
ROWS: Sequence[tuple[str, str, str, bool | None]] = (
    ("startup_s", "start to first 200, s", ".2f", False),
    ("rss_idle_mb", "RSS idle, MB", ".0f", False),
    ("rss_after_mb", "RSS after load, MB", ".0f", False),
    ("rps_c32", "rps, 32 conns", ".0f", True),
    ("rps_c128", "rps, 128 conns", ".0f", True),
    ("p50us_c32", "p50 at 32 conns, us", ".0f", False),
    ("p99us_c32", "p99 at 32 conns, us", ".0f", False),
    ("cpu_us_req_c32", "gateway CPU us/request", ".0f", False),
    ("cores_c32", "gateway cores used, 32 conns", ".2f", None),
    ("others_cores", "cores used by others", ".2f", None),
    ("add50_us", "added p50 at 50 rps, us", ".0f", False),
    ("add99_us", "added p99 at 50 rps, us", ".0f", False),
    ("sse_rps", "streams/s, 32 conns", ".0f", True),
    ("sse_events_s", "events/s, 32 conns", ".0f", True),
    ("sse_cpu_us_req", "gateway CPU us/stream", ".0f", False),
    ("sse_addttfb_us", "added first-byte p50, 5 streams/s, us", ".0f", False),
    ("paced_events_s", "paced: events/s", ".0f", True),
    ("paced_cpu_us_event", "paced: CPU us/event", ".1f", False),
    ("paced_cores", "paced: cores used", ".2f", None),
)
NOT_COMPARED = ("gwd", "direct")


def table(raw: Mapping[str, Sequence[Numbers]]) -> str:
    """One row per measure that any peer has; one column per peer."""
    others = [name for name in raw if name not in NOT_COMPARED and "gwd" in raw]
    lines = [["measure", *raw, *(f"gwd/{name}" for name in others)]]
    for field, title, form, more_is_better in ROWS:
        values = {name: _values(passes, field) for name, passes in raw.items()}
        if not any(values.values()):
            continue
        named = f"{title} (higher is better)" if more_is_better else title
        cells = [_cell(found, form) for found in values.values()]
        ratios = [
            "-" if more_is_better is None else _ratio(values["gwd"], values[name])
            for name in others
        ]
        lines.append([named, *cells, *ratios])
    widths = [max(len(line[place]) for line in lines) for place in range(len(lines[0]))]
    rows = [
        "| "
        + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        + " |"
        for line in lines
    ]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([rows[0], rule, *rows[1:]])


def _values(passes: Sequence[Numbers], field: str) -> list[float]:
    return [numbers[field] for numbers in passes if numbers.get(field) is not None]


def _cell(values: Sequence[float], form: str) -> str:
    if not values:
        return "-"
    middle = format(statistics.median(values), form)
    if len(values) == 1:
        return middle
    return f"{middle} [{format(min(values), form)}..{format(max(values), form)}]"


def _ratio(ours: Sequence[float], theirs: Sequence[float]) -> str:
    if not ours or not theirs or not statistics.median(theirs):
        return "-"
    return f"{statistics.median(ours) / statistics.median(theirs):.2f}"
