"""`gwctl status`: the gateway on one page."""

import time
from typing import Annotated, Any

from gwctl import text
from gwctl.commands.help import gateway_version
from gwctl.errors import NOT_ALLOWED, NOT_FOUND, CommandError
from gwctl.records import data
from gwctl.session import Session
from gwctl.time_input import utc_now
from gwctl.tree import Noun
from gwctl.values import flag, whole

top = Noun("", "The gateway on one page.")
NOUNS = [top]

SHOWN = 5
LONGEST_S = 86_400
LONGEST_TEXT = 100


@top.verb("status", "gwctl status", "gwctl status --watch")
def status(
    session: Session,
    watch: Annotated[bool, flag("--watch", "Redraw until interrupted.")] = False,
    interval: Annotated[int, whole("--interval", "SECONDS", "How often to redraw; 2.")] = 2,
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
        time.sleep(min(max(interval, 1), LONGEST_S))


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
    return {**record, "base_urls": base_urls(text.mask_keys(session.settings.url()))}


def base_urls(url: str) -> dict[str, str]:
    """What each kind of client takes as its base address."""
    return {
        "openai": url,
        "anthropic": url.removesuffix("/v1"),
        "claude code": url.removesuffix("/v1"),
        "codex": url,
    }


def _lines(session: Session, record: dict[str, Any]) -> list[str]:
    url = text.mask_keys(session.settings.url())
    up = text.decimal(record.get("uptime_s"))
    uptime = f"   up {text.duration(float(up))}" if up is not None else ""
    version = record.get("version", "unknown")
    name = "gwd" if version == "unknown" else f"gwd {version}"
    lines = [f"{name} at {url}{uptime}   profile {session.settings.profile}"]
    if record.get("quarantine"):
        lines.append(f"QUARANTINE  {record['quarantine']}: inference is refused")
    clock = record.get("clock") or {}
    if clock.get("do"):
        lines.append(f"CLOCK       {clock.get('message')}; it says {clock.get('machine')}")
        lines.append(f"            {clock['do']}")
    backups = record.get("backups") or {}
    if backups.get("overdue"):
        lines.append(f"BACKUP      {_backup(backups)}")
    if record.get("draining"):
        lines.append("DRAINING    no new requests are taken")
    lines += [*_traffic(record), _money(record), *_endpoints(record)]
    lines += [f"{client:<11} {address}" for client, address in record["base_urls"].items()]
    return lines


def _backup(backups: dict[str, Any]) -> str:
    """How old the newest copy is, and why there is no newer one."""
    newest = backups.get("newest_at")
    found = f"the newest is of {newest}" if newest else "there is none"
    why = f": {backups['failure']}" if backups.get("failure") else ""
    return f"overdue in {backups.get('directory')}, {found}{why}"


def _traffic(record: dict[str, Any]) -> list[str]:
    seen = record.get("requests")
    if not isinstance(seen, dict):
        return []
    parts = [f"last hour {text.count(seen.get('last_hour'))}"]
    rate = text.decimal(seen.get("error_rate"))
    if rate is not None:
        parts.append(f"errors {text.share(rate * 100, 1)}")
    if seen.get("refusals"):
        parts.append(f"refused {text.count(seen['refusals'])}")
    if seen.get("p50_ttft_ms") is not None:
        parts.append(f"p50 first token {text.count(seen['p50_ttft_ms'])} ms")
    return [f"requests    {'   '.join(parts)}"]


def _money(record: dict[str, Any]) -> str:
    credit, holds = record["credits"], record.get("holds") or {}
    parts = [
        text.exact_money(credit.get("balance")),
        f"available {text.exact_money(credit.get('available'))}",
    ]
    if record.get("spent_today") is not None:
        parts.append(f"spent today {text.money(record['spent_today'])}")
    held = holds.get("amount", credit.get("reserved"))
    count = holds.get("requests")
    suffix = "" if count is None else f" in {text.counted(int(count), 'request')}"
    return f"balance     {'   '.join([*parts, f'holds {text.exact_money(held)}{suffix}'])}"


def _endpoints(record: dict[str, Any]) -> list[str]:
    endpoints = record.get("endpoints")
    if not isinstance(endpoints, list):
        return []
    unwell = [endpoint for endpoint in endpoints if endpoint.get("status") != "healthy"]
    # A healthy endpoint may rest with one of its credentials.
    partly = [each for each in endpoints if each not in unwell and each.get("rests")]
    lines = [f"endpoints   {len(endpoints) - len(unwell)} of {len(endpoints)} healthy"]
    shown = [line for endpoint in [*unwell, *partly] for line in ailments(endpoint)]
    lines += [f"            {line}" for line in shown[:SHOWN]]
    if len(shown) > SHOWN:
        lines.append(f"            and {len(shown) - SHOWN} more: gwctl endpoint health")
    return lines


def ailments(endpoint: dict[str, Any]) -> list[str]:
    """`openai/gpt-5 azure/eu: cooling down 41 s (rate_limited: slow down)`, a line for each rest."""
    rests = endpoint.get("rests") or []
    name = f"{endpoint.get('model')} {endpoint.get('tag')}"
    state = str(endpoint.get("status")).replace("_", " ")
    if not rests:
        why = f" ({endpoint['reason']})" if endpoint.get("reason") else ""
        return [f"{name}: {state}{why}"]
    if state == "healthy":
        state = "one credential rests"
    return [f"{name}: {state} {_rest(rest)}" for rest in rests]


def _rest(rest: dict[str, Any]) -> str:
    """How much longer and why; what rests is still tried where nothing else is left, unless it is closed."""
    until = text.parse_time(rest.get("until"))
    wait = f"until its {'provider' if rest.get('credential_id', '') is None else 'key'} is changed"
    if until is not None:
        wait = text.duration(max(0.0, (until - utc_now()).total_seconds()))
    why = str(rest.get("reason"))
    message = str(rest.get("message") or "")
    if message:
        why += f": {message if len(message) <= LONGEST_TEXT else message[:LONGEST_TEXT] + '…'}"
    return f"{wait}{', not tried' if rest.get('tried') is False else ''} ({why})"
