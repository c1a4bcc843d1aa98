"""The one way to create, update and delete records of any noun, with dry runs and one report."""

from collections.abc import Mapping, Sequence
from typing import Any

from gwctl import schema, tables, text
from gwctl.client import masked
from gwctl.errors import CommandError, usage
from gwctl.records import Resource, address, data, find, same, same_field
from gwctl.session import Session
from gwctl.tables import Record
from gwctl.time_input import utc_now

CALL_OUT_S = 60  # actions such as `test` make the gateway call somebody else


def send(
    session: Session,
    method: str,
    path: str,
    body: object = None,
    *,
    what: str,
    patience_s: float = 0,
) -> Any | None:
    """Make one change; with --dry-run only say so, and return None."""
    if session.dry_run:
        session.found_changes = True
        if session.out.shape.machine:
            shown = {"dry_run": True, "method": method, "path": path, "body": masked(body)}
            session.out.data(shown)
            return None
        session.out.line(f"would {what}   ({method} {path})")
        hidden = masked(body) if isinstance(body, dict) else {}
        for name, value, kind in tables.fields(hidden, schema.taken(method, path)):
            session.out.line(f"  {name}  {tables.unambiguous(value, kind, utc_now())}")
        session.out.note("Nothing was done.")
        return None
    try:
        reply = _sent(session, method, path, body, patience_s)
    except CommandError as error:
        if error.code != "price_not_accepted" or not isinstance(body, dict):
            raise
        session.accept_price(error.what.partition("; send")[0])
        reply = _sent(session, method, path, {**body, "accept": True}, patience_s)
    for note in (reply.get("notes") if isinstance(reply, dict) else None) or ():
        session.out.note(str(note))
    return reply


def _sent(session: Session, method: str, path: str, body: object, patience_s: float) -> Any:
    if method == "POST":
        key = session.next_idempotency_key()
        return session.api.post(path, body, idempotency_key=key, patience_s=patience_s)
    return session.api.request(method, path, body=body)


def create_record(
    session: Session, resource: Resource, body: Mapping[str, Any], *, path: str | None = None
) -> Record | None:
    """Create one record and print it, with its secret if it has one."""
    name = resource.title(body) or str(body.get("email") or body.get("url") or "")
    what = f"create {resource.noun} {name}".strip()
    reply = send(session, "POST", path or resource.path, dict(body), what=what)
    if reply is None:
        return None
    record: Record = data(reply)
    if reply.get("existed"):
        left_as_it_is(session, resource, record)
        return record
    if not resource.shown_once:
        report(session, record, f"{resource.noun} {resource.title(record)} created")
        return record
    title = resource.created or f"{resource.noun.capitalize()} created."
    print_secret(session, resource, reply, title)
    return record


def left_as_it_is(session: Session, resource: Resource, record: Record) -> None:
    """What --if-absent found: nothing was made, and its secret is not shown again."""
    hint = f"gwctl {resource.noun} {resource.renewed_by} {record.get('id')} makes a new secret"
    session.out.note(
        f"{resource.noun} {resource.title(record)} exists; its secret was shown once ({hint})"
    )
    if session.out.shape.machine:
        session.out.record(record, resource.record)
    elif not session.out.shape.quiet:
        session.out.line(resource.summary(record))


def print_secret(session: Session, resource: Resource, reply: Any, title: str) -> None:
    """Print the secret of a reply; exit 1 when a replayed request cannot show it again."""
    record = data(reply)
    secret = reply.get(resource.shown_once)
    if not secret:
        raise CommandError(
            f"{resource.noun} {resource.title(record)} exists, but its secret was already shown",
            code="secret_not_shown",
            why="the same request was made before; secrets are shown once and not stored",
            do=f"gwctl {resource.noun} {resource.renewed_by} {record.get('id', '')}",
        )
    session.out.secret(title, resource.shown_once, secret, record, resource.summary(record))


def report(session: Session, record: Any, message: str) -> None:
    """After a change: the record with --json, its id with -q, else one line."""
    whole = record if isinstance(record, dict) else {"data": record}
    if session.replayed:
        done = "booked" if "amount" in whole else "done"
        message = f"already {done} on {whole.get('created_at', 'an earlier day')}: {message}"
        session.out.note(
            "the same request was made before with this idempotency key; nothing was done now"
        )
    if session.out.shape.machine:
        session.out.data_once(whole)
        return
    if session.out.shape.quiet:
        session.out.record(whole)
        return
    identity = record.get("id") if isinstance(record, dict) else None
    suffix = f"   id {identity}" if identity and str(identity) not in message else ""
    session.out.line(message + suffix)


def update_record(
    session: Session, resource: Resource, reference: str, changes: Mapping[str, Any]
) -> None:
    """PATCH what differs, and say what changed."""
    if not changes:
        raise usage("nothing to change was given", do=f"gwctl {resource.noun} update --help")
    before = find(session, resource, reference)
    patch_record(session, resource, before, changes)


def patch_record(
    session: Session,
    resource: Resource,
    before: Record,
    changes: Mapping[str, Any],
    *,
    named: Mapping[str, Any] | None = None,
    unshown: Sequence[str] = (),
    hidden: Sequence[str] = (),
) -> None:
    """PATCH a record and say what changed.

    `named` are fields of the body that say which record is meant, where its path does not; `unshown` are those
    that say how to change it; of `hidden` ones only is said that they change.
    """
    title = resource.title(before)
    lines = [
        f"  {line}"
        for name, value in changes.items()
        for field in [schema.field(resource.record, name)]
        if name not in unshown and not same_field(field, before.get(name), value)
        for line in (
            [f"{name}  is replaced"]
            if name in hidden
            else differences(name, before.get(name), value, field)
        )
    ]
    path = resource.path if named else address(resource, before)
    if not lines:
        unchanged(session, f"{resource.noun} {title}", path, before)
        return
    if session.dry_run and not session.out.shape.machine:
        session.found_changes = True
        session.out.line(f"~ {resource.noun} {title}")
    else:
        body = {**(named or {}), **changes}
        reply = send(session, "PATCH", path, body, what=f"update {resource.noun} {title}")
        if reply is None:
            return
        report(session, data(reply), f"{resource.noun} {title} updated")
    if not session.out.shape.machine and not session.out.shape.quiet:
        for line in lines:
            session.out.line(line)


def unchanged(session: Session, what: str, path: str, record: Record) -> None:
    """Nothing differs, so nothing is written and nothing found; the record is printed as after a change."""
    would = "would change" if session.dry_run else "was changed"
    session.out.note(f"{what} is already so; nothing {would}")
    if not session.out.shape.machine and not session.out.shape.quiet:
        return
    if session.dry_run and session.out.shape.machine:
        session.out.data({"dry_run": True, "method": "PATCH", "path": path, "body": {}})
    elif not session.dry_run:
        session.out.record(record)


def delete_record(
    session: Session,
    resource: Resource,
    reference: str,
    *,
    verb: str = "delete",
    query: Mapping[str, Any] | None = None,
) -> None:
    """Delete after the name was typed (or --yes), and say what ended with it and what lives on."""
    record = find(session, resource, reference)
    title = resource.title(record)
    path = address(resource, record)
    if session.dry_run:
        send(session, "DELETE", path, what=f"{verb} {resource.noun} {title}")
        return
    session.confirm_name(f"{verb} {resource.noun}", title)
    reply = session.api.request("DELETE", path, query=query)
    report(session, reply or {"deleted": True}, f"{resource.noun} {title} {verb.rstrip('e')}ed")
    for line in _left(reply or {}):
        session.out.note(line)


# What an answer about something that is gone says of the keys that hung on it.
_LEFT = {
    "keys_disabled": "disabled with it",
    "keys_ended": "refused from now on",
    "keys_kept": "still works",
    "keys_left": "still works",
    "keys_made_for_others": "still works: made by this person for somebody else, who may know it",
}


def _left(reply: Mapping[str, Any]) -> list[str]:
    """One line for each key that ended with what was removed, or lives on; and what credit is left."""
    lines = [
        f"key {key.get('name')} ({key.get('id')}) {what}"
        + (f" until {key['expires_at']}" if key.get("expires_at") and "works" in what else "")
        for field_, what in _LEFT.items()
        if isinstance(reply.get(field_), list)
        for key in reply[field_]
    ]
    if isinstance(reply.get("keys_ended"), int):
        lines.append(text.counted(reply["keys_ended"], "working key") + " ended with it")
    if reply.get("vendor_keys_deleted"):
        lines.append(
            text.counted(reply["vendor_keys_deleted"], "own vendor key") + " deleted with it"
        )
    if reply.get("invitations_revoked"):
        lines.append(text.counted(reply["invitations_revoked"], "open invitation") + " revoked")
    if reply.get("balance"):
        lines.append(f"{text.money(reply['balance'])} are left in its books")
    return lines


def act(
    session: Session,
    resource: Resource,
    reference: str,
    action: str,
    body: object = None,
    *,
    done: str,
) -> Any | None:
    """POST an action of one record (`test`, `drain`, …) and report it."""
    record = find(session, resource, reference)
    title = resource.title(record)
    path = f"{address(resource, record)}/{action}"
    what = f"{action} {resource.noun} {title}"
    reply = send(session, "POST", path, body, what=what, patience_s=CALL_OUT_S)
    if reply is not None:
        report(session, data(reply), f"{resource.noun} {title} {done}")
    return reply


def differences(name: str, before: Any, after: Any, field: schema.Field) -> list[str]:
    """`limit  $50.00 -> $60.00`; of a nested object, such as a price, a line for each part that differs."""
    if not isinstance(after, Mapping) or not isinstance(before, Mapping | None):
        return [f"{name}  {_shown(name, before, field.kind)} -> {_shown(name, after, field.kind)}"]
    parts = before or {}
    return [
        f"{name}.{part}  {_shown(part, parts.get(part), kind)} -> {_shown(part, after.get(part), kind)}"
        for part in [*after, *(one for one in parts if one not in after)]
        for kind in [schema.field(field.record, part).kind]
        if not same(parts.get(part), after.get(part), price=field.holds_prices)
    ]


def _shown(name: str, value: Any, kind: schema.Kind) -> str:
    if name in ("key", "secret") and isinstance(value, str):
        return text.mask(value)
    return tables.unambiguous(value, kind, utc_now())
