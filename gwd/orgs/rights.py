"""Who may do what: the table of rights as data, and the order of roles.

`allowed` answers with a reach: `all` of the organization, its own `workspace` (a lead: a management key bound to one
workspace), one's `own` things, or `none`. A right on the operator's level reaches the whole node.
"""

from typing import Final, Literal

from gwd.core.caller import ROLES, Caller, Role
from gwd.core.errors import Forbidden

Reach = Literal["all", "workspace", "own", "none"]
Right = Literal[
    "keys.read",
    "keys.write",
    "activity.read",
    "content_log.read",
    "content_log.erase",
    "credits.read",
    "credits.write",
    "credits.grant",
    "budgets.read",
    "budgets.write",
    "organization.read",
    "organization.write",
    "members.read",
    "members.write",
    "invitations.read",
    "invitations.write",
    "workspaces.read",
    "workspaces.write",
    "workspaces.create",
    "settings.read",
    "settings.write",
    "byok.read",
    "byok.write",
    "notifications.read",
    "notifications.write",
    "audit.read",
    "ledger.read",
    "ledger.verify",
    "catalog.read",
    "catalog.write",
    "organizations.manage",
    "operator",
]

# right: member, billing, admin, owner, operator; then what is left of it for a key bound to one workspace
_TABLE: Final[dict[Right, tuple[Reach, Reach, Reach, Reach, Reach, Reach]]] = {
    "keys.read": ("own", "all", "all", "all", "all", "workspace"),
    "keys.write": ("own", "none", "all", "all", "all", "workspace"),
    "activity.read": ("own", "all", "all", "all", "all", "workspace"),
    "content_log.read": ("own", "none", "all", "all", "all", "workspace"),
    "content_log.erase": ("none", "none", "all", "all", "all", "none"),
    "credits.read": ("all", "all", "all", "all", "all", "all"),
    "credits.write": ("none", "all", "none", "all", "all", "none"),
    "credits.grant": ("none", "none", "none", "none", "all", "none"),
    "budgets.read": ("all", "all", "all", "all", "all", "all"),
    "budgets.write": ("none", "all", "all", "all", "all", "workspace"),
    "organization.read": ("all", "all", "all", "all", "all", "all"),
    "organization.write": ("none", "none", "all", "all", "all", "none"),
    "members.read": ("all", "all", "all", "all", "all", "all"),
    "members.write": ("none", "none", "all", "all", "all", "none"),
    "invitations.read": ("all", "all", "all", "all", "all", "all"),
    "invitations.write": ("none", "none", "all", "all", "all", "workspace"),
    "workspaces.read": ("all", "all", "all", "all", "all", "all"),
    "workspaces.write": ("none", "none", "all", "all", "all", "workspace"),
    "workspaces.create": ("none", "none", "all", "all", "all", "none"),
    "settings.read": ("all", "all", "all", "all", "all", "all"),
    "settings.write": ("none", "none", "all", "all", "all", "none"),
    "byok.read": ("all", "all", "all", "all", "all", "all"),
    "byok.write": ("none", "none", "all", "all", "all", "workspace"),
    "notifications.read": ("all", "all", "all", "all", "all", "all"),
    "notifications.write": ("none", "all", "all", "all", "all", "none"),
    "audit.read": ("none", "all", "all", "all", "all", "none"),
    "ledger.read": ("none", "all", "all", "all", "all", "workspace"),
    "ledger.verify": ("none", "all", "all", "all", "all", "none"),
    "catalog.read": ("all", "all", "all", "all", "all", "all"),
    "catalog.write": ("none", "none", "none", "none", "all", "none"),
    "organizations.manage": ("none", "none", "none", "none", "all", "none"),
    "operator": ("none", "none", "none", "none", "all", "none"),
}
_BOUND: Final = 5
_NARROW_FIRST: Final[tuple[Reach, ...]] = ("none", "own", "workspace", "all")


def allowed(caller: Caller, right: Right) -> Reach:
    """How far `caller` has `right`. Inference keys have none: their own routes do not ask here."""
    if caller.kind != "management" or caller.role is None:
        return "none"
    row = _TABLE[right]
    reach = row[ROLES.index(caller.role)]
    if caller.workspace_id is None:
        return reach
    return min(reach, row[_BOUND], key=_NARROW_FIRST.index)


def require(caller: Caller, right: Right) -> Reach:
    """The reach of `right`, or Forbidden with what is missing."""
    reach = allowed(caller, right)
    if reach == "none":
        raise Forbidden(
            f"This management key (role {caller.role or 'none'}"
            f"{', bound to one workspace' if caller.workspace_id else ''}) has no right to {right}."
            f" Use a key with the role {_lowest_role(right)} or above."
        )
    return reach


def holders(right: Right) -> dict[Role, Reach]:
    """Every role that has the right, and how far it reaches for a key that is bound to no workspace."""
    reaches = dict(zip(ROLES, _TABLE[right], strict=False))
    return {role: reach for role, reach in reaches.items() if reach != "none"}


def rank(role: Role) -> int:
    """Where a role stands: member, billing, admin, owner, operator."""
    return ROLES.index(role)


def require_grant(caller: Caller, role: Role, *, param: str = "role") -> None:
    """Nobody grants a role above their own, and a lead grants nothing that reaches beyond a workspace."""
    if caller.role is None or rank(role) > rank(caller.role):
        raise Forbidden(
            f"The role {role} is above this key's own role ({caller.role or 'none'});"
            " ask someone who has it to grant it.",
            param=param,
        )
    if caller.workspace_id is not None and role not in ("member", "admin"):
        raise Forbidden(
            f"The role {role} reaches beyond the workspace this key is bound to.", param=param
        )


def _lowest_role(right: Right) -> str:
    return next(role for role in ROLES if _TABLE[right][ROLES.index(role)] != "none")
