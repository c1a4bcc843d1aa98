"""Which models a key may use: exact slugs, aliases and `vendor/*`, matched with plain string operations."""

from collections.abc import Collection
from typing import Final

from gwd.core.errors import InvalidValue
from gwd.orgs import checks

_ALL_OF_VENDOR: Final = "/*"


def allows(patterns: Collection[str] | None, model: str, aliases: Collection[str] = ()) -> bool:
    """Whether a list permits `model`, the canonical slug that would serve.

    What the client wrote does not matter, only what would serve it: `aliases` are the names that lead to `model` now.
    """
    if patterns is None or model in patterns:
        return True
    vendor, _, _ = model.partition("/")
    return vendor + _ALL_OF_VENDOR in patterns or any(alias in patterns for alias in aliases)


def checked(patterns: list[str] | None, *, param: str = "allowed_models") -> list[str] | None:
    """A list as a key stores it. An empty list is refused: it would be a key that can do nothing."""
    kept = checks.allow_list(patterns, param=param)
    for index, pattern in enumerate(kept or ()):
        stem = pattern.removesuffix(_ALL_OF_VENDOR)
        if "*" in stem or not stem.strip("/"):
            raise InvalidValue(
                f"{param}[{index}] may use * only as vendor/*, for example openai/*.",
                param=f"{param}[{index}]",
            )
    return kept
