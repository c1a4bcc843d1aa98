"""The names that settings and keys hold, against the catalog: an unknown one is a slip, a pattern may be early."""

from collections.abc import Collection, Iterable
from typing import Any, Final

from gwd.catalog import names
from gwd.core.name_patterns import is_pattern, pattern_of
from gwd.store import Connection

_MODELS: Final = "allowed_models"
_PROVIDERS: Final = ("allowed_providers", "ignored_providers")


def require_known(connection: Connection, after: Any, before: Any = None) -> list[str]:
    """Look at the names that were just written to a key or to settings and were not there `before`.

    Raises InvalidValue with the nearest name for one that the catalog does not have. Gives back a sentence for each
    pattern that fits no model yet. What was there before may stay: its model may have been deleted since.
    """
    notes: list[str] = []
    new = _added(after, before, _MODELS)
    if new:
        known = names.models(connection)
        notes = [note for index, name in new if (note := _model(index, name, known)) is not None]
    for field in _PROVIDERS:
        new = _added(after, before, field)
        if new:
            known = names.providers(connection)
            for index, name in new:
                if name.lower() not in known:
                    raise names.unknown_provider(name, known, f"{field}[{index}]")
    return notes


def require_known_model(connection: Connection, name: str | None, *, param: str) -> None:
    """Raises InvalidValue with the nearest name for one that no model has; a suffix is not looked at."""
    slug = (name or "").partition(":")[0]
    if slug and slug not in (known := names.models(connection)):
        raise names.unknown_model(slug, known, param)


def _added(after: Any, before: Any, field: str) -> list[tuple[int, str]]:
    """(place, name) of what the list holds and did not hold before."""
    held = set(_list(before, field))
    return [(index, name) for index, name in enumerate(_list(after, field)) if name not in held]


def _list(holder: Any, field: str) -> Iterable[str]:
    return getattr(holder, field, None) or ()


def _model(index: int, name: str, known: Collection[str]) -> str | None:
    if not is_pattern(name):
        if name not in known:
            raise names.unknown_model(name, known, f"{_MODELS}[{index}]")
        return None
    pattern = pattern_of(name)
    if any(pattern.matches(each) for each in known):
        return None
    return f"{_MODELS}[{index}] `{name}` fits no model of the catalog yet"
