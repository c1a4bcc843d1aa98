"""Month statements: to look at, to print, and as CSV. Every amount is exact, and what does not add up is not shown."""

from collections.abc import Iterator
from datetime import date
from typing import Any, Final

from gwd.page import by_day
from gwd.page.answer import Download, Shown
from gwd.page.ask import Ask
from gwd.page.csv_file import csv_file
from gwd.page.table import Act, Page

_MOST_MONTHS: Final = 120
_WORDS: Final = {
    "purchase": "Purchases",
    "grant": "Grants",
    "refund": "Refunds",
    "expiry": "Expired credit",
    "adjustment": "Adjustments",
}
_HEAD: Final = (
    "part",
    "name",
    "id",
    "workspace",
    "entries",
    "requests",
    "tokens_in",
    "cached",
    "tokens_out",
    "usd",
)


def months(ask: Ask) -> Shown:
    """The months of the organization, the newest first."""
    found, first = [ask.month], _first_month(ask)
    while found[-1] > first and len(found) < _MOST_MONTHS:
        found.append(by_day.month_before(found[-1]))
    return Shown(template="statements.html", values={"months": found})


def statement(ask: Ask) -> Shown:
    """A month from its opening to its closing balance, with the charges by key and by model."""
    found = ask("/statements/<month>", month=ask.path["month"])["data"]
    month = found["month"]
    values = {
        "statement": found,
        "movements": _movements(found),
        "before": by_day.month_before(month) if month > _first_month(ask) else None,
        "after": by_day.month_after(month) if month < ask.month else None,
        "first": date.fromisoformat(f"{month}-01"),
    }
    return Shown(template="statement.html", values=values, title=f"Statement of {month}")


def _first_month(ask: Ask) -> str:
    """That in which the organization was made."""
    made: str = ask("/organization")["data"]["created_at"]
    return made[:7]


def as_csv(ask: Ask) -> Download:
    """The same numbers as a table."""
    found = ask("/statements/<month>", month=ask.path["month"])["data"]
    return csv_file(f"statement-{found['month']}.csv", _HEAD, _lines(found))


def _movements(found: Any) -> list[tuple[str, Any]]:
    """What moved credit and was no request, as far as there was any; purchases always."""
    return [
        (_WORDS.get(each["type"], each["type"]), each)
        for each in found["movements"]
        if each["entries"] or each["type"] == "purchase"
    ]


def _lines(found: Any) -> Iterator[tuple[Any, ...]]:
    """Balance and movements, then charges by workspace, by key and by model."""

    def charges(part: str, name: Any, id_: Any, workspace: Any, each: Any) -> tuple[Any, ...]:
        tokens = (each["tokens_prompt"], each["cached_tokens"], each["tokens_completion"])
        return part, name, id_, workspace, None, each["requests"], *tokens, each["charged"]

    none = (None,) * 4
    yield "balance", "opening", None, None, None, *none, found["opening_balance"]
    for each in found["movements"]:
        yield "balance", each["type"], None, None, each["entries"], *none, each["amount"]
    yield charges("balance", "charges", None, None, found["charges"])
    yield "balance", "closing", None, None, None, *none, found["closing_balance"]
    for each in found["workspaces"]:
        yield charges("workspace", each["workspace_name"], each["workspace_id"], None, each)
    names = {each["workspace_id"]: each["workspace_name"] for each in found["workspaces"]}
    for each in found["keys"]:
        yield charges(
            "key", each["key_name"], each["family_id"], names.get(each["workspace_id"]), each
        )
    for each in found["models"]:
        name = "fees for own keys" if each["byok"] else each["model"]
        yield charges("model", name, None, None, each)


PAGES: Final = (
    Page(
        path="/statements",
        title="Statements",
        view=months,
        right="ledger.read",
        is_whole=True,
        nav="Statements",
        icon="statements",
    ),
    Page(
        path="/statements/<month>",
        title="Statement",
        view=statement,
        right="ledger.read",
        is_whole=True,
        under="/statements",
        noun="statement",
    ),
    Page(
        path="/statements/<month>/csv",
        title="Statement",
        view=as_csv,
        right="ledger.read",
        is_whole=True,
        under="/statements",
        noun="statement",
    ),
)
ACTS: Final[tuple[Act, ...]] = ()
