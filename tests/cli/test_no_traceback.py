"""Whatever is typed, set, piped in or closed: one clear error with the right exit code, never a traceback."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gwctl.text import mask_keys
from tests.cli.conftest import ROOT, Run
from tests.cli.gateway import KEY, FakeGateway, error

Shell = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.parametrize(
    "words",
    [
        ("key", "create", "x", "--expires", "99999999d"),
        ("key", "create", "x", "--expires", "9" * 5000 + "d"),
        ("key", "create", "x", "--expires", "9999-12-31T23:59:59-14:00"),
        ("activity", "list", "--last", "99999999d"),
        ("key", "create", "x", "--idempotency-key", ""),
        ("key", "create", "x", "--idempotency-key", " "),
        ("key", "create", "x", "--idempotency-key", "schlüssel"),
        ("key", "create", "x", "--idempotency-key", "a\nb"),
        ("key", "create", "x", "--idempotency-key", "a" * 300),
        ("key", "create", "\udcff"),
        ("config", "set", "timeout", "abc"),
        ("config", "set", "timeout", "0"),
    ],
)
def test_what_cannot_be_meant_is_wrong_usage(
    run: Run, gateway: FakeGateway, home: Path, words: tuple[str, ...]
) -> None:
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert "  do:  " in err
    assert gateway.writes() == []
    assert not (home / "config").exists()


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:abc/api/v1",
        "http://127.0.0.1:99999/api/v1",
        "http://[::1",
        "http://",
        "http:///api/v1",
        "http://xn--/api/v1",
        "http://a..b/api/v1",
        "http://-\u00fc\ud800.example/api/v1",
        "http://gw .example/api/v1",
        "http://gw.example/api/v1?x=1",
        "gw.example.com",
    ],
)
def test_an_odd_address_is_wrong_usage(run: Run, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    for words in (("key", "list", "--url", url), ("config", "set", "url", url)):
        if "set" in words and "xn--" in url:
            continue  # only who resolves it can tell
        code, out, err = run(*words)
        assert (code in (2, 7), out) == (True, "")
        assert err.startswith("error: ")
    monkeypatch.setenv("GWCTL_URL", url.encode("utf-8", "surrogatepass").decode(errors="replace"))
    assert run("status").code in (2, 7)


def test_a_password_in_the_address_is_shown_nowhere(
    run: Run, gateway: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GWCTL_URL", "http://ada:s3cr3t@127.0.0.1:9/api/v1")
    for line in (
        "key list", "key list --debug", "status", "config list", "config get url",
        "config list --json", "version", "doctor --local", "doctor", "server check",
        "key delete x",
    ):  # fmt: skip
        _, out, err = run(*line.split())
        assert "s3cr3t" not in out + err, line
        shown = (out + err).replace("\\u2026", "…")
        assert "ada:…@127.0.0.1:9" in shown, line
    assert mask_keys("http://u:p@h/x and http://u:q@h") == "http://u:…@h/x and http://u:…@h"


def test_a_home_that_does_not_exist_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GWCTL_CONFIG", "~nosuchuser/x")
    code, _, err = run("key", "list")
    assert code == 2
    assert "GWCTL_CONFIG" in err


@pytest.mark.parametrize(
    "text",
    [
        "current = 5",
        "profile = 3",
        "[profile]\nprod = 3",
        '[profile.prod]\nurl = ["http://x"]',
        "[profile.prod]\ntimeout = true",
        "[profile.prod.key]\nx = 1",
    ],
)
def test_a_profile_file_of_the_wrong_shape_is_named(
    run: Run, gateway: FakeGateway, home: Path, text: str
) -> None:
    path = home / "config" / "gwctl" / "config.toml"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    path.chmod(0o600)
    for words in (("key", "list"), ("config", "set", "timeout", "5"), ("config", "use", "prod")):
        code, out, err = run(*words)
        assert (code, out) == (1, "")
        assert f"error: {path}: the value of" in err
    assert path.read_text() == text


def test_a_numeric_value_in_the_profile_is_taken(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = home / "config" / "gwctl" / "config.toml"
    path.parent.mkdir(parents=True)
    path.write_text("[profile.default]\ntimeout = 2.5")
    path.chmod(0o600)
    assert run("config", "get", "timeout").out == "2.5\n"


def test_output_that_cannot_be_written_is_an_error(shell: Shell, gateway: FakeGateway) -> None:
    gateway.collection("/keys", {"id": "key_1", "name": "ci"})
    for line in ("gwctl key list >/dev/full", "gwctl --help >/dev/full"):
        done = shell("sh", "-c", line)
        assert done.returncode == 1
        assert "No space left" in done.stderr
        assert "Traceback" not in done.stderr
    done = shell("sh", "-c", "gwctl key list 2>/dev/full --debug")
    assert (done.returncode, "key_1" in done.stdout) == (0, True)


def test_closed_streams_are_no_traceback(shell: Shell, gateway: FakeGateway) -> None:
    gateway.collection("/keys", {"id": "key_1", "name": "ci"})
    done = shell("sh", "-c", "gwctl key create x >&-")
    assert (done.returncode, "standard output is closed" in done.stderr) == (1, True)
    assert gateway.writes() == []
    assert shell("sh", "-c", "gwctl key list <&-").stdout.startswith("ci\t")
    assert shell("sh", "-c", "gwctl key list 2>&-").stdout.startswith("ci\t")
    done = shell("sh", "-c", "gwctl login --secret-stdin <&-")
    assert done.returncode == 2
    assert "is empty" in done.stderr
    assert shell("sh", "-c", "gwctl chat acme/fast <&-").returncode == 2


def test_bytes_that_are_no_text_are_refused(home: Path, gateway: FakeGateway) -> None:
    environment = {**os.environ, "GWCTL_URL": gateway.url, "GWCTL_KEY": KEY, "PYTHONUTF8": "1"}

    def call(*words: str | bytes, stdin: bytes = b"") -> Any:
        command = [sys.executable, "-m", "gwctl", *words]
        return subprocess.run(
            command, input=stdin, capture_output=True, env=environment, cwd=ROOT, check=False
        )

    for done in (
        call("key", "create", b"\xff"),
        call("login", "--secret-stdin", stdin=b"\xff\xfe"),
        call("apply", "-f", "-", stdin=b"\xff\xfe"),
        call("chat", "acme/fast", stdin=b"\xff\xfe"),
    ):
        assert done.returncode in (1, 2)
        assert done.stderr.startswith(b"error: ")
    assert gateway.writes() == []


def test_a_number_that_would_fill_the_memory_is_not_written_out(
    run: Run, gateway: FakeGateway
) -> None:
    gateway.collection("/keys", prefix="key_")
    assert run("key", "create", "x", "--limit", "1e999999999").code in (1, 2)


def test_numbers_that_json_lacks_are_texts(run: Run, gateway: FakeGateway) -> None:
    path = "/organization/settings"
    gateway.on("GET", path, {"data": {"retention_days": 90}})
    gateway.on("PATCH", path, error(400, "invalid_value", "retention_days must be a number."))
    assert run("org", "settings", "retention_days=NaN").code == 1
    assert gateway.sent("PATCH", path).body == {"retention_days": "NaN"}
