"""Every page with every role, empty and full: as pages must be, with links that answer and buttons that are allowed."""

import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
import pytest_asyncio

from gwd.orgs.rights import allowed
from gwd.page import table
from tests.api.office import Office
from tests.page.browser import Browser, Document, check_page

pytestmark = pytest.mark.asyncio(loop_scope="module")

ROLES = ("member", "billing", "admin", "owner", "operator", "lead")
DOWNLOADS = ("csv", "json")
NASTY = "<b>\"\u202e'</title>\x7f"
FILLED: dict[int, dict[str, str]] = {}


async def filled(office: Office) -> dict[str, str]:
    """What the pages' parameters stand for; made once for the office of the module."""
    if id(office) in FILLED:
        return FILLED[id(office)]
    gateway = office.gateway
    for n, name in enumerate(("laptop", "nightly <job>", "web", "batch", "ci", "old", "more")):
        made = await office.ok("owner", "POST", "/keys", {"name": name, "limit": "5"})
        headers = {
            "authorization": f"Bearer {made['key']}",
            "x-title": f"App {n}",
            "http-referer": 'https://a.example/"><i>',
        }
        body = {
            "user": f"u-{n}<i>",
            "session_id": f"s-{n}&=",
            "model": f"demo/{'chat' if n % 2 else 'claude'}",
        }
        reply = await gateway.chat("hello", headers=headers, **body)
        assert reply.status_code == 200, reply.text
        record = await gateway.generation(reply)
    assert (await gateway.chat("hello", model="demo/nothing")).status_code == 404
    budgets = []
    for scope, scope_id, kind in (
        ("organization", None, "hard"),
        ("key", made["data"]["id"], "soft"),
    ):
        budget = {
            "scope": scope,
            "scope_id": scope_id,
            "interval": "monthly",
            "limit": "1",
            "kind": kind,
        }
        budgets.append((await office.ok("owner", "POST", "/budgets", budget))["data"]["id"])
    hook = {"type": "webhook", "name": NASTY[:3], "url": "http://127.0.0.1:9/hook"}
    destination = (await office.ok("owner", "POST", "/notifications/destinations", hook))["data"][
        "id"
    ]
    await office.ok("owner", "POST", f"/notifications/destinations/{destination}/test", {})
    own = await office.ok(
        "owner", "POST", "/byok", {"provider": "openai-chat", "key": "sk-own-0000"}
    )
    await office.ok("owner", "POST", "/organization/invitations", {"email": "open@acme.example"})
    FILLED[id(office)] = {
        "destination": destination,
        "model": "demo/chat",
        "user": office["billing"].user_id or "",
        "provider_key": own["data"]["id"],
        "key": made["data"]["id"],
        "generation": record["id"],
        "budget": budgets[0],
        "month": f"{datetime.now(UTC):%Y-%m}",
    }
    return FILLED[id(office)]


def path_of(page: table.Page, values: dict[str, str]) -> str:
    return "/app" + re.sub(r"<(\w+)(?::path)?>", lambda found: values[found[1]], page.path)


@pytest_asyncio.fixture(loop_scope="module", params=ROLES)
async def person(
    office: Office, request: pytest.FixtureRequest
) -> AsyncIterator[tuple[str, Browser]]:
    """A role, and a browser in which somebody who has it is signed in."""
    async with Browser(office.gateway) as made:
        await made.sign_in(office[request.param].key)
        yield request.param, made


def is_allowed(office: Office, name: str, page: table.Page | table.Act) -> bool:
    caller = office[name].caller
    assert caller is not None
    if page.right is None:
        return True
    reach = allowed(caller, page.right)
    is_whole = isinstance(page, table.Page) and page.is_whole
    return reach == "all" if is_whole else reach != "none"


async def test_pages_of_an_empty_office(office: Office, person: tuple[str, Browser]):
    name, browser = person
    for page in table.pages():
        if "<" in page.path or page.path.endswith(DOWNLOADS):
            continue
        await browser.page(path_of(page, {}), 200 if is_allowed(office, name, page) else 403)


async def test_pages_of_a_busy_office(office: Office, person: tuple[str, Browser]):
    name, browser = person
    values = await filled(office)
    links: set[str] = set()
    problems: list[tuple[str, int, str]] = []
    for page in table.pages():
        path = path_of(page, values)
        reply = await browser.get(path)
        wanted = 200 if is_allowed(office, name, page) else 403
        if page.right is not None and wanted == 200 and reply.status_code in (403, 404):
            # What reaches only as far as one's own keys or workspace may be somebody else's.
            caller = office[name].caller
            assert caller is not None
            assert allowed(caller, page.right) in ("own", "workspace") or caller.workspace_id, path
            check_page(reply)
            continue
        if reply.status_code != wanted:
            problems.append((path, reply.status_code, Document(reply.text).words[-400:]))
            continue
        if page.path.endswith(DOWNLOADS):
            continue
        found = check_page(reply)
        links |= {each.split("#")[0] for each in found.links if each.startswith("/")}
        problems += [(path, 200, wrong) for wrong in wrong_forms(office, name, found)]
    assert problems == []
    broken = []
    for link in sorted(links):
        status = (await browser.get(link)).status_code
        if status not in (200, 303):
            broken.append((link, status))
    assert broken == []


def wrong_forms(office: Office, name: str, page: Document) -> list[str]:
    """Forms that this role could not send, and those that lead nowhere."""
    wrong = []
    for form in page.forms:
        path = form.action.removeprefix("/app")
        if form.method == "get" or path in ("/theme", "/sign-out"):
            continue
        found = table.act_at(path)
        if found is None:
            wrong.append(f"{form.action} leads nowhere")
        elif not is_allowed(office, name, found[0]):
            wrong.append(f"{form.action} is not allowed")
        elif "csrf" not in form.values:
            wrong.append(f"{form.action} has no token")
    return wrong


async def test_what_is_not_drawn_is_refused(office: Office, person: tuple[str, Browser]):
    name, browser = person
    values = {**await filled(office), "session": "ses_x"}
    token = await browser.token()
    tried = 0
    for act in table.acts():
        if is_allowed(office, name, act):
            continue
        path = "/app" + re.sub(
            r"<(\w+)(?::path)?>", lambda found: values.get(found[1], "x"), act.path
        )
        reply = await browser.post(path, {"csrf": token})
        assert reply.status_code == 403, path
        check_page(reply)
        tried += 1
    assert tried or name != "billing"


async def test_pages_of_a_member_are_about_its_own_keys(office: Office):
    values = await filled(office)
    async with Browser(office.gateway) as browser:
        await browser.sign_in(office["member"].key)
        page = await browser.page("/app/keys")
        assert "Your keys" in page.words
        assert "nightly <job>" not in page.words
        await browser.page(f"/app/keys/{values['key']}", 404)
        await browser.page(f"/app/activity/{values['generation']}", 404)
        for path in ("/app/usage", "/app/activity"):
            assert "nightly <job>" not in (await browser.page(path)).words


async def test_every_page_that_is_asked_for_what_it_does_not_know_says_so(
    browser: Browser, office: Office
):
    await browser.sign_in(office["operator"].key)
    for page in table.pages():
        if "<" in page.path or page.path.endswith(DOWNLOADS):
            continue
        path = path_of(page, {})
        await browser.page(f"{path}?surprise=1", 400)
        await browser.page(f"{path}?did=a&did=b", 400)
        await browser.page(f"{path}?did={'x' * 300}", 400)
        assert "%22%3E" not in (await browser.page(f"{path}?did=%22%3E")).words


async def test_months_that_are_none_or_have_not_begun(owner: Browser):
    for month in ("2026-13", "2999-01", "x", "2026-1", "20261", "٢٠٢٦-01", "0000-01"):
        await owner.page(f"/app/?month={month}", 404)


async def test_times_that_are_none(owner: Browser):
    for query in ("from=x", "to=2026-02-30", "from=2026-03-01&to=2026-02-01", "from=2020-01-01&to=2026-01-01", "by=x",
                  "show=x", "last=x", "from=99999-01-01"):  # fmt: skip
        await owner.page(f"/app/usage?{query}", 400)
    for query in ("from=x", "status=odd", "after=gen-unknown", "last=-1"):
        reply = await owner.get(f"/app/activity?{query}")
        assert reply.status_code == 400
        check_page(reply)


async def test_a_report_that_takes_too_long_is_cut(owner: Browser, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("gwd.page.ask.REPORT_S", -1.0)
    monkeypatch.setattr("gwd.store.reports.STEPS", 1)
    reply = await owner.get("/app/usage")
    page = check_page(reply)
    assert reply.status_code == 400
    assert "narrow the time" in page.words
    assert "/app/usage?last=7" in page.links


async def test_quarantine_and_drain_are_said_on_every_page(owner: Browser, office: Office):
    status = office.gateway.running.node.status
    try:
        status.quarantine = "entry 3 <b>"
        assert "the books do not add up" in (await owner.page("/app/keys")).words
        status.quarantine, status.draining = None, True
        assert "is stopping" in (await owner.page("/app/")).words
    finally:
        status.quarantine, status.draining = None, False


async def test_a_page_may_refresh_itself(owner: Browser):
    assert (await owner.get("/app/?live=10")).headers["refresh"] == "10"
    assert "refresh" not in (await owner.get("/app/")).headers


async def test_files_hold_no_formula(owner: Browser, office: Office):
    await filled(office)
    made = await office.ok("owner", "POST", "/keys", {"name": "=cmd()"})
    headers = {"authorization": f"Bearer {made['key']}", "x-title": "+1"}
    assert (await office.gateway.chat("hello", headers=headers)).status_code == 200
    for path in ("/app/usage/csv?by=key", "/app/activity/csv", "/app/usage/csv?by=app"):
        reply = await owner.get(path)
        assert reply.status_code == 200
        assert reply.headers["content-disposition"].startswith("attachment; ")
        assert reply.headers["content-type"] == "text/csv; charset=utf-8"
        cells = [cell for line in reply.text.split("\r\n") for cell in line.split(",")]
        assert not [cell for cell in cells if cell.startswith(("=", "+", "@"))]
    assert "'=cmd()" in (await owner.get("/app/activity/csv")).text
