"""The pages and what can be done on them: path below /app, view or act, right, place in the navigation."""

import re
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Final

import msgspec

from gwd.orgs.rights import Right
from gwd.page import ask
from gwd.page.answer import Done, Download, Shown
from gwd.page.request import Field

View = Callable[["ask.Ask"], Shown | Download]
Do = Callable[["ask.Doing"], Awaitable[Done | Shown]]


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """One page. `title` names it in the head; `noun` is what a 404 of it says does not exist.

    `nav` is its word in the navigation, `under` the path of the entry that is marked while it is open. One without a
    `right` is for every management key, one `of_api_key` for inference keys as well. One that `is_whole` is about the
    whole organization: a right that reaches less does not open it.
    """

    path: str
    title: str
    view: View
    right: Right | None = None
    is_whole: bool = False
    query: tuple[Field, ...] = ()
    live: tuple[str, ...] = ()
    nav: str | None = None
    icon: str = ""
    is_setting: bool = False
    under: str | None = None
    noun: str = "page"
    of_api_key: bool = False


class Act(msgspec.Struct, frozen=True, kw_only=True):
    """What a form does. `form` is the page on which it stands; of a 400 that page is shown again.

    `asks_again`: what cannot be undone wants the key once more where the sign-in is old.
    """

    path: str
    do: Do
    right: Right
    fields: tuple[Field, ...] = ()
    form: str | None = None
    asks_again: bool = False


@cache
def pages() -> tuple[Page, ...]:
    from gwd.page.views import MODULES

    return tuple(page for module in MODULES for page in module.PAGES)


@cache
def acts() -> tuple[Act, ...]:
    from gwd.page.views import MODULES

    return tuple(act for module in MODULES for act in module.ACTS)


def page_at(path: str) -> tuple[Page, dict[str, str]] | None:
    """The page at a path below /app, with the path's parameters."""
    for page in pages():
        found = _pattern(page.path).fullmatch(path)
        if found is not None:
            return page, found.groupdict()
    return None


def page_of(path: str) -> Page:
    """The page of the table that is written so."""
    return next(page for page in pages() if page.path == path)


def act_at(path: str) -> tuple[Act, dict[str, str]] | None:
    """What a form that is sent to a path does."""
    for act in acts():
        found = _pattern(act.path).fullmatch(path)
        if found is not None:
            return act, found.groupdict()
    return None


_PARAMETER: Final = re.compile(r"<(\w+)(:path)?>")


@cache
def _pattern(path: str) -> "re.Pattern[str]":
    """`<key>` is one part of a path, `<model:path>` may be several."""
    written, at = "", 0
    for found in _PARAMETER.finditer(path):
        written += re.escape(path[at : found.start()])
        written += f"(?P<{found[1]}>{'.+' if found[2] else '[^/]+'})"
        at = found.end()
    return re.compile(written + re.escape(path[at:]))
