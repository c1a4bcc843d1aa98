"""A browser without a screen: cookies, forms as they stand on a page, and what every page must be."""

import re
from html.parser import HTMLParser
from typing import Any

import httpx
import msgspec

from tests.support.node import Gateway

MOST_BYTES = 60_000
VOID = frozenset(("meta", "link", "input", "br", "img", "hr"))
EMPTY_IN_SVG = frozenset(("path", "rect", "line", "circle"))
HEADERS = {
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self';"
    " frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'"
)


class FormOnPage(msgspec.Struct):
    """A form: where it is sent, how, and what it holds as it stands."""

    action: str
    method: str
    fields: list[tuple[str, str]]
    buttons: list[str]

    @property
    def values(self) -> dict[str, str]:
        return dict(self.fields)


class Document(HTMLParser):
    """A page, read strictly: every element that is opened is closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.problems: list[str] = []
        self.ids: list[str] = []
        self.labelled: set[str] = set()
        self.named: list[tuple[str, str | None, bool]] = []
        self.links: list[str] = []
        self.forms: list[FormOnPage] = []
        self.words = ""
        self.headings: list[int] = []
        self._select: tuple[str, list[str], str | None] | None = None
        self.feed(text)
        self.close()
        if self.open:
            self.problems.append(f"never closed: {self.open}")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        got = dict(attrs)
        if len(got) != len(attrs):
            self.problems.append(f"<{tag}> has an attribute twice")
        for name, value in attrs:
            if name == "style" or name.startswith("on"):
                self.problems.append(f"<{tag} {name}=…> stands inside the page")
            if name in ("href", "src", "action") and re.match(r"(?:[a-z]+:|//)", value or ""):
                self.problems.append(f"{value} leads elsewhere")
        if tag == "script" and "src" not in got:
            self.problems.append("a script stands inside the page")
        if tag == "style":
            self.problems.append("a style stands inside the page")
        if (element := got.get("id")) is not None:
            self.ids.append(element)
        if tag == "label" and "for" in got:
            self.labelled.add(got["for"] or "")
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        self._field(tag, got)
        if tag == "a" and got.get("href"):
            self.links.append(got["href"] or "")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open[-1] != tag:
            self.problems.append(f"</{tag}> closes {self.open[-3:]}")
        elif self.open:
            self.open.pop()
        if tag == "select" and self._select is not None:
            name, options, chosen = self._select
            self.forms[-1].fields.append((name, chosen if chosen is not None else options[0]))
            self._select = None

    def handle_data(self, data: str) -> None:
        self.words += data

    def _field(self, tag: str, got: dict[str, str | None]) -> None:
        name = got.get("name")
        if tag == "form":
            self.forms.append(
                FormOnPage(got.get("action") or "", got.get("method") or "get", [], [])
            )
        elif tag == "input" and name is not None:
            hidden = got.get("type") == "hidden" or "hidden" in got
            self.named.append((name, got.get("id"), hidden or "label" in self.open))
            if got.get("type") not in ("checkbox", "radio") or "checked" in got:
                self.forms[-1].fields.append((name, got.get("value") or ""))
        elif tag == "select" and name is not None:
            self.named.append((name, got.get("id"), "label" in self.open))
            self._select = (name, [], None)
        elif tag == "option" and self._select is not None:
            place, options, chosen = self._select
            options.append(got.get("value") or "")
            self._select = (place, options, got.get("value") if "selected" in got else chosen)
        elif tag == "button" and self.forms:
            self.forms[-1].buttons.append(name or "")


def check_page(reply: httpx.Response) -> Document:
    """What holds for every page, whatever is on it."""
    assert reply.headers["content-type"] == "text/html; charset=utf-8"
    assert reply.headers["content-security-policy"] == POLICY
    assert {name: reply.headers.get(name) for name in HEADERS} == HEADERS
    assert len(reply.content) < MOST_BYTES, len(reply.content)
    found = Document(reply.text)
    assert found.problems == []
    assert len(found.ids) == len(set(found.ids)), sorted(found.ids)
    unlabelled = [
        name
        for name, element, is_named in found.named
        if not is_named and element not in found.labelled
    ]
    assert unlabelled == []
    assert found.headings.count(1) == 1, found.headings
    assert "<title>" in reply.text
    return found


class Browser:
    """One that is signed in, or not yet."""

    def __init__(self, gateway: Gateway) -> None:
        self.origin = f"http://127.0.0.1:{gateway.running.port}"
        self.client = httpx.AsyncClient(base_url=self.origin, timeout=20, verify=False)

    async def __aenter__(self) -> "Browser":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.client.aclose()

    async def sign_in(self, key: str | None, **fields: str) -> httpx.Response:
        return await self.post("/app/sign-in", {"key": key or "", "next": "/app/", **fields})

    async def get(self, path: str, **headers: str) -> httpx.Response:
        return await self.client.get(path, headers=headers)

    async def post(
        self, path: str, fields: Any, headers: dict[str, str] | None = None
    ) -> httpx.Response:
        return await self.client.post(
            path, data=fields, headers={"origin": self.origin} if headers is None else headers
        )

    async def page(self, path: str, status: int = 200) -> Document:
        """A page that is as every page must be."""
        reply = await self.get(path)
        assert reply.status_code == status, (
            f"{path}: {reply.status_code} {Document(reply.text).words}"
        )
        return check_page(reply)

    async def token(self) -> str:
        """What forms of this session carry."""
        found = re.search(r'name="csrf" value="([0-9a-f]+)"', (await self.get("/app/nowhere")).text)
        assert found is not None
        return found[1]

    async def press(self, path: str, action: str, /, **fields: str) -> httpx.Response:
        """Send the form that stands on a page for this action, with some fields filled in."""
        page = await self.page(path)
        form = next(each for each in page.forms if each.action == action)
        assert form.method == "post"
        return await self.post(action, {**form.values, **fields})
