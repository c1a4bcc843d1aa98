"""gwctl webhook listen: genuine and fresh deliveries are printed and passed on, all others refused."""

import hashlib
import hmac
import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from gwctl.commands.listen import verdict
from tests.cases.caserunner.ports import free_port
from tests.cli.daemon import serving
from tests.support.warm import WarmProcess

SECRET = "whsec_1"
BODY = b'{"type": "alert.test", "severity": "info", "title": "Hello"}'
PRINTED = "info   alert.test   Hello\n"


@dataclass
class Listening:
    """A running `gwctl webhook listen`."""

    address: str
    process: WarmProcess
    out: Path

    def ended(self) -> tuple[str, str]:
        """What it printed, once it stopped by itself."""
        assert self.process.wait(20) == 0
        return self.out.read_text(), self.process.err.read_text()


Listen = Callable[..., Listening]


@contextmanager
def listening(folder: Path, *words: str, secret: str = SECRET) -> Iterator[Listening]:
    """The receiver of a test; it ends with it."""
    file, out, err = folder / "secret", folder / "listen.out", folder / "listen.err"
    file.write_text(secret)
    kept = {n: v for n, v in os.environ.items() if not n.startswith("GWCTL_")}
    process = WarmProcess(
        "gwctl",
        ["webhook", "listen", "--secret-file", str(file), *words],
        {**kept, "XDG_CONFIG_HOME": str(folder)},
        out=out,
        err=err,
    )
    try:
        yield Listening(address_in(err, process), process, out)
    finally:
        process.end()


def address_in(err: Path, process: WarmProcess) -> str:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        said = err.read_text() if err.exists() else ""
        if said.endswith("\n"):
            return said.split()[-1]
        time.sleep(0.02)
    raise AssertionError("it does not listen")


def signed(body: bytes, *secrets: str, age_s: int = 0) -> dict[str, str]:
    """The headers of a delivery that is so old."""
    stamp = str(int(time.time()) - age_s)
    said = [
        "v1=" + hmac.new(s.encode(), f"{stamp}.".encode() + body, hashlib.sha256).hexdigest()
        for s in secrets
    ]
    return {"X-GW-Timestamp": stamp, "X-GW-Signature": ",".join(said)}


def post(address: str, body: bytes, headers: dict[str, str]) -> int:
    request = urllib.request.Request(address, body, headers, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=30) as reply:
            return int(reply.status)
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code


def test_genuine_deliveries_are_printed_and_others_refused(tmp_path: Path) -> None:
    with listening(tmp_path, "--port", "0", "--count", "2") as heard:
        statuses = [
            post(heard.address, BODY, signed(BODY, "whsec_2")),
            post(heard.address, BODY + b" ", signed(BODY, SECRET)),
            post(heard.address, BODY, signed(BODY, SECRET, age_s=301)),
            post(heard.address, BODY, signed(BODY, SECRET, age_s=-301)),
            post(heard.address, BODY, {}),
            post(heard.address, BODY, signed(BODY, SECRET)),
        ]
        assert heard.out.read_text() == PRINTED  # at once, also into a pipe
        statuses.append(post(heard.address, BODY, signed(BODY, "whsec_2", SECRET)))
        out, err = heard.ended()
    assert statuses == [400, 400, 400, 400, 400, 204, 204]
    assert out == PRINTED * 2
    assert err.count("refused: wrong signature") == 2
    assert err.count("refused: the timestamp is missing or older than five minutes") == 3


def test_genuine_events_are_passed_on_and_answered_through(tmp_path: Path) -> None:
    got: list[tuple[bytes, str]] = []
    answers = [200, 503]

    class App(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            got.append((body, self.headers["x-gw-signature"]))
            self.send_response(answers[len(got) - 1])
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Quiet."""

    with HTTPServer(("127.0.0.1", 0), App) as app:
        thread = Thread(target=app.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        onwards = f"http://127.0.0.1:{app.server_port}/hook"
        with listening(
            tmp_path, "--port", "0", "--json", "--count", "3", "--forward", onwards
        ) as heard:
            headers = signed(BODY, SECRET)
            statuses = [
                post(heard.address, BODY, signed(BODY, "whsec_2")),
                post(heard.address, BODY, headers),
                post(heard.address, BODY, headers),
            ]
            app.shutdown()
            app.server_close()
            thread.join()
            statuses.append(post(heard.address, BODY, headers))
            out, err = heard.ended()
    assert statuses == [400, 200, 503, 502]
    assert got == [(BODY, headers["X-GW-Signature"])] * 2
    assert json.loads(f"[{out.replace('}' + chr(10) + '{', '},{')}]") == [json.loads(BODY)] * 3
    assert f"{onwards} answered 503" in err
    assert f"{onwards} did not answer" in err


def test_an_old_delivery_is_refused() -> None:
    good = "v1=" + hmac.new(b"s", b"100.{}", hashlib.sha256).hexdigest()
    assert verdict("s", "100", b"{}", good, 150) == ""
    assert verdict("s", "100", b"{}", f"v1=0, {good}", 400) == ""
    assert "five minutes" in verdict("s", "100", b"{}", good, 401)
    assert verdict("s", "100", b"{ }", good, 150) == "wrong signature"


@pytest.mark.slow
def test_what_a_daemon_sends_is_heard(tmp_path: Path) -> None:
    """`webhook add`, `webhook listen`, `webhook trigger`: the event is printed."""
    port = free_port()
    allowed = {
        "GWD_WEBHOOKS_ALLOW_NETWORKS": '["127.0.0.0/8"]',
        "GWD_WEBHOOKS_ALLOW_HTTP": "true",
    }
    with serving(tmp_path, **allowed) as daemon:
        target = f"http://127.0.0.1:{port}/"
        secret = daemon("webhook", "add", target, "--name", "here", "-q").strip()
        daemon("webhook", "trigger", "here", "model.retired", code=1)  # nobody listens yet
        with listening(tmp_path, "--port", str(port), "--count", "3", secret=secret) as heard:
            out = daemon("webhook", "trigger", "here", "model.retired")
            assert "model.retired to here: delivered, answered 204" in out
            daemon("webhook", "rotate-secret", "here", "--overlap", "1h")
            daemon("webhook", "test", "here")  # the one before still signs
            [failed] = daemon.json("webhook", "deliveries", "here", "--status", "failed")
            daemon("webhook", "redeliver", failed["id"])
            printed, err = heard.ended()
        lines = printed.splitlines()
        assert lines[0].startswith("critical   model.retired   [test] ")
        assert lines[1].startswith("info   alert.test   A test of here")
        assert lines[2].startswith("critical   model.retired   [test] ")
        assert "refused" not in err
        assert secret not in printed + err
        daemon("webhook", "rotate-secret", "here")
        with listening(tmp_path, "--port", str(port), secret=secret):
            daemon("webhook", "test", "here", code=1)  # it ended at once
