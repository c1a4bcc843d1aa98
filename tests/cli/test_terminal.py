"""On a real terminal: tables, hidden prompts, typed confirmation, no escapes from the server."""

import os
import pty
import select
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gwctl import time_input
from tests.cli.gateway import KEY, SECRET, Answer, FakeGateway, Received, events
from tests.support.warm import WarmProcess

Terminal = Callable[..., tuple[int, str]]


@pytest.fixture
def terminal(gateway: FakeGateway, home: Path) -> Terminal:
    """Run gwctl on a pty; `typed` is entered when the given text has appeared."""

    def call(*words: str, typed: tuple[tuple[str, str], ...] = (), **more: str) -> tuple[int, str]:
        environment = {
            **os.environ,
            "GWCTL_URL": gateway.url,
            "GWCTL_KEY": KEY,
            "COLUMNS": "120",
            "LINES": "50",
            "TERM": "xterm-256color",
            **more,
        }
        return on_terminal(list(words), environment, typed)

    return call


def on_terminal(
    words: list[str], environment: dict[str, str], typed: tuple[tuple[str, str], ...] = ()
) -> tuple[int, str]:
    """Exit code, and everything that gwctl wrote on a terminal of its own."""
    ours, theirs = pty.openpty()
    try:
        end = Path(os.ttyname(theirs))
        process = WarmProcess("gwctl", words, environment, stdin=end, out=end, err=end)
        try:
            seen = _talk(ours, process, list(typed))
        finally:
            code = process.end(20)
        return code, seen
    finally:
        os.close(theirs)
        os.close(ours)


def _talk(terminal: int, process: WarmProcess, typed: list[tuple[str, str]]) -> str:
    """Read until the program has ended, typing each answer after its question."""
    seen = b""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        is_over = process.poll() is not None  # asked before the last look
        ready, _, _ = select.select([terminal], [], [], 0 if is_over else 0.02)
        if ready:
            seen += os.read(terminal, 65536)
        elif is_over:
            return seen.decode()
        if typed and typed[0][0].encode() in seen:
            os.write(terminal, typed.pop(0)[1].encode() + b"\n")
    raise AssertionError(f"it did not end; it wrote {seen.decode()!r}")


CI = {
    "id": "key_01JD6vR29Zq1abcdefghij",
    "name": "ci",
    "usage": 12.083456,
    "limit": 50,
    "limit_remaining": 37.92,
    "limit_reset": "monthly",
    "rate_limit_per_minute": 120,
    "last_used_at": "2020-11-01T10:00:00Z",
}


def test_a_list_is_a_table_with_rounded_money(terminal: Terminal, gateway: FakeGateway) -> None:
    gateway.collection("/keys", CI)
    code, seen = terminal("key", "list", NO_COLOR="1")
    assert code == 0
    title, row = seen.splitlines()
    assert title.split() == ["NAME", "ID", "USED", "LIMIT", "LEFT", "RPM", "STATE", "LAST", "USED"]
    assert "$12.08   $50.00 monthly   76 %   120   enabled   2020-11-01" in row


def test_with_no_color_the_terminal_sees_no_escape_even_from_a_hostile_name(
    terminal: Terminal, gateway: FakeGateway
) -> None:
    gateway.collection("/keys", {**CI, "name": "x\x1b]0;pwned\x07\x1b[31m\u202e\x9b2Jy"})
    for words in (("key", "list"), ("key", "show", CI["id"]), ("key", "list", "--json")):
        _, seen = terminal(*map(str, words), NO_COLOR="1")
        assert "\x1b" not in seen
        assert "\x9b" not in seen
        assert "\u202e" not in seen


def test_states_are_coloured_unless_told_otherwise(
    terminal: Terminal, gateway: FakeGateway
) -> None:
    gateway.collection("/keys", {**CI, "disabled": True})
    assert "\x1b[31mdisabled" in terminal("key", "list")[1]
    assert "\x1b" not in terminal("key", "list", "--no-color")[1]
    assert "\x1b" not in terminal("key", "list", TERM="dumb")[1]


def test_only_ids_are_shortened_on_a_narrow_terminal(
    terminal: Terminal, gateway: FakeGateway
) -> None:
    gateway.collection("/keys", CI)
    _, seen = terminal("key", "list", NO_COLOR="1", COLUMNS="90")
    row = seen.splitlines()[1]
    assert "key_01JD" in row
    assert "…" in row
    assert "$50.00 monthly" in row


def test_more_records_than_shown_are_announced(terminal: Terminal, gateway: FakeGateway) -> None:
    gateway.collection("/keys", *({**CI, "id": f"key_{n}"} for n in range(40)))
    assert "30 of 40 shown; --all shows every one" in terminal("key", "list")[1]


def test_destroying_asks_for_the_name_and_names_the_profile(
    terminal: Terminal, gateway: FakeGateway
) -> None:
    gateway.collection("/keys", CI)
    code, seen = terminal("key", "delete", "ci", typed=(("confirm: ", "c1"),))
    assert code == 2
    assert "profile default" in seen
    assert gateway.writes() == []
    code, _ = terminal("key", "delete", "ci", typed=(("confirm: ", "ci"),))
    assert code == 0
    assert gateway.writes() == [("DELETE", f"/keys/{CI['id']}")]


def test_a_secret_is_asked_for_without_echo(
    terminal: Terminal, gateway: FakeGateway, home: Path
) -> None:
    gateway.on("GET", "/auth/key", {"data": {"id": "mk_1", "name": "ops"}})
    code, seen = terminal("login", typed=(("not shown", KEY),))
    assert code == 0
    assert KEY not in seen
    assert KEY in (home / "config" / "gwctl" / "config.toml").read_text()


def test_chat_keeps_an_agreed_key_for_its_hour(
    terminal: Terminal, gateway: FakeGateway, home: Path
) -> None:
    gateway.collection("/keys")
    choice = {"delta": {"content": "hello"}}
    chunk = {"choices": [choice], "usage": {"total_tokens": 1}}
    gateway.on("POST", "/chat/completions", events(chunk))
    code, seen = terminal("chat", "acme/fast", "hi", typed=(("[y/N] ", "y"),))
    assert code == 0
    assert "hello" in seen
    text = (home / "config" / "gwctl" / "config.toml").read_text()
    assert SECRET in text
    assert "inference_key_expires_at" in text
    code, seen = terminal("chat", "acme/fast", "again")
    assert code == 0
    assert "[y/N]" not in seen


def test_a_slow_answer_shows_a_spinner_and_takes_it_away(
    terminal: Terminal, gateway: FakeGateway
) -> None:
    def slow(_: Received) -> Answer:
        time.sleep(0.9)
        return Answer({"data": [], "total_count": 0})

    gateway.on("GET", "/keys", slow)
    _, seen = terminal("key", "list", NO_COLOR="1")
    assert "⠋ reading /keys" in seen
    assert seen.rstrip().endswith("no key found")
    gateway.collection("/budgets")
    assert "⠋" not in terminal("budget", "list", NO_COLOR="1")[1]


def test_many_pages_show_a_bar_of_known_length(terminal: Terminal, gateway: FakeGateway) -> None:
    keys = gateway.collection("/keys", *({**CI, "id": f"key_{n}"} for n in range(150)))

    def slow(request: Received) -> Answer:
        time.sleep(0.7)
        return keys.answer(request, "")

    gateway.on("GET", "/keys", slow)
    _, seen = terminal("key", "list", "--all", NO_COLOR="1")
    assert "reading /keys █████████████░░░░░░░ 100 of 150" in seen
    assert "GET /keys" not in seen


def test_a_long_table_goes_through_the_pager(terminal: Terminal, gateway: FakeGateway) -> None:
    gateway.collection("/keys", *({**CI, "id": f"key_{n}"} for n in range(30)))
    _, seen = terminal("key", "list", NO_COLOR="1", LINES="10", PAGER="sed s/^/PAGED:/")
    assert "PAGED:NAME" in seen
    assert "PAGED" not in terminal("key", "list", PAGER="sed s/^/PAGED:/")[1]


def test_no_pager_is_opened_where_nobody_can_leave_it(
    terminal: Terminal, gateway: FakeGateway
) -> None:
    gateway.collection("/keys", *({**CI, "id": f"key_{n}"} for n in range(30)))
    small = {"NO_COLOR": "1", "LINES": "10", "PAGER": "sed s/^/PAGED:/"}
    for more in ({"TERM": "dumb"}, {"CI": "true"}, {"PAGER": ""}, {"PAGER": "/no/such/program"}):
        _, seen = terminal("key", "list", **{**small, **more})
        assert "PAGED" not in seen
        assert seen.count("$12.08") == 30


def test_errors_are_three_lines_and_red_only_in_colour(
    terminal: Terminal, gateway: FakeGateway
) -> None:
    gateway.collection("/keys")
    assert "\x1b[31merror:" in terminal("key", "show", "key_9")[1]
    lines = terminal("key", "show", "key_9", NO_COLOR="1")[1].splitlines()
    assert [line[:6] for line in lines] == ["error:", "  why:", "  do: "]


def test_the_end_of_input_at_a_hidden_prompt_is_no_traceback(
    terminal: Terminal, gateway: FakeGateway, home: Path
) -> None:
    code, seen = terminal("login", typed=(("not shown", "\x04"),))
    assert code == 2
    assert "no key was given; nothing was done" in seen
    assert "Traceback" not in seen


def test_what_is_cut_shows_that_it_is(terminal: Terminal, gateway: FakeGateway) -> None:
    row = {"name": "a" * 30, "slug": "b" * 30, "id": "ws_" + "c" * 30, "description": "d" * 60}
    gateway.collection("/workspaces", {**row, "created_at": time_input.iso(time_input.utc_now())})
    for columns, cut in ((130, 1), (80, 2), (40, 0)):
        _, seen = terminal("workspace", "list", NO_COLOR="1", COLUMNS=str(columns))
        title, line, *note = seen.splitlines()
        assert max(len(title), len(line)) <= columns
        assert "b" * 30 in line  # the name one types next
        assert line.count("…") == cut
        assert (note == []) == ({"ID", "CREATED"} <= set(title.split()))
