"""Erasing what is stored of requests, in short lists, and then from the log of writes; what its settings may name."""

from typing import Final, Protocol

from gwd.content_log import service as content_log
from gwd.core.errors import InvalidValue
from gwd.keys.admission import families_of_ids
from gwd.orgs import workspaces
from gwd.orgs.content_log import ContentLog
from gwd.store import Connection, Store

CHUNK: Final = 50
"""A list at a time: what is erased is overwritten, page by page, and others want to write, too."""


class Find(Protocol):
    """Finds entries to erase."""

    def __call__(self, connection: Connection, *, at_most: int) -> list[int]:
        """The first of them."""
        ...


def require_own(
    connection: Connection,
    organization_id: str,
    after: ContentLog | None,
    before: ContentLog | None,
) -> None:
    """Raises InvalidValue for a key or a workspace that was just named and is none of the organization's."""
    if after is None:
        return
    held = before or ContentLog(days=after.days)
    known_keys = families_of_ids(connection, organization_id, after.keys or ())
    known_workspaces = set(workspaces.names(connection, organization_id))
    for name, known in (("keys", known_keys), ("workspaces", known_workspaces)):
        for index, identity in enumerate(getattr(after, name) or ()):
            if identity not in known and identity not in (getattr(held, name) or ()):
                param = f"content_log.{name}[{index}]"
                raise InvalidValue(
                    f"{param}: the organization has no {name.removesuffix('s')} {identity}; name it by its id.",
                    param=param,
                )


async def erase(store: Store, find: Find) -> int:
    """Erase what `find` finds until it finds nothing; how many entries there were."""
    count = 0
    while entries := await store.read(find, at_most=CHUNK):
        count += await store.write(content_log.erase, entries)
    return count


async def empty_log(store: Store) -> bool:
    """Let the log of writes forget what was erased; whether nothing of it is left there."""
    mark = await store.read(content_log.erased)
    if mark is None:
        return True
    if not await store.empty_log():
        return False
    await store.write(content_log.note_emptied, mark)
    return True
