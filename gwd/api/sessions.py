"""/sign-in-links and /sessions: browsers that look at the node's page, and how they get there."""

import re
from typing import Final

from gwd.api.management import Answer, Call, deleted, listed
from gwd.api.shapes import One
from gwd.core import links
from gwd.core.clock import iso
from gwd.core.errors import Conflict, InvalidValue
from gwd.management import sessions
from gwd.management.sessions import CreateSignInLink, SignInLinkRecord
from gwd.store import Connection

_PATH: Final = re.compile(r"/[!-~]{0,499}", re.ASCII)


def make_link(connection: Connection, call: Call) -> Answer:
    """Make an address that signs a browser in.

    It works once, for a minute, with the rights of the calling key, and is shown here, once.
    """
    body: CreateSignInLink = call.body
    if not call.node.settings.server.page:
        raise Conflict("this node serves no page; the operator can set [server] page = true")
    if _PATH.fullmatch(body.path) is None or "//" in body.path or "\\" in body.path:
        raise InvalidValue(
            "`path` must be a path of the page such as /keys: it begins with one slash, without `//` and blanks",
            param="path",
        )
    token, expires_us = sessions.make_link(
        connection,
        call.caller.key_id,
        body.path,
        pepper=call.node.issuing.pepper,
        now_us=call.now_us,
    )
    made = SignInLinkRecord(url=links.sign_in(call.node.app_url, token), expires_at=iso(expires_us))
    return Answer(
        status=201,
        body=One(data=made),
        replay=One(data=SignInLinkRecord(url=None, expires_at=made.expires_at)),
        subject=("key", call.caller.key_id),
        details={"path": body.path},
    )


def list_(connection: Connection, call: Call) -> Answer:
    """The browsers that are signed in, newest first, at most 200.

    Owners and admins see those of the organization, others their own.
    """
    found = sessions.list_sessions(connection, call.caller, now_us=call.now_us)
    return listed([sessions.record(connection, each) for each in found], len(found))


def end(connection: Connection, call: Call) -> Answer:
    """Sign a browser out."""
    found = sessions.require(connection, call.caller, call.path["session"])
    sessions.end(connection, found.id)
    return deleted("session", found.id, details={"key_id": found.key_id})
