"""`gwctl open`: the gateway's page in a browser, signed in, at what an id names."""

import os
import re
import sys
import webbrowser
from typing import Annotated

from gwctl.client import quote
from gwctl.errors import usage
from gwctl.records import data
from gwctl.session import Session
from gwctl.tree import Noun
from gwctl.values import arg, flag

top = Noun("", "The gateway's page.")
NOUNS = [top]

_PLACES = {
    "key_": "/keys/{}",
    "mk_": "/keys/{}",
    "bud_": "/budgets/{}",
    "gen-": "/activity/{}",
    "dst_": "/settings/notifications/{}",
    "dlv_": "/settings/notifications",
    "evt_": "/settings/notifications",
    "pk_": "/settings/provider-keys/{}",
    "usr_": "/settings/people/{}",
    "inv_": "/settings/people",
}
_MONTH = re.compile(r"[0-9]{4}-[0-9]{2}", re.ASCII)
_MODEL = re.compile(r"~?[a-z0-9][\w.:-]*/[a-z0-9][\w.:-]*", re.ASCII)


@top.verb(
    "open",
    "gwctl open",
    "gwctl open key_4HtX9cQm2Vb7LzR0sKfW1y",
    "gwctl open 2026-11 --print",
)
def open_page(
    session: Session,
    what: Annotated[
        str | None, arg("[ID]", "An id, a month (YYYY-MM) or a model; the overview otherwise.")
    ] = None,
    show: Annotated[
        bool, flag("--print", "Only print the address; it signs in once, for a minute.")
    ] = False,
) -> None:
    """Open the gateway's page in a browser, signed in with the profile's key.

    The address works once and for a minute. Without a display it is printed.
    """
    made = data(session.api.post("/sign-in-links", {"path": place(what)}))
    if session.out.shape.machine:
        session.out.data(made)
    elif show or not _has_display() or not webbrowser.open(made["url"]):
        session.out.line(made["url"])
        session.out.note("it signs in once, within a minute")


def place(what: str | None) -> str:
    """The path on the page of what an id names."""
    if what is None:
        return "/"
    for prefix, path in _PLACES.items():
        if what.startswith(prefix):
            return path.format(quote(what))
    if _MONTH.fullmatch(what):
        return f"/statements/{what}"
    if _MODEL.fullmatch(what):
        return f"/models/{what}"
    raise usage(
        f"the page has no place for {what}",
        do="give an id such as key_…, bud_… or gen-…, a month such as 2026-11, or a model such as openai/gpt-6-sol",
    )


def _has_display() -> bool:
    if sys.platform in ("darwin", "win32"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
