"""The ways in and out: signing in with a key or a link, an invitation, signing out; and the choice of colours."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec

from gwd.api.auth import count_auth_failure
from gwd.api.invitations import HOW_TO_ACCEPT
from gwd.api.node import Node
from gwd.api.perform import Incoming, perform_open
from gwd.api.routes import OPEN_ROUTES
from gwd.core.errors import Forbidden, GatewayError, InvalidRequest, NotFound
from gwd.keys.admission import KeyRow, require_usable
from gwd.management import sessions
from gwd.management.sessions import NewSession, Session
from gwd.page import request, session
from gwd.page.answer import Sent, Shown, see_other
from gwd.page.request import AGAIN, CSRF, USER_NAME, Field, Form, Stranger
from gwd.page.words import DID, message

_KEY: Final = Field("key", 200)
_TOKEN: Final = Field("token", 200)
_PLAIN: Final = "text/plain; charset=utf-8"
_NEXT: Final = Field("next", 2_000)
_OLD: Final = (
    "this page is older than your session: reload it and send the form again; nothing was changed"
)


class Came(msgspec.Struct, frozen=True, kw_only=True):
    """A request of a browser; `path` is below the page's root and begins with a slash."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    cookies: Mapping[str, str]
    body: bytes
    address: str


class User(msgspec.Struct, frozen=True, kw_only=True):
    """A browser that is signed in."""

    session: Session
    key: KeyRow
    token: str


class Gate(msgspec.Struct, frozen=True):
    """What the functions below are given."""

    node: Node
    root: str
    came: Came
    user: User | None
    request_id: str
    path: str

    def form(self, *fields: Field) -> Form:
        content_type = self.came.headers.get("content-type", "")
        return request.form(self.came.body, content_type, (*fields, Field(CSRF, 100)))


Handle = Callable[[Gate], Awaitable[Sent | Shown]]


def at(method: str, path: str) -> tuple[Handle, str] | None:
    """Who answers here without a session; with the last part of the path."""
    place = "POST" if method == "POST" else "GET"
    if path.startswith("/open/"):
        token = path.removeprefix("/open/")
        return (_open_link if place == "GET" else _use_link), token
    handle = _TABLE.get((place, path))
    return None if handle is None else (handle, "")


def require_token(node: Node, user: User, form: Form) -> None:
    """A form carries the token of its session. Raises Stranger."""
    if not session.is_form_token(form.text(CSRF), user.token, node.issuing.pepper):
        raise Stranger(_OLD, param=CSRF)


async def proved(node: Node, came: Came, user: User, form: Form) -> Shown | None:
    """Ask for the key once more: None once it was given, else the page that asks."""
    problem, given = None, form.text(AGAIN)
    if given:
        try:
            row = await node.authenticator.find({"authorization": f"Bearer {given}"}, came.address)
        except GatewayError as error:
            count_auth_failure(node.counters, error)
            problem = message(error, "key")
        else:
            if row.caller.key_id == user.key.caller.key_id:
                now_us = node.clock.now_us()
                await node.store.write(sessions.prove, user.session.id, now_us=now_us)
                return None
            problem = "That is another key than the one you are signed in with."
    kept = [
        (name, text)
        for name, texts in form.texts.items()
        if name not in (AGAIN, CSRF, USER_NAME)
        for text in texts
    ]
    values = {"kept": kept, "problem": problem, "path": came.path}
    return Shown(
        template="again.html", title="Your key, once more", values=values,
        status=401 if problem else 200,
    )  # fmt: skip


async def _show_sign_in(gate: Gate) -> Shown:
    query = request.query(gate.came.query, (_NEXT, Field("did", 40)))
    return _sign_in_page(gate, query.text("next"), did=DID.get(query.text("did")))


def _sign_in_page(
    gate: Gate,
    wanted: str,
    *,
    problem: str | None = None,
    status: int = 200,
    did: str | None = None,
) -> Shown:
    onward = request.next_path(wanted, gate.root)
    values = {
        "next": onward,
        "is_first": onward == f"{gate.root}/",
        "problem": problem,
        "did": did,
    }
    return Shown(template="sign-in.html", title="Sign in", values=values, status=status)


async def _sign_in(gate: Gate) -> Sent | Shown:
    node = gate.node
    form = gate.form(_KEY, _NEXT, Field(USER_NAME, 200), Field("own", 1))
    key = form.text("key")
    try:
        row = await node.authenticator.find({"authorization": f"Bearer {key}"}, gate.came.address)
        require_usable(row, now_us=node.clock.now_us())
    except GatewayError as error:
        count_auth_failure(node.counters, error)
        return _sign_in_page(
            gate, form.text("next"), problem=message(error, "key"), status=error.status
        )
    onward = request.next_path(form.text("next"), gate.root)
    return await _begin(gate, row, onward, own_device=form.flag("own"))


async def _begin(gate: Gate, row: KeyRow, onward: str, *, own_device: bool = False) -> Sent:
    """A session, and the browser goes on: with an API key to that key's own page."""
    if row.caller.kind == "inference":
        onward = f"{gate.root}/me"
    cookie = await _signed_in(gate, row, own_device=own_device)
    return see_other(onward, **{"set-cookie": cookie})


async def _signed_in(gate: Gate, row: KeyRow, *, own_device: bool) -> str:
    """The cookie of a new session; the one before it ends."""
    node = gate.node
    new = NewSession(
        caller=row.caller,
        own_device=own_device,
        address=gate.came.address,
        user_agent=gate.came.headers.get("user-agent", ""),
    )
    if gate.user is not None:
        await node.store.write(sessions.end, gate.user.session.id)
    token = await node.store.write(
        sessions.begin, new, pepper=node.issuing.pepper, now_us=node.clock.now_us()
    )
    return session.set_cookie(node, token, own_device=own_device)


async def _sign_out(gate: Gate) -> Sent:
    form = gate.form()
    if gate.user is not None:
        require_token(gate.node, gate.user, form)
        await gate.node.store.write(sessions.end, gate.user.session.id)
    return see_other(
        f"{gate.root}/sign-in?did=signed_out", **{"set-cookie": session.end_cookie(gate.node)}
    )


async def _open_link(gate: Gate) -> Shown:
    """A look changes nothing: whoever fetches addresses ahead must not use the link up."""
    return Shown(template="open.html", title="Sign in", values={"token": gate.path})


async def _use_link(gate: Gate) -> Sent:
    gate.form()
    node = gate.node
    found = await node.store.write(
        sessions.use_link,
        gate.path,
        pepper=node.issuing.pepper,
        rate_limit_ceiling=node.issuing.rate_limit_ceiling,
        now_us=node.clock.now_us(),
    )
    if found is None:
        error = NotFound("this link was used or is older than a minute; run `gwctl open` again")
        node.authenticator.count_failure(gate.came.address, error)
        raise Forbidden(f"This link does not work any more: {error.message}.")
    row, path = found
    require_usable(row, now_us=node.clock.now_us())
    return await _begin(gate, row, request.next_path(gate.root + path, gate.root))


async def _show_invitation(gate: Gate) -> Sent | Shown:
    """What is offered. A look changes nothing, whoever fetches the addresses of a mail ahead."""
    if "text/html" not in gate.came.headers.get("accept", ""):
        return Sent(
            body=HOW_TO_ACCEPT.format(gate.node.base_url),
            content_type=_PLAIN,
            headers={"referrer-policy": "no-referrer"},
        )
    token = request.query(gate.came.query, (_TOKEN,)).text("token")
    return await _invitation_page(gate, token)


async def _invitation_page(
    gate: Gate, token: str, *, problem: str | None = None, status: int = 200
) -> Shown:
    found = await _open_route(gate, "/invitations/look-up", {"token": token})
    values = {"invitation": found["data"], "token": token, "problem": problem}
    title = f"Join {found['data']['organization_name']}"
    return Shown(template="invitation.html", title=title, values=values, status=status)


async def _accept(gate: Gate) -> Sent | Shown:
    """Join, and be signed in with the management key that is shown now, once."""
    node = gate.node
    form = gate.form(_TOKEN, Field("first_name", 1_000), Field("last_name", 1_000))
    token = form.text("token")
    names = {name: form.or_none(name) for name in ("first_name", "last_name")}
    try:
        joined = await _open_route(gate, "/invitations/accept", {"token": token, **names})
    except InvalidRequest as error:
        return await _invitation_page(
            gate, token, problem=message(error, "invitation"), status=error.status
        )
    key = joined["management_key"]
    row = await node.authenticator.find({"authorization": f"Bearer {key}"}, gate.came.address)
    cookie = await _signed_in(gate, row, own_device=False)
    values = {"secret": key, "member": joined["data"]}
    shown = Shown(template="joined.html", title="Your management key", values=values)
    return msgspec.structs.replace(shown, headers={"set-cookie": cookie})


async def _open_route(gate: Gate, path: str, body: Mapping[str, Any]) -> Any:
    """The answer of a route of the API that takes no key."""
    route = next(each for each in OPEN_ROUTES if each.path == path)
    incoming = Incoming(
        method="POST",
        path=f"/api/v1{path}",
        parameters={},
        query=[],
        headers={},
        body=msgspec.json.encode(body),
        address=gate.came.address,
        request_id=gate.request_id,
        by_page=True,
    )
    return msgspec.json.decode((await perform_open(gate.node, route, incoming)).body)


async def _theme(gate: Gate) -> Sent:
    form = gate.form(Field("theme", 10), _NEXT)
    if gate.user is not None:
        require_token(gate.node, gate.user, form)
    theme = form.text("theme")
    onward = request.next_path(form.text("next"), gate.root)
    if theme not in session.THEMES:
        return see_other(onward)
    return see_other(onward, **{"set-cookie": session.theme_cookie(gate.node, theme)})


_TABLE: Final[dict[tuple[str, str], Handle]] = {
    ("GET", "/sign-in"): _show_sign_in,
    ("POST", "/sign-in"): _sign_in,
    ("POST", "/sign-out"): _sign_out,
    ("POST", "/theme"): _theme,
    ("GET", "/invitations/accept"): _show_invitation,
    ("POST", "/invitations/accept"): _accept,
}
