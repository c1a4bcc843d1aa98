"""Keys as several commands see them: the record, its state, and workspaces named by their slug."""

from decimal import Decimal
from typing import Any

from gwctl import text, time_input
from gwctl.errors import not_found
from gwctl.records import Resource, fetch
from gwctl.session import Session
from gwctl.tables import Column, Record, of

_PLACES = 9  # digits of a percentage that a script still gets


def is_live(record: Record) -> bool:
    """Not disabled, not replaced by rotation, not expired: the one a name means."""
    ends = text.parse_time(record.get("expires_at"))
    return not (
        record.get("disabled")
        or record.get("rotated_to")
        or (ends is not None and ends <= time_input.utc_now())
    )


def _rank(record: Record) -> int:
    """Of several keys of a name the live one is meant, then one that was not rotated away."""
    return 2 if is_live(record) else int(not record.get("rotated_to"))


def state(record: Record) -> str:
    if record.get("disabled"):
        return "disabled"
    ends = text.parse_time(record.get("expires_at"))
    if ends is not None and ends <= time_input.utc_now():
        return "expired"
    if record.get("rotated_to"):
        return "rotating"
    left = text.decimal(record.get("limit_remaining"))
    return "at limit" if left is not None and left <= 0 else "enabled"


def _limit(record: Record) -> str:
    if record.get("limit") is None:
        return ""
    return f"{text.money(record['limit'])} {record.get('limit_reset') or ''}".strip()


def _left(record: Record) -> Any:
    limit, left = text.decimal(record.get("limit")), text.decimal(record.get("limit_remaining"))
    if limit is None or left is None:
        return None
    share = left * 100 / limit if limit else Decimal(0)
    return round(share, _PLACES).normalize()


def summary(record: Record) -> str:
    limit = "no limit"
    if record.get("limit") is not None:
        resets = str(record.get("limit_resets_at") or "")[:10]
        suffix = f" (UTC, resets {resets})" if resets else ""
        limit = f"limit {_limit(record)}{suffix}"
    models = ", ".join(record.get("allowed_models") or []) or "all"
    parts = [
        f"name {record.get('name')}",
        f"id {record.get('id')}",
        limit,
        f"models {models}",
        f"{record.get('rate_limit_per_minute')} a minute",
    ]
    return "   ".join(parts if record.get("type") != "management" else parts[:2])


KEYS = Resource(
    noun="key",
    path="/keys",
    id_prefix=("key_", "mk_"),
    lookup={"include_disabled": True, "include_expired": True},
    lookup_by="name",
    shown_once="key",
    rank=_rank,
    summary=summary,
    columns=of(
        "KeyRecord",
        Column("NAME", "name", name=True),
        Column("ID", "id", leaves=3),
        Column("USED", "usage"),
        Column("LIMIT", _limit, cut=False),
        Column("LEFT", _left, "percent"),
        Column("RPM", "rate_limit_per_minute", leaves=2),
        Column("STATE", state, "state"),
        Column("LAST USED", "last_used_at", leaves=1),
    ),
)


def workspace_id(session: Session, reference: str | None) -> str | None:
    """The id of a workspace named on the command line."""
    if reference is None or reference.startswith("ws_"):
        return reference
    rows, _ = fetch(session, "/workspaces", everything=True)
    for row in rows:
        if reference in (row.get("slug"), row.get("name")):
            return str(row["id"])
    raise not_found("workspace", reference)
