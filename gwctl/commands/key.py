"""`gwctl key`: API keys with their limits, models and rotation."""

from collections.abc import Mapping
from typing import Annotated, Any

from gwctl.changes import create_record, left_as_it_is, print_secret, send, update_record
from gwctl.keys import KEYS, is_live, workspace_id
from gwctl.records import address, called, find, list_records
from gwctl.session import Session
from gwctl.tree import Noun
from gwctl.values import (
    DATA_POLICIES,
    RESETS,
    SORTS,
    amount,
    arg,
    body,
    expiry,
    flag,
    integer,
    listed,
    models,
    names,
    one_of,
    opt,
    text_or_none,
    thresholds,
)
from gwctl.verbs import add_delete, add_show, add_switches

key = Noun("key", "API keys: limits, models, rotation.")
NOUNS = [key]

_PROVIDER = opt(
    "--provider", "PROVIDER", "Provider that may serve; all of them, none allows all; repeatable."
)
_IGNORE = opt(
    "--ignore-provider", "PROVIDER", "Provider that never serves; none: nobody; repeatable."
)
_SORT = opt("--sort", "HOW", "price, throughput or latency; none: its workspace's.")
_DATA_POLICY = opt("--data-policy", "POLICY", "deny leaves out providers that train on inputs.")
_TAG = opt("--tag", "TAG", "Tag of each of its requests, all of them; none: no tag; repeatable.")
_ALERTS = opt("--alerts", "PERCENTS", "Alert thresholds, for example 50,80,100.")


@key.verb(
    "list",
    "gwctl key list --workspace web",
    "gwctl key list --json id,name,limit_remaining --jq '.[].id'",
    lists=True,
)
def list_keys(
    session: Session,
    workspace: Annotated[str | None, opt("--workspace", "SLUG", "Only this workspace.")] = None,
    name: Annotated[str | None, opt("--name", "NAME", "Only keys of this name.")] = None,
    inactive: Annotated[bool, flag("--inactive", "Also disabled and expired keys.")] = False,
) -> None:
    """List keys with what they used and what is left."""
    query = {
        "workspace_id": workspace_id(session, workspace),
        "name": name,
        "include_disabled": inactive or None,
        "include_expired": inactive or None,
    }
    list_records(session, KEYS, query)


add_show(key, KEYS, "ci")


@key.verb(
    "create",
    "gwctl key create ci --limit 50 --reset monthly --model 'openai/*' --rpm 120",
    "KEY=$(gwctl key create ci --if-absent -q)",
    writes=True,
)
def create(
    session: Session,
    name: Annotated[str, arg("NAME", "Name of the key.")],
    limit: Annotated[str | None, opt("--limit", "USD", "Spend limit.")] = None,
    reset: Annotated[
        str | None, opt("--reset", "WINDOW", "daily, weekly or monthly (UTC); lifetime otherwise.")
    ] = None,
    model: Annotated[
        list[str] | None,
        opt("--model", "SLUG", "Allowed model, alias or pattern such as '*/gpt-5*'; repeatable."),
    ] = None,
    provider: Annotated[list[str] | None, _PROVIDER] = None,
    ignore: Annotated[list[str] | None, _IGNORE] = None,
    sort: Annotated[str | None, _SORT] = None,
    data_policy: Annotated[str | None, _DATA_POLICY] = None,
    rpm: Annotated[str | None, opt("--rpm", "N", "Requests a minute.")] = None,
    expires: Annotated[str | None, opt("--expires", "TIME", "7d, a date or a time.")] = None,
    workspace: Annotated[str | None, opt("--workspace", "SLUG", "Its workspace.")] = None,
    in_flight: Annotated[str | None, opt("--in-flight", "N", "Most requests at once.")] = None,
    strict: Annotated[bool, flag("--strict", "Count open holds against the limit too.")] = False,
    include_byok: Annotated[
        bool, flag("--include-byok", "Count traffic on own provider keys against the limit.")
    ] = False,
    external_user: Annotated[
        str | None, opt("--external-user", "ID", "Your own id of the user of this key.")
    ] = None,
    kind: Annotated[
        str | None, opt("--type", "TYPE", "inference (the default) or management.")
    ] = None,
    role: Annotated[
        str | None, opt("--role", "ROLE", "Role of a management key; at most yours.")
    ] = None,
    user: Annotated[str | None, opt("--user", "ID", "Member a management key is for.")] = None,
    alerts: Annotated[str | None, _ALERTS] = None,
    tag: Annotated[list[str] | None, _TAG] = None,
    if_absent: Annotated[
        bool, flag("--if-absent", "Do nothing when a live key of this name exists.")
    ] = False,
) -> None:
    """Create a key; its secret is shown once, alone on stdout with -q.

    With --if-absent a live key of this name is left as it is: exit 0, and nothing on stdout with -q,
    because a secret is never shown twice. The gateway decides it, so of two jobs at once one makes it.
    """
    if if_absent and session.dry_run and _would_leave(session, name):
        return
    create_record(
        session,
        KEYS,
        body(
            {
                "name": name,
                "limit": amount("--limit", limit),
                "limit_reset": one_of("--reset", reset, RESETS),
                "allowed_models": models(model),
                **_policy(provider, ignore, sort, data_policy),
                "rate_limit_per_minute": integer("--rpm", rpm),
                "expires_at": expiry(expires),
                "workspace_id": workspace_id(session, workspace),
                "in_flight_cap": integer("--in-flight", in_flight),
                "strict": strict or None,
                "include_byok_in_limit": include_byok or None,
                "external_user": external_user,
                "type": one_of("--type", kind, ("inference", "management")),
                "role": one_of("--role", role, ("member", "billing", "admin", "owner")),
                "user_id": user,
                "alert_thresholds": thresholds("--alerts", alerts),
                "tags": listed(tag),
                "if_absent": if_absent or None,
            }
        ),
    )


def _policy(
    provider: list[str] | None, ignore: list[str] | None, sort: str | None, data_policy: str | None
) -> dict[str, Any]:
    """What its requests may use beside the models."""
    return {
        "allowed_providers": names(provider),
        "ignored_providers": listed(ignore),
        "default_provider_sort": one_of("--sort", sort, SORTS, clear=True),
        "data_policy": one_of("--data-policy", data_policy, DATA_POLICIES),
    }


def _would_leave(session: Session, name: str) -> bool:
    """Whether --if-absent has nothing to do, as far as a dry run can tell; prints the key that is there."""
    live = [record for record in called(session, KEYS, name) if is_live(record)]
    if live:
        left_as_it_is(session, KEYS, live[0])
    return bool(live)


@key.verb(
    "update",
    "gwctl key update ci --limit 100",
    "gwctl key update ci --model none --expires none",
    "gwctl key update ci --provider openai --data-policy deny",
    writes=True,
)
def update(
    session: Session,
    reference: Annotated[str, arg("NAME", "Key name, id or hash.")],
    name: Annotated[str | None, opt("--name", "NAME", "New name.")] = None,
    limit: Annotated[str | None, opt("--limit", "USD", "Spend limit; none removes it.")] = None,
    reset: Annotated[
        str | None, opt("--reset", "WINDOW", "daily, weekly, monthly; none for lifetime.")
    ] = None,
    model: Annotated[
        list[str] | None, opt("--model", "SLUG", "Allowed models, all of them; none allows all.")
    ] = None,
    provider: Annotated[list[str] | None, _PROVIDER] = None,
    ignore: Annotated[list[str] | None, _IGNORE] = None,
    sort: Annotated[str | None, _SORT] = None,
    data_policy: Annotated[str | None, _DATA_POLICY] = None,
    rpm: Annotated[
        str | None, opt("--rpm", "N", "Requests a minute; none for the default.")
    ] = None,
    expires: Annotated[str | None, opt("--expires", "TIME", "7d, a date; none: never.")] = None,
    in_flight: Annotated[
        str | None, opt("--in-flight", "N", "Most requests at once; none removes the cap.")
    ] = None,
    strict: Annotated[
        bool | None, flag("--strict/--no-strict", "Count open holds against the limit too.")
    ] = None,
    include_byok: Annotated[
        bool | None, flag("--include-byok/--no-include-byok", "Count own provider keys too.")
    ] = None,
    external_user: Annotated[
        str | None, opt("--external-user", "ID", "Your own id of its user; none clears it.")
    ] = None,
    alerts: Annotated[str | None, _ALERTS] = None,
    tag: Annotated[list[str] | None, _TAG] = None,
) -> None:
    """Change a key; what is not named stays as it is."""
    changes: Mapping[str, Any] = {
        "name": name,
        "limit": amount("--limit", limit),
        "limit_reset": one_of("--reset", reset, RESETS, clear=True),
        "allowed_models": models(model),
        **_policy(provider, ignore, sort, data_policy),
        "rate_limit_per_minute": integer("--rpm", rpm),
        "expires_at": expiry(expires),
        "in_flight_cap": integer("--in-flight", in_flight),
        "strict": strict,
        "include_byok_in_limit": include_byok,
        "external_user": text_or_none(external_user),
        "alert_thresholds": thresholds("--alerts", alerts),
        "tags": listed(tag),
    }
    update_record(session, KEYS, reference, body(changes))


@key.verb(
    "rotate",
    "gwctl key rotate ci --overlap 1h",
    "KEY=$(gwctl key rotate ci -q)",
    writes=True,
)
def rotate(
    session: Session,
    reference: Annotated[str, arg("NAME", "Key name, id or hash.")],
    overlap: Annotated[
        str, opt("--overlap", "TIME", "How long the old key stays valid: 1h, 24h or 7d.")
    ] = "24h",
) -> None:
    """Make a new secret; the old one keeps working during the overlap (24h)."""
    allowed = one_of("--overlap", overlap, ("1h", "24h", "7d"))
    record = find(session, KEYS, reference)
    path = f"{address(KEYS, record)}/rotate"
    what = f"rotate key {KEYS.title(record)}"
    reply = send(session, "POST", path, {"overlap": allowed}, what=what)
    if reply is None:
        return
    print_secret(session, KEYS, reply, "Key rotated.")
    previous = reply.get("previous") or {}
    if previous.get("expires_at"):
        session.out.note(f"the old key works until {previous['expires_at']}")


add_switches(key, KEYS, "ci", on={"disabled": False}, off={"disabled": True})
add_delete(key, KEYS, "old-ci")
