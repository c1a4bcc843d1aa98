"""Whose spending a request is: the scopes in which its charge is counted, and by which budgets are limited."""

from typing import Final, Literal, NamedTuple

Scope = Literal["organization", "workspace", "key", "tag", "user"]
"""From the widest to the narrowest, as refusals name them."""
NAMED_SCOPES: Final = ("tag", "user")
"""Scopes that an organization's requests name themselves; nothing else is known of what they name."""


class Spender(NamedTuple):
    """A request's organization, workspace and key family, its external user, and its tags, no two the same."""

    organization_id: str
    workspace_id: str | None
    family_id: str
    user: str | None = None
    tags: tuple[str, ...] = ()

    @property
    def is_named(self) -> bool:
        """Whether a tag or a user is among whose spending it is."""
        return self.user is not None or bool(self.tags)

    @property
    def named_counters(self) -> list[str]:
        """The counters of its tags and its user."""
        counters = [named_counter(self.organization_id, "tag", tag) for tag in self.tags]
        if self.user is not None:
            counters.append(named_counter(self.organization_id, "user", self.user))
        return counters

    @property
    def counters(self) -> list[str]:
        """All counters in which its charge is counted."""
        known = (self.organization_id, self.workspace_id, self.family_id)
        counters = [counter for counter in known if counter]
        return counters + self.named_counters if self.is_named else counters


def named_counter(organization_id: str, scope: Literal["tag", "user"], name: str) -> str:
    """The counter of a tag or a user of an organization. No other counter has a colon in its name."""
    return f"{organization_id}:{scope}:{name}"
