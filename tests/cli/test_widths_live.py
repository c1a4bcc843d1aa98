"""The main lists of a real daemon on terminals of 40, 80 and 200 columns: money and names are whole everywhere."""

from collections.abc import Iterator

import pytest

from gwctl.layout import cells
from tests.cli.daemon import Daemon, serving
from tests.cli.test_terminal import on_terminal

LONG = "a-name-of-thirty-characters-xx"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with serving(tmp_path_factory.mktemp("node")) as served:
        served("credit", "grant", "1,234.567891", "--note", "名前 " * 10)
        served("key", "create", LONG, "--limit", "12.345678", "--reset", "monthly", "-q")
        served("key", "create", "名前", "--limit", "0", "-q")
        served("workspace", "create", "web", "--description", "d" * 90)
        served("budget", "set", f"key:{LONG}", "--monthly", "250")
        served(
            "model",
            "add",
            "acme/fast",
            "--context",
            "32,000",
            "--prompt",
            "0.0375",
            "--completion",
            "12.3456",
        )
        served(
            "provider",
            "add",
            "acme",
            "--adapter",
            "gemini",
            "--base-url",
            "https://x.example",
            "--key-ref",
            "env:K",
        )
        served("endpoint", "add", "acme/fast", "--provider", "acme")
        yield served


def lines_on_terminal(daemon: Daemon, columns: int, *words: str) -> list[str]:
    terminal = {"COLUMNS": str(columns), "LINES": "60", "TERM": "xterm", "PAGER": "false"}
    code, seen = on_terminal(list(words), {**daemon.environment, **terminal})
    assert code == 0, seen
    seen = seen.rpartition("\r\x1b[K")[2] if "\x1b[K" in seen else seen
    return [line.rpartition("\r")[2] for line in seen.replace("\r\n", "\n").splitlines()]


# command: what has to be whole at 80 columns and more; what has to be whole at any width
WANTED: dict[tuple[str, ...], tuple[list[str], list[str]]] = {
    ("key", "list"): (["$12.35 monthly", "$0.00", "at limit"], [LONG, "名前"]),
    ("ledger", "list"): (["$1,234.57", "$1,334.57"], []),
    ("budget", "list"): (["$250.00", "in "], [f"key:{LONG}"]),
    ("budget", "forecast"): (["$250.00"], [f"key:{LONG}"]),
    ("model", "list"): (["$0.0375", "$12.3456"], ["acme/fast"]),
    ("provider", "list"): (["enabled"], ["acme"]),
    ("endpoint", "list"): (["ep_"], ["ep_"]),
    ("audit", "list"): ([], []),
}


def test_the_lists_are_true_on_every_terminal(daemon: Daemon) -> None:
    wrong = []
    for words, (at_80, always) in WANTED.items():
        for columns in (40, 80, 200):
            lines = lines_on_terminal(daemon, columns, *words)
            text = "\n".join(lines)
            wanted = always if columns < 80 else [*at_80, *always]
            wrong += [(words, columns, value, text) for value in wanted if value not in text]
            if max(map(cells, lines)) > columns and columns > 40:
                wrong.append((words, columns, "too wide", text))
    assert wrong == []
