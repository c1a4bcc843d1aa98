"""`gwctl budget`: what an organization, workspace, key, tag or user may spend, and when it runs out."""

from decimal import Decimal
from itertools import pairwise
from typing import Annotated, Any

from gwctl import schema, text, time_input
from gwctl.changes import delete_record, patch_record, report, send
from gwctl.errors import FAILED, USAGE, CommandError, not_found, usage
from gwctl.keys import KEYS, workspace_id
from gwctl.records import Resource, data, fetch, find, same_field
from gwctl.session import Session
from gwctl.tables import Column, Record, of
from gwctl.tree import Noun
from gwctl.values import CLEAR, INTERVALS, arg, body, dollars, flag, one_of, opt, thresholds, whole

NAMED_SCOPES = ("tag", "user")
SCOPES = ("organization", "workspace", "key", *NAMED_SCOPES)
ANY_SCOPE = "organization, workspace:SLUG, key:NAME, tag:TAG or user:ID"


def _in_force(row: Record) -> Any:
    """The limit that holds now; a gateway of an earlier version has only one."""
    return row.get("limit_in_force", row.get("limit"))


def _period(row: Record) -> str:
    start = row.get("period_start")
    return str(start)[:10] if start else "lifetime"


def _minute(moment: str | None) -> str | None:
    return f"{moment[:16]}Z" if moment else None


BUDGETS = Resource(
    noun="budget",
    path="/budgets",
    id_prefix=("bud_",),
    names=("scope_name",),
    columns=of(
        "BudgetRecord",
        Column("SCOPE", lambda row: row.get("scope_name") or row.get("scope"), name=True),
        Column("INTERVAL", "interval"),
        Column("KIND", lambda row: "shadow" if row.get("shadow") else row.get("kind"), leaves=1),
        Column("SPENT", "spend"),
        Column("LIMIT", _in_force, "money"),
        Column("USED", "percent_used", "bar", leaves=1),
        Column("RESETS", "resets_at"),
        Column("ID", "id", leaves=2),
        Column("WOULD REFUSE", "would_refuse.requests", leaves=3),
        Column("RAISED UNTIL", "raised.until", leaves=3),
    ),
)

_SIMULATED = of(
    "SimulatedPeriod",
    Column("PERIOD", _period, name=True),
    Column("REQUESTS", "requests"),
    Column("SPENT", "spend"),
    Column("REACHED", lambda row: _minute(row.get("reached_at"))),
    Column("WOULD REFUSE", "would_refuse.requests"),
    Column("COST", "would_refuse.cost"),
)


def _projected_percent(row: Record) -> Decimal | None:
    projected = text.decimal((row.get("forecast") or {}).get("projected_spend"))
    limit = text.decimal(_in_force(row))
    if projected is None or not limit:
        return None
    return round(projected * 100 / limit, 2).normalize()


_FORECAST = of(
    "BudgetRecord",
    Column("SCOPE", lambda row: row.get("scope_name") or row.get("scope"), name=True),
    Column("INTERVAL", "interval"),
    Column("USED", "percent_used", "bar", leaves=1),
    Column("SPENT", "spend"),
    Column("LIMIT", _in_force, "money"),
    Column("PROJECTED", "forecast.projected_spend"),
    Column("AT PERIOD END", _projected_percent, "bar", leaves=1),
    Column("EXHAUSTED", "forecast.exhausts_at"),
)

budget = Noun("budget", "Hard and soft budgets of the organization, a workspace, key, tag or user.")
NOUNS = [budget]

_TARGET = arg("SCOPE", "organization, workspace:SLUG, key:NAME, tag:TAG, user:ID, or a budget id.")


@budget.verb(
    "list",
    "gwctl budget list --scope workspace",
    "gwctl budget list --json id,scope,percent_used",
    lists=True,
)
def list_budgets(
    session: Session,
    scope: Annotated[
        str | None, opt("--scope", "SCOPE", "Only organization, workspace, key, tag or user.")
    ] = None,
    kind: Annotated[str | None, opt("--kind", "KIND", "Only hard or soft.")] = None,
) -> None:
    """List budgets with their spend as bars."""
    query = {
        "scope": one_of("--scope", scope, SCOPES),
        "kind": one_of("--kind", kind, ("hard", "soft")),
    }
    rows, total = fetch(
        session, BUDGETS.path, query, limit=session.limit, everything=session.everything
    )
    session.out.records(_named(session, rows), BUDGETS.columns, total=total, noun="budget")


def _named(session: Session, rows: list[Any]) -> list[Any]:
    """For a table, put names beside the ids of scopes; JSON stays as the API gave it."""
    scopes = {row.get("scope") for row in rows}
    if session.out.shape.machine or not scopes - {"organization"}:
        return rows
    names: dict[str, str] = {}
    for scope, path in (("workspace", "/workspaces"), ("key", "/keys")):
        if scope in scopes:
            query = KEYS.lookup if scope == "key" else None
            for found in fetch(session, path, query, everything=True)[0]:
                names[found["id"]] = f"{scope}:{found.get('slug') or found.get('name')}"
    return [
        row
        if row.get("scope") == "organization"
        else {**row, "scope_name": _scope_name(row, names)}
        for row in rows
    ]


def _scope_name(row: Record, names: dict[str, str]) -> Any:
    scope, scope_id = row.get("scope"), row.get("scope_id")
    return f"{scope}:{scope_id}" if scope in NAMED_SCOPES else names.get(str(scope_id), scope)


def scope_of(session: Session, target: str) -> dict[str, str | None]:
    """`organization`, `workspace:web`, `key:ci`, `tag:nightly` or `user:ann` as the API's scope and scope_id."""
    scope, _, name = target.partition(":")
    if scope == "org":
        scope = "organization"
    if scope not in SCOPES or (scope == "organization") != (not name):
        raise usage(f"{target!r} is not a budget scope", do=ANY_SCOPE)
    if scope in NAMED_SCOPES:
        return {"scope": scope, "scope_id": name}
    if scope == "workspace":
        return {"scope": scope, "scope_id": workspace_id(session, name)}
    if scope == "key":
        return {"scope": scope, "scope_id": str(find(session, KEYS, name)["id"])}
    return {"scope": scope, "scope_id": None}


def _of(session: Session, target: str) -> list[Any]:
    """The budgets of a scope, or the one of an id."""
    if target.startswith(BUDGETS.id_prefix):
        return [find(session, BUDGETS, target)]
    return fetch(session, BUDGETS.path, scope_of(session, target), everything=True)[0]


@budget.verb("show", "gwctl budget show workspace:web", "gwctl budget show organization --json")
def show(session: Session, target: Annotated[str, _TARGET]) -> None:
    """Show the budgets of a scope, or one budget with all its fields."""
    rows = _of(session, target)
    if not rows:
        raise not_found("budget", target)
    if target.startswith(BUDGETS.id_prefix):
        session.out.record(rows[0], BUDGETS.record)
    else:
        session.out.records(_named(session, rows), BUDGETS.columns, noun="budget")


@budget.verb(
    "set",
    "gwctl budget set workspace:web --monthly 250",
    "gwctl budget set tag:nightly --daily 5",
    "gwctl budget set organization --daily 20 --soft --dry-run",
    writes=True,
)
def set_(
    session: Session,
    target: Annotated[str, _TARGET],
    daily: Annotated[str | None, opt("--daily", "USD", "Limit of a day.")] = None,
    weekly: Annotated[str | None, opt("--weekly", "USD", "Limit of a week from Monday.")] = None,
    monthly: Annotated[str | None, opt("--monthly", "USD", "Limit of a month.")] = None,
    lifetime: Annotated[str | None, opt("--lifetime", "USD", "Limit for ever.")] = None,
    soft: Annotated[bool, flag("--soft", "Alert only; a hard budget refuses requests.")] = False,
    include_byok: Annotated[
        bool | None, flag("--include-byok/--no-include-byok", "Count own provider keys too.")
    ] = None,
    alerts: Annotated[
        str | None, opt("--alerts", "PERCENTS", "Alert thresholds, for example 50,80,100.")
    ] = None,
    shadow: Annotated[
        bool | None,
        flag(
            "--shadow/--no-shadow", "Only count what the limit would refuse; --no-shadow enforces."
        ),
    ] = None,
) -> None:
    """Create or change budgets: repeating the command changes nothing."""
    given = {"lifetime": lifetime, "monthly": monthly, "weekly": weekly, "daily": daily}
    limits = {name: _limit(target, name, usd) for name, usd in given.items() if usd is not None}
    if not limits:
        raise usage("no limit was given", do="add --daily, --weekly, --monthly or --lifetime USD")
    percents = thresholds("--alerts", alerts)
    where = scope_of(session, target)
    kind = "soft" if soft else "hard"
    if soft and shadow:
        raise usage(
            "--soft and --shadow exclude each other", do="a soft budget refuses nothing anyway"
        )
    rows, _ = fetch(session, BUDGETS.path, {**where, "kind": kind}, everything=True)
    before = {row["interval"]: row for row in rows}
    _check_order(limits, {name: row["limit"] for name, row in before.items()})
    more = {
        "include_byok": include_byok,
        "alert_thresholds": [] if percents is CLEAR else percents,
        "shadow": shadow,
    }
    for interval in _order(limits, before):
        policy = body({"limit": limits[interval], **more})
        if interval not in before:
            _create(session, body({**where, "interval": interval, "kind": kind, **policy}), target)
        elif all(
            same_field(schema.field(BUDGETS.record, name), before[interval].get(name), value)
            for name, value in policy.items()
        ):
            session.out.note(f"{target} {interval}: {text.money(limits[interval])} already")
        else:
            patch_record(session, BUDGETS, {**before[interval], "scope_name": target}, policy)


def _limit(target: str, interval: str, usd: str) -> Decimal:
    if usd.lower() == "none":
        raise usage(
            f"--{interval} none sets no limit",
            do=f"gwctl budget delete {target} --interval {interval}",
        )
    limit = dollars(f"--{interval}", usd)
    if limit == 0:
        raise usage(f"--{interval} must be more than 0", do="disable the key to stop all spending")
    return limit


def _check_order(given: dict[str, Decimal], before: dict[str, Any]) -> None:
    """Refuse what the gateway would refuse half way: limits shrink as their windows narrow."""
    limits = before | given
    there = [(name, text.decimal(limits[name])) for name in INTERVALS if name in limits]
    for (wide, more), (narrow, less) in pairwise(there):
        if more is not None and less is not None and more <= less:
            raise CommandError(
                f"the {wide} limit ({text.money(more)}) must be larger than the {narrow} limit"
                f" ({text.money(less)})",
                exit_code=USAGE if {wide, narrow} <= given.keys() else FAILED,
                code="budget_order_violation",
                do=f"raise --{wide} or lower --{narrow}; nothing was done",
            )


def _order(limits: dict[str, Any], before: dict[str, Any]) -> list[str]:
    """Raises from the widest window down, then cuts from the narrowest up.

    Limits must shrink as the window narrows at every moment, so the order counts.
    """
    grows = [
        name
        for name in INTERVALS
        if name in limits
        and (name not in before or limits[name] >= (text.decimal(before[name]["limit"]) or 0))
    ]
    return grows + [name for name in reversed(INTERVALS) if name in limits and name not in grows]


def _create(session: Session, wanted: dict[str, Any], target: str) -> None:
    what = f"create budget {target} {wanted['interval']} {text.money(wanted['limit'])}"
    reply = send(session, "POST", BUDGETS.path, wanted, what=what)
    if reply is not None:
        kind = "shadow" if wanted.get("shadow") else wanted["kind"]
        limit = f"{text.money(wanted['limit'])} {wanted['interval']} ({kind})"
        report(session, data(reply), f"budget of {target} is {limit}")


@budget.verb(
    "forecast",
    "gwctl budget forecast",
    "gwctl budget forecast workspace:web --json",
)
def forecast(session: Session, target: Annotated[str | None, _TARGET] = None) -> None:
    """Show how full each budget is, and will be at the end of its period."""
    rows = _of(session, target) if target else fetch(session, BUDGETS.path, everything=True)[0]
    session.out.records(_named(session, rows), _FORECAST, noun="budget")


@budget.verb(
    "delete",
    "gwctl budget delete workspace:web --interval monthly",
    "gwctl budget delete bud_6vR2abc --yes",
    writes=True,
)
def delete(
    session: Session,
    target: Annotated[str, _TARGET],
    interval: Annotated[
        str | None, opt("--interval", "INTERVAL", "daily, weekly, monthly or lifetime.")
    ] = None,
    soft: Annotated[bool, flag("--soft", "The soft budget of that interval.")] = False,
) -> None:
    """Delete a budget; asks for the scope unless --yes is given."""
    row = _one(session, target, interval, kind="soft" if soft else "hard")
    session.out.note(f"{target} {row['interval']} {text.money(row['limit'])}")
    delete_record(session, BUDGETS, str(row["id"]))


def _one(session: Session, target: str, interval: str | None, *, kind: str) -> Any:
    """The budget of an id, or the one of a scope and kind; of several the interval says which."""
    chosen = one_of("--interval", interval, INTERVALS)
    rows = _of(session, target)
    if not target.startswith(BUDGETS.id_prefix):
        rows = [
            row for row in rows if row.get("kind") == kind and chosen in (None, row.get("interval"))
        ]
    if not rows:
        raise not_found("budget", target)
    if len(rows) > 1:
        found = ", ".join(f"--interval {row['interval']}" for row in rows)
        raise usage(f"{target} has several budgets", do=f"name one: {found}", code="ambiguous")
    return rows[0]


@budget.verb(
    "raise",
    "gwctl budget raise workspace:web --interval monthly --to 200 --until 24h",
    "gwctl budget raise bud_6vR2abc --end",
    writes=True,
)
def raise_(
    session: Session,
    target: Annotated[str, _TARGET],
    to: Annotated[str | None, opt("--to", "USD", "The limit meanwhile.")] = None,
    until: Annotated[
        str | None, opt("--until", "TIME", "When the old limit holds again: 24h, a date or a time.")
    ] = None,
    end: Annotated[bool, flag("--end", "End the raise now.")] = False,
    interval: Annotated[
        str | None, opt("--interval", "INTERVAL", "daily, weekly, monthly or lifetime.")
    ] = None,
    soft: Annotated[bool, flag("--soft", "The soft budget of that interval.")] = False,
) -> None:
    """Raise a budget's limit for a time; it falls back by itself."""
    if end and (to is not None or until is not None):
        raise usage("--end takes no --to and no --until", do="leave them out")
    if not end and (to is None or until is None):
        raise usage("--to and --until are needed", do="--to 200 --until 24h, or --end")
    wanted = None
    if to is not None and until is not None:
        wanted = {"limit": dollars("--to", to), "until": time_input.future(until)}
    row = _one(session, target, interval, kind="soft" if soft else "hard")
    title = f"{target} {row['interval']}"
    path = f"{BUDGETS.path}/{row['id']}/raise"
    if wanted is None:
        reply = send(session, "DELETE", path, what=f"end the raise of budget {title}")
        done = f"budget {title} is {text.money(row['limit'])} again"
    else:
        what = f"raise budget {title} to {text.money(wanted['limit'])}"
        reply = send(session, "POST", path, wanted, what=what)
        done = f"budget {title} is {text.money(wanted['limit'])} until {wanted['until']}"
    if reply is not None:
        report(session, data(reply), done)


@budget.verb(
    "enforce",
    "gwctl budget enforce workspace:web --interval monthly",
    "gwctl budget enforce bud_6vR2abc --dry-run",
    writes=True,
)
def enforce(
    session: Session,
    target: Annotated[str, _TARGET],
    interval: Annotated[
        str | None, opt("--interval", "INTERVAL", "daily, weekly, monthly or lifetime.")
    ] = None,
) -> None:
    """Switch on a shadow budget: from now on it refuses what it only counted."""
    row = _one(session, target, interval, kind="hard")
    patch_record(session, BUDGETS, {**row, "scope_name": target}, {"shadow": False})


@budget.verb(
    "simulate",
    "gwctl budget simulate --scope workspace:web --limit 200 --interval monthly",
    "gwctl budget simulate --scope organization --limit 20 --interval daily --periods 30",
)
def simulate(
    session: Session,
    limit: Annotated[str, opt("--limit", "USD", "The limit to try.")],
    interval: Annotated[str, opt("--interval", "INTERVAL", "daily, weekly, monthly or lifetime.")],
    scope: Annotated[str, opt("--scope", "SCOPE", f"{ANY_SCOPE}.")] = "organization",
    periods: Annotated[
        int | None, whole("--periods", "N", "How many to look at, this one included: 1 to 100.")
    ] = None,
    include_byok: Annotated[
        bool, flag("--include-byok", "As if own provider keys counted too.")
    ] = False,
) -> None:
    """Show what a hard budget would have refused in the last periods; nothing is made."""
    wanted = body(
        {
            **scope_of(session, scope),
            "interval": one_of("--interval", interval, INTERVALS),
            "limit": dollars("--limit", limit),
            "periods": periods,
            "include_byok": include_byok or None,
        }
    )
    found = data(session.api.post(f"{BUDGETS.path}/simulate", wanted))
    if session.out.shape.machine:
        session.out.data(found)
        return
    session.out.records(found["periods"], _SIMULATED, noun="period")
    session.out.note(
        f"a {found['interval']} limit of {text.money(found['limit'])} would have refused"
        f" {text.counted(found['requests'], 'request')} that cost {text.money(found['cost'])}"
    )
