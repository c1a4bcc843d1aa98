"""A key as its row is. The columns of the table are these fields, so that a new one is said once."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from gwd.core.caller import KeyKind, Role
from gwd.core.periods import Reset
from gwd.orgs.policy import DataPolicy, Sort

OWN: Final = Meta(extra={"rotation": "own"})
"""What a successor has of its own when a key is rotated; all other fields it inherits."""


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """A key's row without its digest. Times are microseconds UTC."""

    id: Annotated[str, OWN]
    organization_id: str
    workspace_id: str | None
    family_id: str
    kind: KeyKind
    role: Role | None
    user_id: str | None
    creator_user_id: Annotated[str | None, OWN]
    external_user: str | None
    name: str
    label: Annotated[str, OWN]
    hash: Annotated[str, OWN]
    disabled: bool
    limit_nano: int | None
    limit_reset: Reset | None
    include_byok_in_limit: bool
    strict: bool
    in_flight_cap: int | None
    rate_limit_per_minute: int | None
    allowed_models: list[str] | None
    allowed_providers: list[str] | None
    ignored_providers: list[str]
    default_provider_sort: Sort | None
    data_policy: DataPolicy
    alert_thresholds: list[int]
    tags: list[str]
    expires_at: int | None
    rotated_to: Annotated[str | None, OWN]
    rotated_from: Annotated[str | None, OWN]
    last_used_at: Annotated[int | None, OWN]
    created_at: Annotated[int, OWN]
    updated_at: Annotated[int, OWN]
