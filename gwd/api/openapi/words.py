"""Words that the table of routes does not have: the nouns that group operations, and the paths' parameters."""

from typing import Any, Final

from gwd.core.periods import WINDOWS

TAGS: Final = {
    "inference": "Requests to models, in six dialects. They cost credit and need an inference key.",
    "models": "What can be asked for, at which price. Anybody may read it.",
    "keys": "Keys for inference and for management: made, limited, rotated, ended.",
    "budgets": "Limits in dollars on what an organization, a workspace, a key, a tag or a user spends in an interval.",
    "credits": "Credit: the balance, what moved it, adding, refunding and adjusting.",
    "ledger": "The proof that the books are whole.",
    "statements": "What a month came to.",
    "generations": "What became of each request: tokens, cost, route, error.",
    "analytics": "What requests came to, added up by whatever they have in common.",
    "notifications": "Alerts that were raised, and where, how and to whom they are told.",
    "organization": "The key's own organization: its name, settings, members and invitations.",
    "invitations": "Looking at an invitation, and accepting it.",
    "sessions": "Browsers that are signed in at the node's page, and links that sign one in.",
    "workspaces": "Rooms inside an organization for keys, budgets and people.",
    "audit": "Who changed what.",
    "organizations": "All organizations of the node; for its operator.",
    "catalog": "Providers, models, endpoints and vendor keys; written by the operator.",
    "byok": "The organization's own vendor keys: they are preferred, and requests on them cost a fee only.",
    "route": "What would become of a request, told without serving it: its route, refusals and cost. Free.",
    "operator": "The running node; for its operator.",
    "meta": "The API about itself.",
}
_BY_FIRST_WORD: Final = {
    "auth": "keys",
    "key": "keys",
    "generation": "generations",
    "activity": "analytics",
    "vendor-usage": "analytics",
    "estimate": "route",
    "content-log": "organization",
    "sign-in-links": "sessions",
}

PARAMETERS: Final[dict[str, dict[str, Any]]] = {
    "key": {
        "description": "The key: its id, or the hash that its record shows.",
        "schema": {"type": "string"},
    },
    "user": {"description": "The member: a usr_… id.", "schema": {"type": "string"}},
    "invitation": {"description": "The invitation: an id.", "schema": {"type": "string"}},
    "session": {
        "description": "The browser that is signed in: an id.",
        "schema": {"type": "string"},
    },
    "workspace": {
        "description": "The workspace: its ws_… id or its slug.",
        "schema": {"type": "string"},
    },
    "organization": {
        "description": "The organization: an org_… id.",
        "schema": {"type": "string"},
    },
    "budget": {"description": "The budget: a bud_… id.", "schema": {"type": "string"}},
    "interval": {
        "description": "The interval of the budget.",
        "schema": {"type": "string", "enum": list(WINDOWS)},
    },
    "month": {
        "description": "The month, by UTC: YYYY-MM.",
        "schema": {"type": "string", "pattern": "^[0-9]{4}-(0[1-9]|1[0-2])$"},
    },
    "slug": {"description": "The provider: its slug.", "schema": {"type": "string"}},
    "model": {
        "description": "The model: its id, `vendor/model`. The slash may stand as it is.",
        "schema": {"type": "string"},
    },
    "endpoint": {"description": "The endpoint: an id.", "schema": {"type": "string"}},
    "event": {"description": "The alert: an evt_… id.", "schema": {"type": "string"}},
    "destination": {"description": "The destination: a dst_… id.", "schema": {"type": "string"}},
    "delivery": {"description": "The delivery: a dlv_… id.", "schema": {"type": "string"}},
    "credential": {"description": "The vendor key: a pk_… id.", "schema": {"type": "string"}},
    "byok": {"description": "The own vendor key: a pk_… id.", "schema": {"type": "string"}},
}


def tag_of(path: str) -> str:
    """The noun that a path is about."""
    first = path.split("/")[1]
    return _BY_FIRST_WORD.get(first, first)
