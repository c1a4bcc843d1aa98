"""One request of a browser from path to answer: who looks, what is shown or done, and what an error looks like."""

import logging
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

import msgspec

from gwd.api.auth import count_auth_failure
from gwd.api.node import Node
from gwd.core.errors import (
    Forbidden,
    GatewayError,
    InternalError,
    InvalidRequest,
    MethodNotAllowed,
    NotFound,
    StatementMismatch,
    Unauthenticated,
    WrongKeyType,
)
from gwd.core.ids import mint
from gwd.core.links import page_root
from gwd.keys.admission import require_usable
from gwd.management import sessions
from gwd.management.sessions import Presented
from gwd.orgs import rights
from gwd.page import gate, request, session, table
from gwd.page.answer import PRIVATE, STATIC, Done, Download, Sent, Shown, see_other
from gwd.page.ask import Ask, Doing, Visit, ask_live
from gwd.page.frame import frame
from gwd.page.gate import Came, User
from gwd.page.render import html, static_files
from gwd.page.request import AGAIN, CSRF, USER_NAME, Field, Form
from gwd.page.table import Act, Page
from gwd.page.words import heading, message
from gwd.store import Connection

_COMMON: Final = (Field("did", 40), Field("live", 10))
_FORM: Final = (Field(CSRF, 100), Field("once", 100), Field(AGAIN, 200), Field(USER_NAME, 200))
_BARE: Final = Form({})

log = logging.getLogger(__name__)


class Site:
    """The page of one node."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self.root = page_root(node.app_url)
        self._static = {file.name: file for file in static_files().values()}

    async def answer(self, came: Came) -> Sent:
        """What a browser gets. Nothing is raised."""
        if came.path.startswith("/static/"):
            return self._file(came)
        request_id = mint("req_")
        user = None
        try:
            if came.method == "POST":
                request.require_ours(came.headers, self._node.app_url)
            user = await self._user(came)
            found = await self._open(came, user, request_id)
            if found is None:
                found = await self._closed(came, user, request_id)
        except Exception as error:  # noqa: BLE001 - whatever it is, the browser gets a page
            found = await self._failed(came, user, error, request_id)
        return msgspec.structs.replace(found, headers=PRIVATE | dict(found.headers))

    def _file(self, came: Came) -> Sent:
        file = self._static.get(came.path.removeprefix("/static/"))
        if file is None:
            return Sent(
                status=404, body="no such file\n", content_type="text/plain", headers=PRIVATE
            )
        headers = STATIC | {"vary": "accept-encoding"}
        if "gzip" in came.headers.get("accept-encoding", ""):
            return Sent(
                body=file.packed,
                content_type=file.content_type,
                headers=headers | {"content-encoding": "gzip"},
            )
        return Sent(body=file.body, content_type=file.content_type, headers=headers)

    async def _user(self, came: Came) -> User | None:
        """Who is signed in: session and key as they are now. A key that may not act any more has no session."""
        token = came.cookies.get(session.name(self._node), "")
        if not token:
            return None
        node, now_us = self._node, self._node.clock.now_us()
        found: Presented | None = await node.store.read(
            sessions.find,
            token,
            pepper=node.issuing.pepper,
            rate_limit_ceiling=node.issuing.rate_limit_ceiling,
            now_us=now_us,
        )
        if found is None:
            return None
        try:
            require_usable(found.key, now_us=now_us)
        except Unauthenticated:
            await node.store.write(sessions.end, found.session.id)
            return None
        if now_us - found.session.seen_at >= sessions.SEEN_US:
            await node.store.write(sessions.see, found.session.id, now_us=now_us)
        return User(session=found.session, key=found.key, token=token)

    async def _open(self, came: Came, user: User | None, request_id: str) -> Sent | None:
        """What is there without a session: signing in and out, links, invitations."""
        found = gate.at(came.method, came.path)
        if found is None:
            return None
        handle, path = found
        result = await handle(gate.Gate(self._node, self.root, came, user, request_id, path))
        if isinstance(result, Sent):
            return result
        values = self._bare_values(came, user) | result.values
        title = result.title or "gwd"
        return Sent(
            status=result.status,
            body=html(result.template, {**values, "title": title}),
            headers=result.headers,
        )

    async def _closed(self, came: Came, user: User | None, request_id: str) -> Sent:
        """What needs a session."""
        if user is None:
            if came.method == "POST":
                return see_other(f"{self.root}/sign-in?did=session_over")
            wanted = self.root + came.path + (f"?{came.query}" if came.query else "")
            return see_other(f"{self.root}/sign-in?next={quote(wanted)}")
        visit = self._visit(user, came, request_id)
        if came.method == "POST":
            acting = table.act_at(came.path)
            if acting is None:
                raise self._nothing(came)
            return await self._act(came, user, visit, *acting)
        paging = table.page_at(came.path)
        if paging is None:
            raise self._nothing(came)
        page, path = paging
        query = request.query(came.query, (*page.query, *_COMMON))
        return await self._page(came, user, visit, page, path, query)

    async def _page(
        self,
        came: Came,
        user: User,
        visit: Visit,
        page: Page,
        path: dict[str, str],
        query: Form,
        *,
        errors: Mapping[str, str] | None = None,
        typed: Form | None = None,
        status: int = 200,
    ) -> Sent:
        """A page of the table, as this caller may see it."""
        _require_management(visit, page)
        if page.right is not None and not page.of_api_key:
            reach = rights.require(visit.caller, page.right)
            if page.is_whole and reach != "all":
                raise Forbidden(
                    "This page is about the whole organization, and this key is bound to one workspace."
                )
        live = {route: await ask_live(visit, route) for route in page.live}

        def show(connection: Connection) -> Sent:
            ask = Ask(
                connection,
                visit,
                path=path,
                query=query,
                live=live,
                errors=errors or {},
                typed=typed,
            )
            shown = page.view(ask)
            if isinstance(shown, Download):
                return _file(shown)
            return self._rendered(ask, came, user, page, shown, status)

        try:
            return await self._node.store.read(show)
        except NotFound as error:
            raise _Missing(error.message, page) from None

    def _rendered(
        self, ask: Ask, came: Came, user: User, page: Page | None, shown: Shown, status: int
    ) -> Sent:
        values = self._bare_values(came, user) | frame(ask, page)
        assert not values.keys() & shown.values.keys(), "a view names what stands around every page"
        values |= {"title": shown.title or (page.title if page else ""), **shown.values}
        headers = {}
        if page is not None and ask.query.text("live") == "10":
            headers["refresh"] = "10"
        return Sent(
            status=status if status != 200 else shown.status,
            body=html(shown.template, values),
            headers=headers,
        )

    async def _act(
        self, came: Came, user: User, visit: Visit, act: Act, path: dict[str, str]
    ) -> Sent:
        """Do what a form asks for, and go on."""
        form = request.form(came.body, came.headers.get("content-type", ""), (*act.fields, *_FORM))
        gate.require_token(self._node, user, form)
        _require_management(visit, None)
        rights.require(visit.caller, act.right)
        if act.asks_again and not user.session.is_proved(visit.now_us):
            shown = await gate.proved(self._node, came, user, form)
            if shown is not None:
                return await self._show(came, user, visit, shown)
        doing = Doing(visit, form, path)
        try:
            result = await act.do(doing)
        except InvalidRequest as error:
            if act.form is None or error.param == CSRF:
                raise
            page = table.page_of(act.form)
            return await self._page(
                came, user, visit, page, path, _BARE,
                errors={error.param or "": message(error, page.noun)}, typed=form, status=error.status,
            )  # fmt: skip
        except NotFound as error:
            raise _Missing(error.message, table.page_of(act.form) if act.form else None) from None
        if isinstance(result, Done):
            mark = "&" if "?" in result.path else "?"
            return see_other(f"{self.root}{result.path}{mark}did={result.did}")
        return await self._show(came, user, visit, result)

    async def _show(self, came: Came, user: User, visit: Visit, shown: Shown) -> Sent:
        """A page that is no line of the table: what a form answered."""

        def show(connection: Connection) -> Sent:
            ask = Ask(connection, visit, path={}, query=_BARE, live={}, errors={}, typed=None)
            return self._rendered(ask, came, user, None, shown, shown.status)

        return await self._node.store.read(show)

    async def _failed(
        self, came: Came, user: User | None, error: Exception, request_id: str
    ) -> Sent:
        """An error as a page, in the frame where somebody is signed in."""
        refusal = error if isinstance(error, GatewayError) else InternalError("unexpected")
        if isinstance(refusal, StatementMismatch):
            self._node.counters.statement_mismatches += 1
        if refusal is not error or isinstance(refusal, StatementMismatch):
            log.error(
                "a page could not be shown: %s",
                error,
                exc_info=error,
                extra={"request_id": request_id},
            )
        count_auth_failure(self._node.counters, refusal)
        page = error.page if isinstance(error, _Missing) else None
        noun = page.noun if page is not None else "page"
        shown = Shown(
            template="error.html",
            title=heading(refusal, noun),
            status=refusal.status,
            values={
                "heading": heading(refusal, noun),
                "message": message(refusal, noun),
                "code": refusal.code,
                "status": refusal.status,
                "request_id": request_id,
                "page": page,
                "narrow": refusal.code == "report_too_large",
                "path": came.path,
            },
        )
        headers = {}
        if refusal.retry_after_s is not None:
            headers["retry-after"] = str(refusal.retry_after_s)
        try:
            if user is not None:
                visit = self._visit(user, came, request_id)
                sent = await self._show(came, user, visit, shown)
                return msgspec.structs.replace(sent, headers=headers)
        except GatewayError:
            pass
        values = self._bare_values(came, None) | shown.values | {"title": shown.title}
        return Sent(status=shown.status, body=html("error-bare.html", values), headers=headers)

    def _visit(self, user: User, came: Came, request_id: str) -> Visit:
        return Visit(
            node=self._node,
            key=user.key,
            request_id=request_id,
            address=came.address,
            now_us=self._node.clock.now_us(),
            due_us=self._node.clock.due_us(),
        )

    def _bare_values(self, came: Came, user: User | None) -> dict[str, Any]:
        """What every template is given."""
        theme = came.cookies.get("theme", "")
        pepper = self._node.issuing.pepper
        return {
            "root": self.root,
            "theme": theme if theme in session.THEMES else "system",
            "csrf": session.form_token(user.token, pepper) if user is not None else "",
            "host": came.headers.get("host", ""),
            "base_url": self._node.base_url,
            "here": self.root + came.path + (f"?{came.query}" if came.query else ""),
            "once": mint("once_"),
        }

    def _nothing(self, came: Came) -> GatewayError:
        """Nothing is at this path, or it takes the other method."""
        if came.method == "POST" and table.page_at(came.path) is not None:
            return MethodNotAllowed("this page is only looked at", allowed=("GET",))
        if came.method != "POST" and table.act_at(came.path) is not None:
            return MethodNotAllowed(
                "open the page before it, and press its button", allowed=("POST",)
            )
        return NotFound("no such page")


class _Missing(NotFound):
    """What a page is about does not exist for this caller."""

    def __init__(self, text: str, page: Page | None) -> None:
        super().__init__(text)
        self.page = page


def _require_management(visit: Visit, page: Page | None) -> None:
    if visit.caller.kind == "inference" and not (page is not None and page.of_api_key):
        raise WrongKeyType(
            "You are signed in with an API key, which sees its own limit and spend and nothing else;"
            " sign in with a management key (gwm_…) for this page"
        )


def _file(made: Download) -> Sent:
    return Sent(
        body=made.body,
        content_type=made.content_type,
        headers={"content-disposition": f'attachment; filename="{made.name}"'},
    )
