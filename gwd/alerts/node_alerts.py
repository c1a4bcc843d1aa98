"""What the operator hears of the node itself: books that do not add up, a certificate that ends, no copies."""

from collections.abc import Sequence
from typing import Any, Final

from gwd.alerts.marks import Mark, clear, is_raised
from gwd.alerts.service import NewAlert, Severity, raise_
from gwd.core import links
from gwd.core.clock import US_PER_DAY, US_PER_S, iso, iso_or_none
from gwd.orgs import organizations
from gwd.store import Connection

CERTIFICATE_DAYS: Final = (30, 7, 1)
_QUARANTINE: Final = "node:quarantine"
_BACKUP: Final = "node:backup"
_LATE, _DAMAGED = 1, 2


def quarantined(connection: Connection, reason: str, *, app_url: str, now_us: int) -> None:
    """The node serves nothing until its books are in order; told once until they are."""
    notice = quarantine_notice(reason, app_url=app_url, now_us=now_us)
    _tell(connection, notice, once=Mark(name=_QUARANTINE), now_us=now_us)


def in_order(connection: Connection) -> None:
    """The books add up again: another quarantine is told again."""
    clear(connection, _QUARANTINE)


def certificate(
    connection: Connection,
    *,
    ends_us: int,
    names: Sequence[str],
    app_url: str,
    now_us: int,
) -> None:
    """The listener's certificate ends soon, or has ended: told 30, 7 and 1 days before, and when it has."""
    left_us = ends_us - now_us
    level = sum(left_us <= days * US_PER_DAY for days in (*CERTIFICATE_DAYS, 0))
    if level:
        notice = certificate_notice(ends_us=ends_us, names=names, app_url=app_url, now_us=now_us)
        mark = Mark(name=f"node:certificate:{ends_us}", value=level)
        _tell(connection, notice, once=mark, now_us=now_us)


def backup_overdue(
    connection: Connection,
    *,
    directory: str,
    newest_us: int | None,
    every_us: int,
    reason: str,
    is_damage: bool,
    app_url: str,
    now_us: int,
) -> None:
    """No proved copy since long, or one that is damaged: each told once until there is a good one again."""
    notice = backup_notice(
        directory=directory,
        newest_us=newest_us,
        every_us=every_us,
        reason=reason,
        is_damage=is_damage,
        app_url=app_url,
    )
    mark = Mark(name=_BACKUP, value=_DAMAGED if is_damage else _LATE)
    _tell(connection, notice, once=mark, now_us=now_us)


def is_backup_told(connection: Connection) -> bool:
    """Whether the copies were told of since the last good one."""
    return is_raised(connection, Mark(name=_BACKUP, value=_LATE))


def backed_up(connection: Connection) -> None:
    """There is a good copy again: another fault is told again."""
    clear(connection, _BACKUP)


def quarantine_notice(reason: str, *, app_url: str, now_us: int) -> NewAlert:
    return _notice(
        "alert.ledger_quarantined",
        "critical",
        title="The ledger does not add up, nothing is served",
        message=f"The gateway is in quarantine: {reason}. Run `gwctl ledger verify`.",
        data={"reason": reason, "since": iso(now_us)},
        app_url=app_url,
    )


def certificate_notice(
    *, ends_us: int, names: Sequence[str], app_url: str, now_us: int
) -> NewAlert:
    is_over, shown = ends_us <= now_us, ", ".join(names) or "the gateway"
    return _notice(
        "alert.certificate_ending",
        "critical" if is_over else "warning",
        title=f"The certificate of {shown} {'has ended' if is_over else 'ends soon'}",
        message=f"It {'ended' if is_over else 'ends'} at {iso(ends_us)}. Put the new one in place, then reload:"
        " `systemctl reload gwd`, or `gwctl server reload`.",
        data={"names": list(names), "ends_at": iso(ends_us)},
        app_url=app_url,
    )


def backup_notice(
    *,
    directory: str,
    newest_us: int | None,
    every_us: int,
    reason: str,
    is_damage: bool,
    app_url: str,
) -> NewAlert:
    newest = "there is none" if newest_us is None else f"the newest is of {iso(newest_us)}"
    title = "The backup of the database is overdue"
    if is_damage:
        title = "A copy of the database is damaged"
    return _notice(
        "alert.backup_overdue",
        "critical" if is_damage else "warning",
        title=title,
        message=f"Of the proved copies in {directory}, {newest}: {reason}. `gwctl doctor` says what to do.",
        data={
            "directory": directory,
            "newest_at": iso_or_none(newest_us),
            "every_s": every_us // US_PER_S,
            "reason": reason,
        },
        app_url=app_url,
    )


def _notice(
    type_: str, severity: Severity, *, title: str, message: str, data: dict[str, Any], app_url: str
) -> NewAlert:
    return NewAlert(
        category="node",
        type=type_,
        severity=severity,
        title=title,
        message=message,
        url=links.node(app_url),
        data=data,
    )


def _tell(connection: Connection, notice: NewAlert, *, once: Mark, now_us: int) -> None:
    operator = organizations.operator_id(connection)
    if operator is not None:
        raise_(connection, operator, notice, now_us=now_us, once=once)
