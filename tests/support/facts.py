"""What the writer remembers must be what the file says, at any moment."""

from collections.abc import Callable
from typing import Any, Final

from gwd.budgets import admission as budgets
from gwd.catalog import snapshot
from gwd.core.periods import first_day
from gwd.keys import admission as keys
from gwd.ledger import account
from gwd.ledger import service as ledger
from gwd.orgs import settings
from gwd.spend import service as spend
from gwd.store import Connection, keeps_facts
from gwd.topup import attempts

FINDERS: Final[dict[str, Callable[..., Any]]] = {
    "account": account._find,
    "hold": lambda connection, name: connection.row(ledger._HELD, (name,)),
    "lots": account._find_lots,
    "key": keys._find,
    "budgets": budgets._find,
    "settings": settings._find,
    "organization revision": settings._revision,
    "topup enabled": attempts._is_enabled,
}


@keeps_facts
def untrue_facts(connection: Connection) -> list[str]:
    """Each remembered fact that the file contradicts. To be run by the store's writer."""
    assert connection.facts is not None
    untrue = []
    last_us = connection.row("SELECT MAX(last_at) FROM account")
    assert last_us is not None
    found: Any
    for name, value in connection.facts.items():
        if name == "catalog revision":
            found = snapshot._revision(connection)
        else:
            assert isinstance(name, tuple), name
            if name[0] == "used":
                continue
            if name[0] == "spend":
                # Nobody asks for the sum of a period that is over.
                found, value = _sums(connection, name[1], value, last_us[0])
            else:
                found = FINDERS[name[0]](connection, *name[1:])
        if in_order(found) != in_order(value):
            untrue.append(f"{name}: remembered {value}, found {found}")
    return untrue


def in_order(value: Any) -> Any:
    """Lots have no order of their own."""
    return sorted(value, key=lambda lot: lot.id) if isinstance(value, list) else value


def _sums(
    connection: Connection, spend_id: str, remembered: spend.Sums, last_us: int
) -> tuple[spend.Sums, spend.Sums]:
    kept = {
        (window, first): pair
        for (window, first), pair in remembered.items()
        if first_day(window, last_us) == first
    }
    return {period: spend._find(connection, spend_id, *period) for period in kept}, kept
