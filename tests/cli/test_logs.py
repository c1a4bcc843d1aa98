"""gwctl server logs: the journal of the machine, by time, level and id; a program stands in for the system's."""

import json
import os
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Run

TEXT = """\
Started gwd.service - model gateway.
2026-11-01 09:12:44,031 INFO gwd gwd serves http://127.0.0.1:8080/api/v1 (pid 7)
2026-11-01 09:12:45,100 WARNING gwd.health openai/gpt-5 rests for 4 s: overloaded
2026-11-01 09:12:46,200 ERROR gwd.pipeline.inference generation failed generation_id=gen-1 request_id=req_1
Traceback (most recent call last):
ValueError: \x1b[31mno
2026-11-01 09:12:47,300 INFO gwd reloaded
"""
JSON = """\
{"time":"2026-11-01T09:12:44.031Z","level":"info","logger":"gwd","event":"reloaded","message":"reloaded"}
{"time":"2026-11-01T09:12:45.031Z","level":"error","logger":"gwd.x","event":"%s","message":"no","request_id":"req_1"}
"""


@pytest.fixture
def journal(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program journalctl that prints `said` and writes down how it was called."""
    folder = home / "journal"
    folder.mkdir()
    program = folder / "journalctl"
    program.write_text(
        f"#!{sys.executable}\n"
        "import pathlib, sys\n"
        f"here = pathlib.Path({str(folder)!r})\n"
        "(here / 'words').write_text(' '.join(sys.argv[1:]))\n"
        "sys.stdout.write((here / 'said').read_text())\n"
        "sys.stderr.write((here / 'trouble').read_text())\n"
        "sys.exit(int((here / 'code').read_text()))\n"
    )
    program.chmod(0o755)
    for name, text in {"said": TEXT, "trouble": "", "code": "0"}.items():
        (folder / name).write_text(text)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return folder


def words(journal: Path) -> str:
    return (journal / "words").read_text()


def test_the_last_lines_are_shown_as_they_are_without_escapes(run: Run, journal: Path) -> None:
    code, out, err = run("server", "logs")
    assert (code, err) == (0, "")
    assert out == TEXT.replace("\x1b[31m", "")
    assert words(journal) == "--unit gwd --output cat --no-pager --quiet --lines 200"


def test_since_and_follow_are_the_journals(run: Run, journal: Path) -> None:
    run("server", "logs", "--since", "2026-11-01T09:00:00Z", "--follow", "--unit", "gwd@two")
    assert words(journal) == (
        "--unit gwd@two --output cat --no-pager --quiet --since @1793523600 --follow"
    )


def test_a_level_takes_what_is_worse_with_the_lines_that_belong_to_it(
    run: Run, journal: Path
) -> None:
    lines = run("server", "logs", "--level", "error").out.splitlines()
    assert lines == TEXT.replace("\x1b[31m", "").splitlines()[3:6]
    assert run("server", "logs", "--level", "warning").out.startswith("2026-11-01 09:12:45,100")


def test_an_id_finds_its_events(run: Run, journal: Path) -> None:
    assert len(run("server", "logs", "--id", "req_1").out.splitlines()) == 3
    code, out, err = run("server", "logs", "--id", "req_2")
    assert (code, out) == (0, "")
    assert "--since" in err


def test_json_is_one_object_an_event_whatever_the_daemon_writes(run: Run, journal: Path) -> None:
    found = [json.loads(line) for line in run("server", "logs", "--json").out.splitlines()]
    assert found[1] == {
        "time": "2026-11-01 09:12:44.031",
        "level": "info",
        "logger": "gwd",
        "message": "gwd serves http://127.0.0.1:8080/api/v1 (pid 7)",
    }
    (journal / "said").write_text(JSON)
    out = run("server", "logs", "--json", "--level", "error").out
    assert json.loads(out) == json.loads(JSON.splitlines()[1])
    assert run("server", "logs", "--level", "error").out == JSON.splitlines()[1] + "\n"


def test_without_a_journal_it_says_where_the_log_is(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    code, out, err = run("server", "logs")
    assert (code, out) == (1, "")
    assert "this machine has no journal" in err
    assert "standard error" in err


def test_a_journal_that_refuses_is_quoted(run: Run, journal: Path) -> None:
    (journal / "code").write_text("1")
    (journal / "trouble").write_text(
        "No journal files were opened due to insufficient permissions."
    )
    (journal / "said").write_text("")
    code, _, err = run("server", "logs")
    assert code == 1
    assert "insufficient permissions" in err
    assert "systemd-journal" in err


@pytest.mark.parametrize("wrong", [("--level", "loud"), ("--unit", "-x"), ("--since", "soon")])
def test_what_cannot_be_asked_is_refused(run: Run, journal: Path, wrong: tuple[str, str]) -> None:
    code, out, err = run("server", "logs", *wrong)
    assert (code, out) == (2, "")
    assert "  do:  " in err
    assert not (journal / "words").exists()
