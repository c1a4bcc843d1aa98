"""GET /operator/doctor: checks for known problems; each finding says what to do."""

import asyncio
import ipaddress
import shutil
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import apsw
import msgspec

from gwd.api import clock
from gwd.api.clock import ClockRecord
from gwd.api.doctor_record import Check, DoctorRecord, State
from gwd.api.machine_checks import certificate, disk_speed, measured, vendor_clocks
from gwd.api.management import Answer, Call, one
from gwd.api.node import Node
from gwd.backups import Standing
from gwd.core.clock import iso
from gwd.core.vitals import Vitals
from gwd.health.record import EndpointHealthRecord, RestRecord
from gwd.orgs import members, organizations
from gwd.settings import UNIX, Settings
from gwd.store import Connection
from gwd.store.connection import MINIMUM_SQLITE

ADDRESS_HEADERS: Final = ("x-forwarded-for", "forwarded")
GIB: Final = 1024**3
LITTLE_BYTES: Final = 2 * GIB
TOO_LITTLE_BYTES: Final = GIB // 4
MANY: Final = 200
SHOWN: Final = 5

SHOWN_TEXT: Final = 200
# What an operator can do about a rest; the others pass by themselves.
_REMEDIES: Final = {
    "auth_invalid": "give the provider a key that its vendor takes: gwctl provider secret PROVIDER",
    "quota_exhausted": "pay the vendor's account or raise its limit",
    "model_access_denied": "check upstream_model, base_url and what the vendor's account may use",
    "upstream_error": "correct the provider's address or format: gwctl provider update PROVIDER --base-url URL,"
    " --adapter NAME",
    "network": "gwctl provider test PROVIDER shows whether it can be reached now",
}

_WANTS_KEY: Final = (
    "where a key is wanted after all: gwctl provider update PROVIDER --auth bearer, then its key"
)


async def look(call: Call) -> Answer:
    """Check the node for what commonly goes wrong.

    Every check is told; `ok` is false when one failed.
    """
    node = call.node
    people = await node.store.read(_people)
    endpoints = await node.state.endpoint_records(call.now_us)
    checks = [
        sqlite_version(apsw.sqlite_lib_version()),
        ledger(node.status.quarantine),
        clock_check(await clock.record(node)),
        load(node.vitals, node.counters.shed),
        backups(node.backups, call.now_us),
        vendor_clocks(node.state.health.dates),
        *await asyncio.to_thread(_files, node.settings, call.now_us),
        base_url(node.settings),
        proxy(call.headers, call.origin.address or "", node.settings.server.client_address_header),
        *_mail(node.settings, people),
        self_service(node.settings, people.count),
        _credentials(node, endpoints),
        _prices(endpoints),
        _models(endpoints),
        rests(endpoints),
        counts(node.counters.prompts_above_bound),
    ]
    ok = all(check.state != "failed" for check in checks)
    return one(DoctorRecord(ok=ok, base_url=node.base_url, checks=checks))


def sqlite_version(version: str) -> Check:
    """Libraries older than `MINIMUM_SQLITE` can damage the write-ahead log when it is reset."""
    if tuple(int(part) for part in version.split(".")) >= MINIMUM_SQLITE:
        return Check(name="sqlite", state="ok", message=f"SQLite {version}")
    wanted = ".".join(map(str, MINIMUM_SQLITE))
    return Check(
        name="sqlite",
        state="failed",
        message=f"SQLite {version} can corrupt its log",
        do=f"install apsw with SQLite {wanted} or newer",
    )


def ledger(quarantine: str | None) -> Check:
    """Whether the books were found in order, at start, at night and at every charge."""
    if quarantine is None:
        return Check(name="ledger", state="ok", message="in order at the last look")
    return Check(
        name="ledger",
        state="failed",
        message=f"{quarantine}; inference is refused",
        do="run gwctl ledger verify and restore a backup, or ask for help with its differences",
    )


def clock_check(found: ClockRecord) -> Check:
    """Whether the machine's clock is believed, and the books are not ahead of it."""
    if not found.do:
        return Check(name="clock", state="ok", message=found.machine)
    until = f", until {found.until}" if found.until else ""
    return Check(
        name="clock",
        state="failed" if found.state == "held" else "warning",
        message=f"{found.message}; it says {found.machine}, used is {found.used}{until}",
        do=found.do,
    )


def load(vitals: Vitals, shed: Mapping[str, int]) -> Check:
    """Whether the node can take what it is asked; else what it is short of, now or since it started."""
    gib = vitals.memory_max_bytes / GIB
    memory = f"{vitals.memory.value:.0%} of {gib:.1f} GiB of memory in use"
    if vitals.memory.is_high or vitals.lag.is_high:
        late = f", the event loop {vitals.lag.value:.2f} s late" if vitals.lag.is_high else ""
        return Check(
            name="load",
            state="failed",
            message=f"{memory}{late}; new inference is refused",
            do="send less, or give the node more memory and a quicker processor",
        )
    if shed:
        refused = _some([f"{cause} ({number})" for cause, number in sorted(shed.items())])
        return Check(
            name="load",
            state="warning",
            message=f"{memory}; requests were refused since the start for {refused}",
            do="see [limits] in docs/settings.md and gwd_shed_total in the metrics",
        )
    return Check(name="load", state="ok", message=memory)


def key_ring(path: Path) -> Check:
    """The key ring's file is readable by the service's user alone."""
    try:
        info = path.lstat()
    except OSError:
        return Check(
            name="key ring",
            state="failed",
            message=f"{path} is missing; the node cannot start again",
            do="restore it from your copy now, while the node still runs",
        )
    mode = stat.S_IMODE(info.st_mode)
    if mode & 0o077 or not stat.S_ISREG(info.st_mode):
        return Check(
            name="key ring",
            state="failed",
            message=f"{path} has mode {mode:04o}",
            do=f"chmod 600 {path}",
        )
    return Check(name="key ring", state="ok", message=f"{path} has mode {mode:04o}")


def database(path: Path) -> Check:
    """The database holds prompts' metadata and encrypted secrets; others need not read it."""
    mode = stat.S_IMODE(path.stat().st_mode)
    parent = stat.S_IMODE(path.parent.stat().st_mode)
    if mode & 0o007 and parent & 0o005:
        return Check(
            name="database",
            state="warning",
            message=f"{path} can be read by every user of this machine",
            do=f"chmod 700 {path.parent}",
        )
    return Check(name="database", state="ok", message=str(path))


def disk_space(path: Path, free_bytes: int) -> Check:
    """A full disk stops every request."""
    message = f"{free_bytes / GIB:.1f} GiB free at {path}"
    if free_bytes >= LITTLE_BYTES:
        return Check(name="disk space", state="ok", message=message)
    return Check(
        name="disk space",
        state="failed" if free_bytes < TOO_LITTLE_BYTES else "warning",
        message=message,
        do="free some space: the gateway refuses requests when nothing can be written",
    )


def backups(standing: Standing | None, now_us: int) -> Check:
    """Whether copies are made by the clock, and the newest proved one is not too old."""
    if standing is None:
        return Check(
            name="backups",
            state="warning",
            message="no copy of the database is made by the clock",
            do="set [backup] directory in gwd.toml, best on another disk, and restart",
        )
    newest = (
        "no proved copy" if standing.newest is None else f"newest {iso(standing.newest.made_us)}"
    )
    message = f"{newest}, {standing.count} in all, {standing.size_bytes / GIB:.1f} GiB in {standing.directory}"
    if standing.failure:
        message += f"; the last try failed: {standing.failure}"
    if standing.is_overdue(now_us):
        return Check(
            name="backups",
            state="failed",
            message=message,
            do="remove what stops it; the next try is within a quarter of an hour, and `gwd backup FILE` makes one now",
        )
    state: State = "warning" if standing.failure else "ok"
    do = "see the log; it is tried again within a quarter of an hour" if standing.failure else ""
    return Check(name="backups", state=state, message=message, do=do)


def base_url(settings: Settings) -> Check:
    """Links, model headers and clients' settings come from it."""
    server = settings.server
    parts = urlsplit(server.base_url)
    host = parts.hostname or ""
    if _is_local(host) and not _is_local(server.host):
        return Check(
            name="base_url",
            state="warning",
            message=f"{server.base_url} leads to this machine, but the node listens on {server.host}",
            do="set [server] base_url to the address that clients use",
        )
    if parts.scheme == "http" and not _is_local(host):
        return Check(
            name="base_url",
            state="warning",
            message=f"{server.base_url} is plain http, keys travel unencrypted",
            do="set tls_cert and tls_key, or put a proxy with TLS in front and name its https address",
        )
    return Check(name="base_url", state="ok", message=server.base_url)


def proxy(headers: Mapping[str, str], address: str, header: str) -> Check:
    """Whether a proxy through which this very request came is believed about the client's address."""
    told = headers.get(header)
    other = next((name for name in ADDRESS_HEADERS if name != header and name in headers), None)
    if told is None and other is not None:
        return Check(
            name="proxy",
            state="warning",
            message=f"this request came through a proxy that writes {other}; read is {header}",
            do=f'set [server] client_address_header = "{other}" if your proxy writes it, and trusted_proxies',
        )
    if told is None:
        return Check(name="proxy", state="ok", message=f"none in front; you are {address}")
    if address and address in told.lower():
        return Check(name="proxy", state="ok", message=f"it says that you are {address}")
    return Check(
        name="proxy",
        state="warning",
        message=f"this request came through a proxy at {address or 'the Unix socket'} whose word does not count:"
        " in the audit log and the rate of failed sign-ins it stands for all its clients",
        do=f'name it: [server] trusted_proxies = ["{address or UNIX}"]',
    )


def self_service(settings: Settings, organizations_count: int) -> Check:
    """Owners may book their own purchases where they run the node; not where others have accounts on it."""
    if organizations_count > 1 and settings.credits.self_service:
        return Check(
            name="self service",
            state="warning",
            message=f"{organizations_count} organizations, and each may book purchases for itself",
            do="set [credits] self_service = false unless all of them are yours",
        )
    return Check(name="self service", state="ok", message="purchases are booked by whom you trust")


def counts(above_bound: Mapping[str, int]) -> Check:
    """Vendors that counted more prompt than the requests had, since the start; what they counted was billed."""
    if not above_bound:
        return Check(name="token counts", state="ok", message="no prompt larger than its request")
    reported = [f"{provider} ({number})" for provider, number in sorted(above_bound.items())]
    return Check(
        name="token counts",
        state="warning",
        message=f"prompts were counted larger than their requests can be by {_some(reported)}",
        do="compare with its invoice; if it counts wrongly, set the flag usage_unreliable on its endpoints",
    )


class _People(msgspec.Struct, frozen=True, kw_only=True):
    count: int
    without_owner_address: list[str]


def _people(connection: Connection) -> _People:
    found, count = organizations.list_organizations(connection, limit=MANY, offset=0)
    return _People(
        count=count,
        without_owner_address=[
            organization.name
            for organization in found
            if not members.emails_of_roles(connection, organization.id, ["owner"])
        ],
    )


def _files(settings: Settings, now_us: int) -> list[Check]:
    free_bytes = shutil.disk_usage(settings.directory).free
    return [
        key_ring(settings.keyring),
        database(settings.database),
        disk_space(settings.directory, free_bytes),
        disk_speed(settings.directory, measured(settings.directory)),
        certificate(settings.server, now_us),
    ]


def _mail(settings: Settings, people: _People) -> list[Check]:
    silent = people.without_owner_address
    owners = Check(name="owner e-mail", state="ok", message="every organization has an address")
    if silent:
        owners = Check(
            name="owner e-mail",
            state="warning",
            message=f"no owner's address in {_some(silent)}: mails to the owner are skipped",
            do="gwctl member invite ADDRESS --role owner",
        )
    if settings.smtp.host:
        return [owners, Check(name="mail", state="ok", message=f"by {settings.smtp.host}")]
    none = Check(
        name="mail",
        state="warning",
        message="no mail server, so no mail is sent",
        do="set [smtp] host and from in gwd.toml; webhooks work without",
    )
    return [owners, none]


def _credentials(node: Node, endpoints: list[EndpointHealthRecord]) -> Check:
    without = sorted({each.provider for each in endpoints if each.status == "no_credential"})
    if without:
        return Check(
            name="credentials",
            state="failed",
            message=f"no usable vendor key for {_some(without)}",
            do=f"gwctl provider secret {without[0]}, or gwctl server reload after mending its file",
        )
    problems = [
        f"{key.provider}: {key.problem}"
        for keys in node.state.vendor_keys.values()
        for key in keys
        if key.problem is not None
    ]
    if problems:
        return Check(
            name="credentials",
            state="warning",
            message=f"not all vendor keys can be used: {_some(problems)}",
            do="mend or delete them",
        )
    return Check(name="credentials", state="ok", message="every provider in use has a vendor key")


def _prices(endpoints: list[EndpointHealthRecord]) -> Check:
    without = [f"{each.model} {each.tag}" for each in endpoints if each.status == "no_price"]
    if without:
        return Check(
            name="prices",
            state="failed",
            message=f"no complete price for {_some(without)}: nothing is sent there",
            do="gwctl model price set MODEL --prompt USD --completion USD, per million tokens",
        )
    return Check(name="prices", state="ok", message="every endpoint in use has a price")


def _models(endpoints: list[EndpointHealthRecord]) -> Check:
    if not endpoints:
        return Check(
            name="catalog",
            state="warning",
            message="no endpoint: no request can be served",
            do="gwctl apply -f catalog.toml",
        )
    served = {each.model for each in endpoints if each.status != "disabled"}
    idle = sorted({each.model for each in endpoints} - served)
    if idle:
        return Check(
            name="catalog",
            state="warning",
            message=f"all endpoints are disabled of {_some(idle)}",
            do="enable one, or retire the model",
        )
    return Check(name="catalog", state="ok", message=f"{len(served)} models can be served")


def rests(endpoints: list[EndpointHealthRecord]) -> Check:
    """What is tried last or not at all after failures: why, until when, and what helps."""
    found = [(f"{each.model} {each.tag}", rest) for each in endpoints for rest in each.rests]
    if not found:
        return Check(name="rests", state="ok", message="no endpoint rests")
    reported = [
        f"{name}: {rest.reason} {_until(rest)} ({rest.message[:SHOWN_TEXT]})"
        for name, rest in found
    ]
    reasons = {rest.reason for _, rest in found}
    remedies = [remedy for reason, remedy in _REMEDIES.items() if reason in reasons]
    if any(rest.reason == "auth_invalid" and rest.credential_id is None for _, rest in found):
        remedies.append(_WANTS_KEY)
    return Check(
        name="rests",
        state="warning",
        message=_some(reported),
        do="; ".join(remedies) or "wait: what rests is tried again by itself",
    )


def _until(rest: RestRecord) -> str:
    if rest.until is None:
        return f"until its {'key' if rest.credential_id else 'provider'} is changed"
    return f"until {rest.until}"


def _is_local(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _some(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
