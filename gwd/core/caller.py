"""Who is calling: the principal that authentication found, as a value."""

from typing import Final, Literal

import msgspec

Role = Literal["member", "billing", "admin", "owner", "operator"]
KeyKind = Literal["inference", "management"]

ROLES: Final[tuple[Role, ...]] = ("member", "billing", "admin", "owner", "operator")


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """A key and what it speaks for.

    `role` is set for management keys only. `workspace_id` of an inference key is its workspace; of a management key
    it is set for a workspace lead, whose authority ends at that workspace. `family_id` is shared by a rotated key
    and its successor.
    """

    kind: KeyKind
    key_id: str
    key_name: str
    family_id: str
    organization_id: str
    workspace_id: str | None
    user_id: str | None
    role: Role | None = None
    rate_limit_per_minute: int = 600
    expires_at_us: int | None = None
    disabled: bool = False
