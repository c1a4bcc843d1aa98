"""`gwctl credit`: the balance, and what adds to it or takes from it."""

from typing import Annotated, Any

from gwctl import text
from gwctl.changes import report, send
from gwctl.commands.org import change_at, organization_id
from gwctl.records import data
from gwctl.session import Session
from gwctl.tree import Noun
from gwctl.values import amount, arg, body, dollars, expiry, flag, one_of, opt

credit = Noun("credit", "The balance: grants, purchases, refunds and automatic top-up.")
NOUNS = [credit]

_AMOUNT = arg("USD", "Amount in US dollars.")
_NOTE = opt("--note", "TEXT", "Why; kept in the ledger.")
_REFERENCE = opt(
    "--reference", "TEXT", "Your own reference, for example an invoice; it counts once."
)
_ORG = opt("--org", "NAME", "Another organization (operator): name, slug or id.")


@credit.verb("balance", "gwctl credit balance", "gwctl credit balance --json --jq .available")
def balance(session: Session) -> None:
    """Show what is owned, held and available, and its kinds."""
    record = data(session.api.get("/credits"))
    if not session.out.table:
        session.out.record(record, "BalanceRecord")
        return
    session.out.line(
        f"balance     {text.money(record.get('balance'))}"
        f"   available {text.money(record.get('available'))}"
        f"   held {text.money(record.get('reserved'))}"
    )
    kinds = [
        f"{kind} {text.money(record[kind])}"
        for kind in ("promotional", "granted", "purchased")
        if record.get(kind) is not None
    ]
    session.out.line(f"remaining   {'   '.join(kinds)}")
    session.out.line(
        f"ever        added {text.money(record.get('total_credits'))}"
        f"   spent {text.money(record.get('total_usage'))}"
    )


@credit.verb(
    "grant",
    "gwctl credit grant 25 --kind promotional --expires 30d --note welcome",
    "gwctl credit grant 100 --dry-run",
    writes=True,
)
def grant(
    session: Session,
    usd: Annotated[str, _AMOUNT],
    kind: Annotated[
        str, opt("--kind", "KIND", "granted (the default), promotional or purchased.")
    ] = "granted",
    expires: Annotated[
        str | None, opt("--expires", "TIME", "When what is left of it is lost: 30d, a date.")
    ] = None,
    note: Annotated[str | None, _NOTE] = None,
    reference: Annotated[str | None, _REFERENCE] = None,
    organization: Annotated[str | None, _ORG] = None,
) -> None:
    """Give credit (operator)."""
    wanted = {
        "kind": one_of("--kind", kind, ("promotional", "granted", "purchased")),
        "amount": dollars("USD", usd),
        "expires_at": expiry(expires),
        "note": note,
        "reference": reference,
        "organization_id": organization_id(session, organization),
    }
    _move(session, "/credits/grants", wanted, f"grant {usd} USD", "granted")


@credit.verb(
    "purchase",
    "gwctl credit purchase 200 --reference INV-2041",
    "gwctl credit purchase 200 --idempotency-key inv-2041",
    writes=True,
)
def purchase(
    session: Session,
    usd: Annotated[str, _AMOUNT],
    note: Annotated[str | None, _NOTE] = None,
    reference: Annotated[str | None, _REFERENCE] = None,
    organization: Annotated[str | None, _ORG] = None,
) -> None:
    """Record a purchase of credit; purchased credit is the only refundable kind."""
    wanted = {
        "amount": dollars("USD", usd),
        "note": note,
        "reference": reference,
        "organization_id": organization_id(session, organization),
    }
    _move(session, "/credits/purchases", wanted, f"purchase {usd} USD", "purchased")


@credit.verb(
    "refund",
    "gwctl credit refund 50 --note 'unused credit'",
    "gwctl credit refund 50 --note closed --dry-run",
    writes=True,
)
def refund(
    session: Session,
    usd: Annotated[str, _AMOUNT],
    note: Annotated[str, _NOTE],
    reference: Annotated[str | None, _REFERENCE] = None,
    organization: Annotated[str | None, _ORG] = None,
) -> None:
    """Take purchased credit back out of the balance."""
    if not session.dry_run:
        session.confirm_name("refund", usd)
    wanted = {
        "amount": dollars("USD", usd),
        "note": note,
        "reference": reference,
        "organization_id": organization_id(session, organization),
    }
    _move(session, "/credits/refunds", wanted, f"refund {usd} USD", "refunded")


@credit.verb(
    "adjust",
    "gwctl credit adjust 4.20 --reason 'charged twice on 2026-11-03' --reference CASE-77",
    "gwctl credit adjust 4.20 --take --reason 'granted to the wrong organization'",
    writes=True,
)
def adjust(
    session: Session,
    usd: Annotated[str, _AMOUNT],
    reason: Annotated[str, opt("--reason", "TEXT", "Why; kept in the ledger.")],
    take: Annotated[bool, flag("--take", "Take it away; without, it is given.")] = False,
    kind: Annotated[
        str | None,
        opt("--kind", "KIND", "granted, promotional or purchased; taken in paying order without."),
    ] = None,
    reference: Annotated[str | None, _REFERENCE] = None,
    organization: Annotated[str | None, _ORG] = None,
) -> None:
    """Put a wrong booking right with one more (operator); entries are never edited."""
    value = dollars("USD", usd)
    wanted = {
        "amount": -value if take else value,
        "reason": reason,
        "kind": one_of("--kind", kind, ("promotional", "granted", "purchased")),
        "reference": reference,
        "organization_id": organization_id(session, organization),
    }
    what = f"{'take' if take else 'give'} {usd} USD as an adjustment"
    _move(session, "/credits/adjustments", wanted, what, "taken" if take else "given")


def _move(session: Session, path: str, wanted: dict[str, Any], what: str, done: str) -> None:
    reply = send(session, "POST", path, body(wanted), what=what)
    if reply is None:
        return
    said = f"{text.money(abs(wanted['amount']))} {done}"
    if reply.get("already_booked_at"):
        said = str(reply.get("message"))
        if session.out.shape.machine or session.out.shape.quiet:
            session.out.note(said)
    report(session, data(reply), said)


@credit.verb(
    "topup",
    "gwctl credit topup",
    "gwctl credit topup --enable --threshold 20 --amount 100 --monthly-cap 500",
    writes=True,
)
def topup(
    session: Session,
    enable: Annotated[bool | None, flag("--enable/--disable", "Turn it on or off.")] = None,
    threshold: Annotated[str | None, opt("--threshold", "USD", "Top up below this.")] = None,
    usd: Annotated[str | None, opt("--amount", "USD", "How much to add.")] = None,
    monthly_cap: Annotated[
        str | None, opt("--monthly-cap", "USD", "At most this much a month; none removes it.")
    ] = None,
    hook_url: Annotated[
        str | None, opt("--hook-url", "URL", "Your payment hook, called to collect the money.")
    ] = None,
) -> None:
    """Show or change automatic top-up."""
    path = "/credits/auto-topup"
    changes = body(
        {
            "enabled": enable,
            "threshold": amount("--threshold", threshold),
            "amount": amount("--amount", usd),
            "monthly_cap": amount("--monthly-cap", monthly_cap),
            "hook_url": hook_url,
        }
    )
    if changes:
        reply = change_at(session, path, changes, what="automatic top-up")
        if reply is not None and reply.get("signing_secret"):
            secret = str(reply["signing_secret"])
            title = "Signing secret of the payment hook."
            session.out.secret(title, "signing_secret", secret, data(reply))
    else:
        session.out.record(data(session.api.get(path)), "TopUpRecord")
