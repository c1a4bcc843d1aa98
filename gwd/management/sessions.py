"""Sessions of browsers at the node's page, and links that sign in once: tables, digests, ends.

What a browser holds is random and stored as a keyed digest; the key itself is kept nowhere. A session can do what its
key can do now: each use reads the key's row, so one that was disabled, revoked or whose member left ends it.
"""

from collections.abc import Sequence
from typing import Annotated, Final, NamedTuple

import msgspec
from msgspec import Meta

from gwd.core.caller import Caller
from gwd.core.clock import US_PER_S, iso
from gwd.core.errors import NotFound
from gwd.core.fields import Id, Moment, Secret
from gwd.core.ids import mint, random_base62
from gwd.keys import admission, secret
from gwd.keys.admission import KeyRow
from gwd.orgs import rights
from gwd.store import Connection

HOUR_US: Final = 3_600 * US_PER_S
LIFE_US: Final = 12 * HOUR_US
IDLE_US: Final = 2 * HOUR_US
OWN_LIFE_US: Final = 7 * 24 * HOUR_US
OWN_IDLE_US: Final = 24 * HOUR_US
SEEN_US: Final = 60 * US_PER_S
PROOF_US: Final = 15 * 60 * US_PER_S
LINK_US: Final = 60 * US_PER_S
MOST_OF_KEY: Final = 20
MOST_LISTED: Final = 200
MOST_TEXT: Final = 200
TOKEN_LENGTH: Final = 43

_COLUMNS: Final = (
    "id, key_id, organization_id, user_id, own_device, address, user_agent, created_at, proved_at, seen_at,"
    " expires_at"
)
_FIND: Final = f"SELECT {_COLUMNS} FROM browser_session WHERE digest = ?"  # noqa: S608
_OF_ORGANIZATION: Final = (
    f"SELECT {_COLUMNS} FROM browser_session INDEXED BY browser_session_by_organization"  # noqa: S608
    " WHERE organization_id = ? AND expires_at > ? ORDER BY created_at DESC"
)


class Session(NamedTuple):
    """A session as it is stored. `proved_at` is when the key itself was last shown, or a link was used."""

    id: str
    key_id: str
    organization_id: str
    user_id: str | None
    own_device: int
    address: str
    user_agent: str
    created_at: int
    proved_at: int
    seen_at: int
    expires_at: int

    def is_over(self, now_us: int) -> bool:
        idle_us = OWN_IDLE_US if self.own_device else IDLE_US
        return now_us >= self.expires_at or now_us >= self.seen_at + idle_us

    def is_proved(self, now_us: int) -> bool:
        """Whether it is so fresh that what cannot be undone needs no further proof."""
        return now_us < self.proved_at + PROOF_US


class SessionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A browser that is signed in. What it holds is never in it."""

    id: Annotated[Id, Meta(description="`ses_…`")]
    key_id: Annotated[Id, Meta(description="The key it was signed in with; it ends with that key.")]
    key_name: Annotated[str | None, Meta(description="What the key is called.")]
    user_id: Annotated[
        Id | None, Meta(description="The member whose key it is; null if it is nobody's own.")
    ]
    own_device: Annotated[
        bool, Meta(description="Whether it was said to be an own device, and lasts longer.")
    ]
    address: Annotated[str, Meta(description="From where it was signed in.")]
    user_agent: Annotated[str, Meta(description="What the browser called itself.")]
    created_at: Annotated[Moment, Meta(description="When it was signed in.")]
    seen_at: Annotated[Moment, Meta(description="When it was last used, to the minute.")]
    expires_at: Annotated[Moment, Meta(description="When it ends at the latest.")]


class NewSession(msgspec.Struct, frozen=True, kw_only=True):
    """Who signs in, and from where."""

    caller: Caller
    own_device: bool
    address: str
    user_agent: str


class CreateSignInLink(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of POST /sign-in-links."""

    path: Annotated[
        str,
        Meta(description="Where the browser shall land, below the page's address, such as /keys."),
    ] = "/"


class SignInLinkRecord(msgspec.Struct, frozen=True, kw_only=True):
    """An address that signs a browser in, once."""

    url: Annotated[
        Secret | None,
        Meta(description="Open it in a browser; it works once. Null when the request is repeated."),
    ]
    expires_at: Annotated[Moment, Meta(description="From when on it does not work.")]

    def __repr__(self) -> str:
        return f"SignInLinkRecord(url=***, expires_at={self.expires_at!r})"


class Presented(msgspec.Struct, frozen=True, kw_only=True):
    """A session that holds, and its key as it is now."""

    session: Session
    key: KeyRow


def begin(connection: Connection, new: NewSession, *, pepper: bytes, now_us: int) -> str:
    """Sign a browser in and give back what it shall hold; of a key's sessions beyond 20 the oldest go."""
    token = random_base62(TOKEN_LENGTH)
    life_us = OWN_LIFE_US if new.own_device else LIFE_US
    connection.execute(
        f"INSERT INTO browser_session ({_COLUMNS}, digest) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
        (
            mint("ses_"),
            new.caller.key_id,
            new.caller.organization_id,
            new.caller.user_id,
            new.own_device,
            new.address,
            new.user_agent[:MOST_TEXT],
            now_us,
            now_us,
            now_us,
            now_us + life_us,
            _digest("session", token, pepper),
        ),
    )
    connection.execute(
        "DELETE FROM browser_session WHERE id IN (SELECT id FROM browser_session WHERE key_id = ?"
        " ORDER BY seen_at DESC, id LIMIT -1 OFFSET ?)",
        (new.caller.key_id, MOST_OF_KEY),
    )
    return token


def find(
    connection: Connection, token: str, *, pepper: bytes, rate_limit_ceiling: int, now_us: int
) -> Presented | None:
    """The session of a token with its key's row, if it holds; whether the key may act is for the caller to judge."""
    row = connection.row(_FIND, (_digest("session", token, pepper),))
    if row is None or (session := Session._make(row)).is_over(now_us):
        return None
    key = admission.find_by_id(connection, session.key_id, rate_limit_ceiling=rate_limit_ceiling)
    return None if key is None else Presented(session=session, key=key)


def see(connection: Connection, session_id: str, *, now_us: int) -> None:
    """It was used."""
    connection.execute(
        "UPDATE browser_session SET seen_at = ? WHERE id = ? AND seen_at < ?",
        (now_us, session_id, now_us),
    )


def prove(connection: Connection, session_id: str, *, now_us: int) -> None:
    """Its key was shown once more."""
    connection.execute(
        "UPDATE browser_session SET proved_at = ? WHERE id = ?", (now_us, session_id)
    )


def end(connection: Connection, session_id: str) -> None:
    """Sign a browser out."""
    connection.execute("DELETE FROM browser_session WHERE id = ?", (session_id,))


def list_sessions(connection: Connection, actor: Caller, *, now_us: int) -> list[Session]:
    """The browsers of the organization that are signed in, newest first; a member sees its own."""
    rows = map(Session._make, connection.rows(_OF_ORGANIZATION, (actor.organization_id, now_us)))
    return [row for row in rows if not row.is_over(now_us) and _may_end(actor, row)][:MOST_LISTED]


def require(connection: Connection, actor: Caller, session_id: str) -> Session:
    """A session that the caller may end. Raises NotFound for any other."""
    row = connection.row(
        f"SELECT {_COLUMNS} FROM browser_session WHERE id = ?",  # noqa: S608
        (session_id,),
    )
    session = None if row is None else Session._make(row)
    if session is None or not _may_end(actor, session):
        raise NotFound("no such session; it may have ended already")
    return session


def record(connection: Connection, session: Session) -> SessionRecord:
    """The session as the API shows it."""
    return SessionRecord(
        id=session.id,
        key_id=session.key_id,
        key_name=admission.name_of(connection, session.key_id),
        user_id=session.user_id,
        own_device=bool(session.own_device),
        address=session.address,
        user_agent=session.user_agent,
        created_at=iso(session.created_at),
        seen_at=iso(session.seen_at),
        expires_at=iso(session.expires_at),
    )


def make_link(
    connection: Connection, key_id: str, path: str, *, pepper: bytes, now_us: int
) -> tuple[str, int]:
    """A token that signs in once with the rights of this key, and when it ends."""
    token, expires_us = random_base62(TOKEN_LENGTH), now_us + LINK_US
    connection.execute("DELETE FROM sign_in_link WHERE expires_at <= ?", (now_us,))
    connection.execute(
        "INSERT INTO sign_in_link (digest, key_id, path, expires_at) VALUES (?, ?, ?, ?)",
        (_digest("link", token, pepper), key_id, path, expires_us),
    )
    return token, expires_us


def use_link(
    connection: Connection, token: str, *, pepper: bytes, rate_limit_ceiling: int, now_us: int
) -> tuple[KeyRow, str] | None:
    """The key of a link and where it leads; used up. None for one that is unknown, used or too old."""
    row = connection.row(
        "DELETE FROM sign_in_link WHERE digest = ? AND expires_at > ? RETURNING key_id, path",
        (_digest("link", token, pepper), now_us),
    )
    if row is None:
        return None
    key = admission.find_by_id(connection, row[0], rate_limit_ceiling=rate_limit_ceiling)
    return None if key is None else (key, row[1])


def old(connection: Connection, *, now_us: int, at_most: int) -> Sequence[str]:
    """Ids of sessions that are over."""
    rows = connection.rows(
        "SELECT id FROM browser_session WHERE expires_at <= ? LIMIT ?", (now_us, at_most)
    )
    return [row[0] for row in rows]


def forget(connection: Connection, session_ids: Sequence[str], *, now_us: int) -> None:
    """Drop these sessions."""
    connection.execute_many(
        "DELETE FROM browser_session WHERE id = ? AND expires_at <= ?",
        [(session_id, now_us) for session_id in session_ids],
    )


def _may_end(actor: Caller, session: Session) -> bool:
    """Whose sessions somebody sees: all of the organization with the right to change members, else their own."""
    if session.organization_id != actor.organization_id:
        return False
    if session.key_id == actor.key_id or rights.allowed(actor, "members.write") == "all":
        return True
    return actor.user_id is not None and session.user_id == actor.user_id


def _digest(what: str, token: str, pepper: bytes) -> bytes:
    return secret.digest(f"{what}:{token}", pepper)
