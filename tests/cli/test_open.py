"""`gwctl open`: an id leads to its page, and the address is printed where there is no browser."""

import webbrowser

import pytest

from gwctl.commands.page import place
from gwd.core import links
from tests.cli.conftest import Run
from tests.cli.gateway import Answer, FakeGateway

URL = "https://gw.example/app/open/t0k"


@pytest.fixture
def link(gateway: FakeGateway) -> FakeGateway:
    record = {"url": URL, "expires_at": "2026-11-29T12:00:00Z"}
    gateway.on("POST", "/sign-in-links", Answer({"data": record}, 201))
    return gateway


@pytest.mark.parametrize(("what", "path"), [
    (None, "/"), ("key_1", "/keys/key_1"), ("mk_1", "/keys/mk_1"), ("bud_1", "/budgets/bud_1"),
    ("gen-1", "/activity/gen-1"), ("dst_1", "/settings/notifications/dst_1"), ("dlv_1", "/settings/notifications"),
    ("evt_1", "/settings/notifications"), ("pk_1", "/settings/provider-keys/pk_1"), ("usr_1", "/settings/people/usr_1"),
    ("inv_1", "/settings/people"), ("2026-11", "/statements/2026-11"), ("openai/gpt-6", "/models/openai/gpt-6"),
])  # fmt: skip
def test_an_id_leads_to_its_page(run: Run, link: FakeGateway, what: str | None, path: str) -> None:
    result = run("open", *([what] if what else []), "--print")
    assert (result.code, result.out) == (0, f"{URL}\n")
    assert link.sent("POST", "/sign-in-links").body == {"path": path}


def test_places_are_where_alerts_lead() -> None:
    """The daemon and gwctl share no code; they say the same."""
    assert links.key("", "key_1") == place("key_1")
    assert links.budget("", "bud_1") == place("bud_1")
    assert links.model("", "a/b") == place("a/b")
    assert links.destination("", "dst_1") == place("dst_1")
    assert links.provider_key("", "pk_1") == place("pk_1")


def test_what_names_nothing_is_refused(run: Run, gateway: FakeGateway) -> None:
    for what in ("what", "2026-1", "../keys", "key"):
        result = run("open", what)
        assert result.code == 2
        assert "no place" in result.err
    assert gateway.writes() == []


def test_a_browser_is_opened_where_there_is_a_display(
    run: Run, link: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []

    def remember(url: str) -> bool:
        opened.append(url)
        return True

    monkeypatch.setattr(webbrowser, "open", remember)
    monkeypatch.setenv("DISPLAY", ":0")
    assert run("open").out == ""
    assert opened == [URL]
    monkeypatch.delenv("DISPLAY")
    assert run("open").out == f"{URL}\n"
    assert run("open", "--json").out.count(URL) == 1
    assert opened == [URL]
