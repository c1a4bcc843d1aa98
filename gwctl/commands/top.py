"""`gwctl top`: the gateway as it works, redrawn in place."""

import shutil
import time
from collections import deque
from decimal import Decimal
from typing import Annotated, Any

from gwctl import chart, layout, text
from gwctl.commands.status import ailments
from gwctl.records import data
from gwctl.session import Session
from gwctl.tables import Column, of
from gwctl.time_input import utc_now
from gwctl.tree import Noun
from gwctl.values import flag, whole

top = Noun("", "The gateway as it works.")
NOUNS = [top]

LONGEST_S = 3_600
KEPT = 60
SHOWN = 8
RESTS = 5
INDENT = 12
MIB = 1_048_576

_ENDPOINTS = of(
    "EndpointHealthRecord",
    Column("SLOWEST", "model", name=True),
    Column("ENDPOINT", "tag"),
    Column("FIRST TOKEN", "p50_ttft_ms"),
    Column("TOKENS/S", "p50_tokens_per_second", leaves=2),
    Column("CALLS", "attempts", leaves=1),
    Column("FAILED", "failures"),
    Column("NOW", "in_flight"),
    Column("STATE", lambda row: str(row.get("status")).replace("_", " "), "state"),
)


@top.verb("top", "gwctl top", "gwctl top --once --json last_minute,vitals")
def show(
    session: Session,
    once: Annotated[bool, flag("--once", "Show it once; so it is without a terminal.")] = False,
    interval: Annotated[int, whole("--interval", "SECONDS", "How often to ask; 2.")] = 2,
) -> None:
    """Show requests, streams, cost and tokens of the last minute, and the slowest and resting endpoints.

    With --jsonl one line for each look, until interrupted.
    """
    pause_s = min(max(interval, 1), LONGEST_S)
    shape = session.out.shape
    costs: deque[Decimal] = deque(maxlen=KEPT)
    if shape.machine:
        session.out.data(_look(session))
        while shape.lines and not once:
            session.out.flush()
            time.sleep(pause_s)
            session.out.data(_look(session))
        return
    if once or not session.out.terminal:
        session.out.block(_drawn(session, _look(session), costs))
        return
    with session.out.live() as redraw:
        while True:
            redraw(_drawn(session, _look(session), costs))
            time.sleep(pause_s)


def _look(session: Session) -> dict[str, Any]:
    record: dict[str, Any] = data(session.api.get("/operator/status"))
    return record


def _drawn(session: Session, record: dict[str, Any], costs: "deque[Decimal]") -> str:
    """The whole view, no line wider than the terminal; `costs` are the earlier looks' and get this one's."""
    width = shutil.get_terminal_size().columns if session.out.terminal else None
    minute = record["last_minute"]
    costs.append(text.decimal(minute["charged"]) or Decimal(0))
    lines = [*_head(session, record), *_requests(record, minute)]
    lines.append(["tokens", *_tokens(minute)])
    lines.append(["cost", *_cost(session, record, minute, costs)])
    lines.append(["node", *_vitals(record["vitals"])])
    shown = [line for name, *parts in lines for line in _wrapped(name, parts, width)]
    return "".join(f"{line}\n" for line in shown) + _endpoints(session, record["endpoints"], width)


def _head(session: Session, record: dict[str, Any]) -> list[list[str]]:
    url = text.mask_keys(session.settings.url())
    up = text.duration(float(text.decimal(record["uptime_s"]) or 0))
    lines = [[f"gwd {record['version']}", f"up {up}", url]]
    if record.get("quarantine"):
        lines.append(["QUARANTINE", f"{record['quarantine']}: inference is refused"])
    if (record.get("clock") or {}).get("do"):
        lines.append(["CLOCK", str(record["clock"]["message"])])
    if record.get("draining"):
        lines.append(["DRAINING", "no new requests are taken"])
    return lines


def _requests(record: dict[str, Any], minute: dict[str, Any]) -> list[list[str]]:
    hour = record["requests"]
    count = text.decimal(minute["requests"]) or Decimal(0)
    errors = text.decimal(minute["errors"]) or Decimal(0)
    parts = [
        f"{text.count(count)} a minute",
        f"errors {text.share(errors * 100 / count, 1) if count else '0 %'}",
        f"refused {text.count(minute['refusals'])}",
        f"now {text.count(hour['in_flight'])}, {text.count(hour['streams'])} streamed",
    ]
    if hour.get("p50_ttft_ms") is not None:
        parts.append(f"p50 first token {text.count(hour['p50_ttft_ms'])} ms")
    return [["requests", *parts]]


def _tokens(minute: dict[str, Any]) -> list[str]:
    into, out = text.count(minute["tokens_prompt"]), text.count(minute["tokens_completion"])
    return [f"{into} in a minute", f"{out} out a minute"]


def _cost(
    session: Session, record: dict[str, Any], minute: dict[str, Any], costs: "deque[Decimal]"
) -> list[str]:
    parts = [f"{text.money(minute['charged'])} a minute"]
    if len(costs) > 1:
        parts.append(chart.sparkline(list(costs), KEPT, ascii_only=not session.out.unicode))
    parts.append(f"today {text.money(record['spent_today'])}")
    parts.append(f"available {text.exact_money(record['credits']['available'])}")
    return parts


def _vitals(vitals: dict[str, Any]) -> list[str]:
    free_bytes = text.decimal(vitals["disk_free_bytes"]) or Decimal(0)
    return [
        f"loop lag {text.count(vitals['loop_lag_ms'])} ms",
        f"writer queue {text.count(vitals['writer_queue'])}",
        f"holds {text.count(vitals['open_holds'])}",
        f"connections {text.count(vitals['connections'])}",
        f"alerts waiting {text.count(vitals['deliveries_pending'])}",
        f"disk {text.count(int(free_bytes) // MIB)} MiB free",
    ]


def _wrapped(name: str, parts: list[str], width: int | None) -> list[str]:
    """`name   part   part`, in as many lines as the width asks for; a part is torn by nothing but its own length."""
    lines = [f"{name:<{INDENT}}{parts[0]}"]
    for part in parts[1:]:
        joined = f"{lines[-1]}   {part}"
        if width is not None and layout.cells(joined) > width:
            lines.append(" " * INDENT + part)
        else:
            lines[-1] = joined
    return [_cut(line, width) for line in lines]


def _cut(line: str, width: int | None) -> str:
    if width is None or layout.cells(line) <= width:
        return line
    return layout.fitted(line, width).rstrip()


def _endpoints(session: Session, endpoints: list[dict[str, Any]], width: int | None) -> str:
    """The slowest of those that were measured, then what rests and why."""
    measured = [each for each in endpoints if each.get("p50_ttft_ms") is not None]
    slowest = sorted(measured, key=lambda each: -each["p50_ttft_ms"])[:SHOWN]
    healthy = sum(each.get("status") == "healthy" for each in endpoints)
    unwell = [
        line
        for each in endpoints
        if each.get("status") != "healthy" or each.get("rests")
        for line in ailments(each)
    ]
    lines = [_cut(f"{'endpoints':<{INDENT}}{healthy} of {len(endpoints)} healthy", width)]
    lines += [_cut(f"  {text.clean_line(line)}", width) for line in unwell[:RESTS]]
    if len(unwell) > RESTS:
        lines.append(_cut(f"  and {len(unwell) - RESTS} more: gwctl endpoint health", width))
    drawn = "".join(f"{line}\n" for line in lines)
    if not slowest:
        return drawn
    table = layout.drawn(slowest, _ENDPOINTS, now=utc_now(), width=width, color=False)
    return f"{drawn}\n{table.text}"
