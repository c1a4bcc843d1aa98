"""What a key says of its requests beside its organization's settings, and its workspace where the key says nothing."""

import msgspec

from gwd.orgs.policy import Policy, Sort


class KeyPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Read once when the key is found. `restricts` is None where it permits what its organization does.

    `sort` is the key's own, or else that of its workspace; `text_model` serves requests that name no model; `tags` are
    the key's and its workspace's.
    """

    restricts: Policy | None = None
    sort: Sort | None = None
    text_model: str | None = None
    tags: tuple[str, ...] = ()
