"""Names that people type for models and providers: which are known, and the nearest to one that is not."""

from collections.abc import Collection, Iterable
from difflib import get_close_matches
from typing import Final

from gwd.core.errors import InvalidValue
from gwd.store import Connection

MAX_COMPARED: Final = 1_000
SHOWN: Final = 100  # characters of a name in a message
_CLOSE: Final = 0.5


def models(connection: Connection) -> set[str]:
    """Every id, alias and alias of a family."""
    rows = connection.rows("SELECT id, family FROM model")
    families = {f"~{model.split('/', 1)[0]}/{family}-latest" for model, family in rows if family}
    aliases = connection.rows("SELECT alias FROM model_alias")
    return {*(model for model, _ in rows), *(alias for [alias] in aliases), *families}


def providers(connection: Connection) -> set[str]:
    """Every slug and display name of a provider and every tag of an endpoint, in lower case."""
    rows = connection.rows(
        "SELECT slug FROM provider UNION SELECT name FROM provider UNION SELECT tag FROM endpoint"
    )
    return {name.lower() for [name] in rows}


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """The names most like a wrong one, at most three."""
    compared = sorted(each for each in known if each != name)[:MAX_COMPARED]
    close = get_close_matches(name[:SHOWN], compared, 3, _CLOSE)
    if not close and "/" not in name:
        close = [each for each in compared if each.split("/")[-1] == name][:3]
    return close


def unknown_model(name: str, known: Collection[str], param: str) -> InvalidValue:
    """The 400 of a name in a list that is no model's."""
    return _unknown("model", name, known, param, "GET /models lists all")


def unknown_provider(name: str, known: Collection[str], param: str) -> InvalidValue:
    """The 400 of a name in a list that is no provider's and no endpoint's."""
    lists = "GET /models/{model}/endpoints shows who serves a model"
    return _unknown("provider", name.lower(), known, param, lists)


def _unknown(kind: str, name: str, known: Collection[str], param: str, lists: str) -> InvalidValue:
    suggestions = nearest(name, known)
    hint = f"did you mean {', '.join(suggestions)}?" if suggestions else lists
    return InvalidValue(
        f"`{param}`: no {kind} `{name[:SHOWN]}`; {hint}",
        param=param,
        metadata={"suggestions": suggestions},
    )
