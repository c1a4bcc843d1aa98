"""What the writer remembers must be what the file says, at any moment."""

from typing import Any

from gwd.core.periods import first_day
from gwd.spend import service as spend
from gwd.store import Connection, maintains_cache
from gwd.store.cached import FINDERS


@maintains_cache
def stale_cached_rows(connection: Connection) -> list[str]:
    """Each cached row that the file contradicts. To be run by the store's writer."""
    assert connection.cached_rows is not None
    stale = []
    last_us = connection.row("SELECT MAX(last_at) FROM account")
    assert last_us is not None
    found: Any
    for name, rows in connection.cached_rows.items():
        if name == "used":
            continue
        for key, value in list(rows.items()):
            if name == "spend":
                # Nobody asks for the sum of a period that is over.
                found, value = _sums(connection, str(key[0]), value, last_us[0])
            else:
                found = FINDERS[name].find(connection, *key)
            if in_order(found) != in_order(value):
                stale.append(f"{name} {key}: remembered {value}, found {found}")
    return stale


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
