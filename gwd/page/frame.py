"""What stands around every page: navigation, who is signed in, and what concerns the whole node."""

from typing import Any

import msgspec

from gwd.core.errors import GatewayError
from gwd.orgs import rights
from gwd.page.ask import Ask
from gwd.page.table import Page, pages
from gwd.page.words import DID


class Entry(msgspec.Struct, frozen=True):
    """A line of the navigation."""

    path: str
    word: str
    icon: str
    is_setting: bool
    is_here: bool


def frame(ask: Ask, page: Page | None) -> dict[str, Any]:
    """The values of `base.html`."""
    visit = ask.visit
    status = visit.node.status
    did = ask.query.text("did")
    return {
        "places": _entries(ask, page),
        "who": _who(ask),
        "role": visit.caller.role,
        "organization": _organization(ask),
        "workspace": _workspace(ask),
        "quarantine": status.quarantine,
        "draining": status.draining,
        "did": DID.get(did),
        "errors": ask.errors,
        "typed": ask.typed,
        "now": ask.now,
        "may": ask.may,
        "today": ask.today,
    }


def _entries(ask: Ask, page: Page | None) -> list[Entry]:
    here = page and (page.under or page.path)
    return [
        Entry(each.path, each.nav, each.icon, each.is_setting, each.path == here)
        for each in pages()
        if each.nav is not None and each.right is not None and _is_open(ask, each)
    ]


def _is_open(ask: Ask, page: Page) -> bool:
    assert page.right is not None
    reach = rights.allowed(ask.visit.caller, page.right)
    return reach == "all" if page.is_whole else reach != "none"


def _who(ask: Ask) -> str:
    """The member whose key it is, else the key's name."""
    caller = ask.visit.caller
    if caller.user_id is None or caller.kind == "inference":
        return caller.key_name
    try:
        member = ask("/organization/members/<user>", user=caller.user_id)["data"]
    except GatewayError:
        return caller.key_name
    name = " ".join(part for part in (member["first_name"], member["last_name"]) if part)
    return name or member["email"] or caller.key_name


def _organization(ask: Ask) -> str:
    if ask.visit.caller.kind == "inference":
        return ""
    name: str = ask("/organization")["data"]["name"]
    return name


def _workspace(ask: Ask) -> str | None:
    """Of a key that is bound to one, its name."""
    caller = ask.visit.caller
    if caller.workspace_id is None or caller.kind == "inference":
        return None
    name: str = ask("/workspaces/<workspace>", workspace=caller.workspace_id)["data"]["name"]
    return name
