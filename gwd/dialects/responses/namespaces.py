"""Tool namespaces: joined into one flat name on the way in, taken apart again on the way out.

Vendors know flat names of at most 64 characters; Codex matches a call by separate `name` and `namespace` fields and
answers a joined one with "unsupported call". Nothing outside this dialect knows that namespaces exist.

The namespace `functions` is none: Codex groups its plain tools under it and knows their calls by the name alone.
"""

import hashlib
from collections.abc import Iterable
from typing import Final

import msgspec

MAX_NAME: Final = 64
PLAIN: Final = "functions"
_SEPARATOR: Final = "__"


class Member(msgspec.Struct, frozen=True):
    """A tool as the client knows it."""

    namespace: str
    name: str


class Namespaces:
    """The flat names of one request. Plain names are reserved first, so that no joined name shadows one."""

    def __init__(self, plain_names: Iterable[str]) -> None:
        self._taken = set(plain_names)
        self._flat: dict[Member, str] = {}
        self._plain: dict[str, None] = {}

    def add(self, namespace: str, name: str) -> str:
        """The flat name of a tool that the request offers."""
        if namespace == PLAIN:
            self._plain[name] = None
            return name
        member = Member(namespace, name)
        found = self._flat.get(member)
        if found is not None:
            return found
        flat = joined = _joined(member)
        attempt = 0
        while flat in self._taken:
            attempt += 1
            flat = _shortened(joined, member, attempt)
        self._flat[member] = flat
        self._taken.add(flat)
        return flat

    def flat(self, namespace: str | None, name: str) -> str:
        """The flat name of a tool in history or tool_choice, which need not be on offer any more."""
        if not namespace or namespace == PLAIN:
            return name
        member = Member(namespace, name)
        return self._flat.get(member) or _joined(member)

    def members_of(self, namespace: str) -> tuple[str, ...]:
        """The flat names of everything on offer in a namespace."""
        if namespace == PLAIN:
            return tuple(self._plain)
        return tuple(flat for member, flat in self._flat.items() if member.namespace == namespace)

    def by_flat_name(self) -> dict[str, Member]:
        """What the renderer needs: the tool behind each flat name."""
        return {flat: member for member, flat in self._flat.items()}


def _joined(member: Member) -> str:
    joined = f"{member.namespace}{_SEPARATOR}{member.name}"
    return joined if len(joined) <= MAX_NAME else _shortened(joined, member)


def _shortened(joined: str, member: Member, attempt: int = 0) -> str:
    identity = f"{member.namespace}\0{member.name}\0{attempt}".encode("utf-8", "surrogatepass")
    return f"{joined[: MAX_NAME - 9]}_{hashlib.sha256(identity).hexdigest()[:8]}"
