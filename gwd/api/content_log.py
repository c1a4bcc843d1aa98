"""/content-log and /generation/content: what is stored of requests and answers, read and erased.

Whoever reads it leaves a line in the audit trail before it is shown.
"""

from functools import partial
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from gwd.activity import service as activity
from gwd.api.generations import may_see, named_in
from gwd.api.management import Answer, Call, one
from gwd.api.query import Flag, Query, Text
from gwd.api.shapes import One
from gwd.content_log import service as content_log
from gwd.content_log.content import Side, decode
from gwd.content_log.sealing import digest, opened
from gwd.content_log.service import Which
from gwd.core.clock import iso
from gwd.core.errors import Conflict, GenerationNotFound, InvalidValue, NotFound
from gwd.core.fields import Count, Id, Moment
from gwd.credentials.vault import CannotOpenError
from gwd.keys.admission import families_of_ids
from gwd.management import content_log as erasing
from gwd.orgs.content_log import ContentLog
from gwd.orgs.settings import settings
from gwd.store import Connection

WHICH: Final = (
    Query("key_id", Text(), "What is stored of this key and of those of its family."),
    Query("workspace_id", Text(), "What is stored of this workspace's keys."),
    Query("user", Text(), "What is stored of requests with this `user`."),
    Query("session_id", Text(), "What is stored of this session."),
    Query("all", Flag(), "Everything that is stored of the organization; excludes the others."),
)


class ContentLogRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What is stored of an organization's requests."""

    content_log: Annotated[
        ContentLog | None,
        Meta(description="What is stored from now on, as in the settings; null: nothing."),
    ]
    stored: Annotated[Count, Meta(description="Of how many requests something is stored.")]
    stored_bytes: Annotated[Count, Meta(description="How much that is, sealed.")]
    oldest_at: Annotated[
        Moment | None, Meta(description="When the oldest of them was made; null where none is.")
    ]


class LoggedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request and its answer, as far as they are stored."""

    id: Annotated[Id, Meta(description="The generation, `gen-…`.")]
    created_at: Annotated[Moment, Meta(description="When it was made.")]
    expires_at: Annotated[Moment, Meta(description="When what is stored of it is erased.")]
    cut: Annotated[
        list[Side],
        Meta(description="Which of the two is longer than is stored."),
    ]
    request: Annotated[
        dict[str, Any],
        Meta(
            description="What the client sent, in the gateway's own form whatever its dialect: `models`, `body` with"
            " `messages` and `tools`, `provider` …; pictures and files are their kind and size."
        ),
    ]
    answer: Annotated[
        dict[str, Any] | None,
        Meta(
            description="What reached the client: `parts` (text, reasoning, calls of tools) and `finish_reason`; null"
            " where nothing did."
        ),
    ]


class ErasedRequests(msgspec.Struct, frozen=True, kw_only=True):
    """What was erased."""

    erased: Annotated[Count, Meta(description="Of how many requests something was stored.")]
    log_emptied: Annotated[
        bool,
        Meta(
            description="Whether the database's log of writes has forgotten it, too; false: within the next minutes."
        ),
    ]
    deleted: Annotated[Literal[True], Meta(description="It is gone, or was not there.")] = True


def show(connection: Connection, call: Call) -> Answer:
    """What is stored of requests and answers, and how much there is."""
    totals = content_log.totals(connection, call.organization_id)
    return one(
        ContentLogRecord(
            content_log=settings(connection, call.organization_id).settings.content_log,
            stored=totals.count,
            stored_bytes=totals.size,
            oldest_at=None if totals.oldest_us is None else iso(totals.oldest_us),
        )
    )


async def read(call: Call) -> Answer:
    """What is stored of one request and its answer.

    Each reading is noted in the audit trail.
    """
    found = await call.node.store.read(_read, call)
    return Answer(body=One(data=found), subject=("generation", found.id))


async def erase_one(call: Call) -> Answer:
    """Erase what is stored of one request.

    Its record stays.
    """
    generation_id = named_in(call)
    which = Which(organization_id=call.organization_id, generation_id=generation_id)
    return await _erase(call, which, ("generation", generation_id))


async def erase(call: Call) -> Answer:
    """Erase what is stored of requests: of a key, a workspace, a user, a session, or all.

    Of several that are named all must hold. The records of the requests stay.
    """
    which = await call.node.store.read(_which, call)
    # A user's name is left out of the trail: it may be what was to be forgotten.
    said = {name: call.query[name] for name in ("key_id", "workspace_id") if name in call.query}
    return await _erase(
        call, which, ("organization", call.organization_id), by=list(call.query), **said
    )


async def _erase(
    call: Call, which: Which, subject: tuple[str, str | None], **details: Any
) -> Answer:
    store = call.node.store
    count = await erasing.erase(store, partial(content_log.find, which=which))
    emptied = await erasing.empty_log(store)
    return Answer(
        body=ErasedRequests(erased=count, log_emptied=emptied),
        subject=subject,
        details={**details, "erased": count},
    )


def _read(connection: Connection, call: Call) -> LoggedRequest:
    generation_id, organization_id = named_in(call), call.organization_id
    row = activity.get(connection, organization_id, generation_id)
    stored = content_log.get(connection, organization_id, generation_id, now_us=call.now_us)
    if stored is None or not may_see(connection, call.caller, row, "content_log.read"):
        raise GenerationNotFound("nothing is stored of this request, or not any more")
    try:
        content = decode(
            opened(
                stored.content,
                call.node.vault,
                stored.sealed_key,
                data_key_id=stored.data_key_id,
                organization_id=organization_id,
                generation_id=generation_id,
            )
        )
    except CannotOpenError:
        raise Conflict(
            "what is stored of this request does not open with this key ring; restore keyring.json, or erase it"
        ) from None
    return LoggedRequest(
        id=generation_id,
        created_at=iso(stored.created_us),
        expires_at=iso(stored.expires_us),
        cut=list(content.cut),
        request=content.request,
        answer=content.answer,
    )


def _which(connection: Connection, call: Call) -> Which:
    query, vault = call.query, call.node.vault
    named = [name for name in query if name != "all"]
    if query.get("all", False) == bool(named):
        raise InvalidValue(
            "name what to erase: key_id, workspace_id, user or session_id; or all=true for everything",
            param="all",
        )
    family = None
    if (key_id := query.get("key_id")) is not None:
        family = families_of_ids(connection, call.organization_id, (key_id,)).get(key_id)
        if family is None:
            raise NotFound("No such key.")
    user, session_id = query.get("user"), query.get("session_id")
    return Which(
        organization_id=call.organization_id,
        family_id=family,
        workspace_id=query.get("workspace_id"),
        user_digest=None if user is None else digest(vault, "user", user),
        session_digest=None if session_id is None else digest(vault, "session", session_id),
    )
