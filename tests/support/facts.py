"""What the writer remembers must be what the file says, at any moment."""

from collections.abc import Callable
from typing import Any, Final

from gwd.budgets import admission as budgets
from gwd.catalog import snapshot
from gwd.core.periods import first_day
from gwd.keys import admission as keys
from gwd.ledger import account
from gwd.orgs import settings
from gwd.spend import service as spend
from gwd.store import Connection, keeps_facts
from gwd.topup import attempts

FINDERS: Final[dict[str, Callable[..., Any]]] = {
    "account": account._find,
    "lots": account._find_lots,
    "spend": spend._find,
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
    for name, value in connection.facts.items():
        if name == "catalog revision":
            found = snapshot._revision(connection)
        elif isinstance(name, tuple) and name[0] in FINDERS:
            if name[0] == "spend" and first_day(name[2], last_us[0]) != name[3]:
                continue  # of a period that is over: nobody asks for it any more
            found = FINDERS[name[0]](connection, *name[1:])
        else:
            assert isinstance(name, tuple), name
            assert name[0] == "used", f"no finder for {name}"
            continue
        if in_order(found) != in_order(value):
            untrue.append(f"{name}: remembered {value}, found {found}")
    return untrue


def in_order(value: Any) -> Any:
    """Lots have no order of their own."""
    return sorted(value, key=lambda lot: lot.id) if isinstance(value, list) else value
