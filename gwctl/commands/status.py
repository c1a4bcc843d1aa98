"""`gwctl status`: the gateway on one page."""

import time
from typing import Annotated, Any

from gwctl import text
from gwctl.commands.help import gateway_version
from gwctl.errors import NOT_ALLOWED, NOT_FOUND, CommandError
from gwctl.records import data
from gwctl.session import Session
from gwctl.tables import pick
from gwctl.tree import Noun
from gwctl.values import flag, opt

top = Noun("", "The gateway on one page.")
NOUNS = [top]


@top.verb("status", "gwctl status", "gwctl status --watch")
def status(
    session: Session,
    watch: Annotated[bool, flag("--watch", "Redraw until interrupted.")] = False,
    interval: Annotated[int, opt("--interval", "SECONDS", "How often to redraw; 2.")] = 2,
) -> None:
    """Show version, traffic, money, endpoints and the addresses clients use."""
    while True:
        record = _gather(session)
        if session.out.shape.machine:
            session.out.data(record)
        else:
            if watch:
                session.out.clear()
            session.out.block("\n".join(_lines(session, record)) + "\n")
        if not watch:
            return
        time.sleep(max(interval, 1))


def _gather(session: Session) -> dict[str, Any]:
    """The operator's view; for other roles what they may see: the key and the credit."""
    try:
        found = data(session.api.get("/operator/status"))
        record = dict(found)
    except CommandError as error:
        if error.exit_code not in (NOT_ALLOWED, NOT_FOUND) or error.code == "invalid_api_key":
            raise
        record = {"version": gateway_version(session)}
    if "credits" not in record:
        record["credits"] = data(session.api.get("/credits"))
    return {**record, "base_urls": base_urls(session.settings.url())}


def base_urls(url: str) -> dict[str, str]:
    """What each kind of client takes as its base address."""
    return {
        "openai": url,
        "anthropic": url.removesuffix("/v1"),
        "claude code": url.removesuffix("/v1"),
        "codex": url,
    }


def _lines(session: Session, record: dict[str, Any]) -> list[str]:
    url = session.settings.url()
    up = pick(record, "uptime_s")
    uptime = f"   up {text.duration(float(up))}" if up is not None else ""
    version = record.get("version", "unknown")
    name = "gwd" if version == "unknown" else f"gwd {version}"
    lines = [f"{name} at {url}{uptime}   profile {session.settings.profile}"]
    lines += _traffic(record)
    credit = record["credits"]
    owned, free, held = (text.money(credit.get(n)) for n in ("balance", "available", "reserved"))
    lines.append(f"balance     {owned}   available {free}   holds {held}")
    lines += _endpoints(record)
    for client, address in record["base_urls"].items():
        lines.append(f"{client:<11} {address}")
    return lines


def _traffic(record: dict[str, Any]) -> list[str]:
    seen = record.get("requests") or record.get("last_hour")
    if not isinstance(seen, dict):
        return []
    parts = [f"last hour {text.count(seen.get('last_hour', seen.get('requests')))}"]
    rate = text.decimal(seen.get("error_rate"))
    if rate is not None:
        parts.append(f"errors {rate * 100:.1f} %")
    if seen.get("p50_ttft_ms") is not None:
        parts.append(f"p50 first token {text.count(seen['p50_ttft_ms'])} ms")
    return [f"requests    {'   '.join(parts)}"]


def _endpoints(record: dict[str, Any]) -> list[str]:
    endpoints = record.get("endpoints")
    if not isinstance(endpoints, list):
        return []
    unwell = [e for e in endpoints if e.get("status") not in (None, "healthy", "live", "ok")]
    lines = [f"endpoints   {len(endpoints) - len(unwell)} of {len(endpoints)} healthy"]
    for endpoint in unwell[:5]:
        why = f" ({endpoint['reason']})" if endpoint.get("reason") else ""
        name = f"{endpoint.get('model')} {endpoint.get('tag')}"
        lines.append(f"            {name}: {endpoint.get('status')}{why}")
    return lines
