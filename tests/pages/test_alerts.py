"""docs/alerts.md and the example of a receiver, with a delivery of a real node.

As it came it is genuine to all of them; forged or stale it is to none.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tomllib
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from gwd.outbound.signature import signature
from gwd.settings.sections import SECTIONS
from tests.cases.caserunner.ports import free_port
from tests.cli.daemon import serving

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "alerts.md").read_text("utf-8")
EXAMPLE = ROOT / "examples" / "webhook_receiver.py"
ALLOWED = {"GWD_WEBHOOKS_ALLOW_NETWORKS": '["127.0.0.0/8"]', "GWD_WEBHOOKS_ALLOW_HTTP": "true"}
RECEIVER_S = 60


@dataclass(frozen=True)
class Delivery:
    """What came, and the secret that signed it."""

    secret: str
    headers: dict[str, str]
    body: bytes

    def aged(self, seconds: int) -> "Delivery":
        """The same, signed so long ago."""
        stamp = int(self.headers["x-gw-timestamp"]) - seconds
        signed = signature(self.secret, stamp, self.body)
        return self.with_headers(**{"x-gw-timestamp": str(stamp), "x-gw-signature": signed})

    def with_headers(self, **headers: str) -> "Delivery":
        return replace(self, headers={**self.headers, **headers})


@pytest.fixture(scope="module")
def delivery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Delivery]:
    """A delivery of a node, kept as it came."""
    got: list[tuple[dict[str, str], bytes]] = []

    class Keeper(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            got.append(({name.lower(): value for name, value in self.headers.items()}, body))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Quiet."""

    with (
        HTTPServer(("127.0.0.1", 0), Keeper) as keeper,
        serving(tmp_path_factory.mktemp("node"), **ALLOWED) as daemon,
    ):
        Thread(target=keeper.serve_forever, args=(0.02,), daemon=True).start()
        target = f"http://127.0.0.1:{keeper.server_port}/hook"
        secret = daemon("webhook", "add", target, "--name", "here", "-q").strip()
        daemon("webhook", "trigger", "here", "model.retired")
        [(headers, body)] = got
        yield Delivery(secret, headers, body)
        keeper.shutdown()


def cases(genuine: Delivery) -> dict[str, tuple[Delivery, bool]]:
    """Deliveries, and whether each is to be taken."""
    known = genuine.headers["x-gw-signature"]
    other = signature("whsec_other", int(genuine.headers["x-gw-timestamp"]), genuine.body)
    return {
        "as it came": (genuine, True),
        "two signatures": (genuine.with_headers(**{"x-gw-signature": f"{other},{known}"}), True),
        "spaced": (genuine.with_headers(**{"x-gw-signature": f"{known} , {other}"}), True),
        "not yet stale": (genuine.aged(240), True),
        "stale": (genuine.aged(400), False),
        "from the future": (genuine.aged(-400), False),
        "forged body": (replace(genuine, body=genuine.body.replace(b"retired", b"renewed")), False),
        "forged signature": (genuine.with_headers(**{"x-gw-signature": other}), False),
        "another secret": (replace(genuine, secret="whsec_other"), False),
        "cut off": (genuine.with_headers(**{"x-gw-signature": known[:-1]}), False),
        "no signature": (genuine.with_headers(**{"x-gw-signature": ""}), False),
        "no timestamp": (genuine.with_headers(**{"x-gw-timestamp": ""}), False),
        "odd timestamp": (genuine.with_headers(**{"x-gw-timestamp": "1e9"}), False),
    }


def block(kind: str, holding: str) -> str:
    """The page's block of that language with these words."""
    blocks: list[str] = re.findall(rf"^```{kind}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    [found] = [one for one in blocks if holding in one]
    return found


@pytest.mark.parametrize(
    ("program", "kind", "ending"),
    [
        (
            [sys.executable, "-c"],
            "python",
            "import json, sys\nfor case in json.load(sys.stdin):\n"
            "    print(is_genuine(case['secret'], case['headers'], case['body'].encode()))",
        ),
        (
            ["node", "-e"],
            "js",
            "for (const c of JSON.parse(require('fs').readFileSync(0, 'utf8')))"
            " console.log(isGenuine(c.secret, c.headers, Buffer.from(c.body)) ? 'True' : 'False');",
        ),
    ],
)
def test_the_check_of_the_page_takes_what_is_genuine_and_nothing_else(
    delivery: Delivery, program: list[str], kind: str, ending: str
) -> None:
    wanted = cases(delivery)
    asked = [
        {"secret": one.secret, "headers": one.headers, "body": one.body.decode()}
        for one, _ in wanted.values()
    ]
    done = subprocess.run(
        [*program, block(kind, "enuine(secret, headers, body)") + ending],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answers = dict(zip(wanted, done.stdout.split(), strict=True))
    assert answers == {name: str(is_good) for name, (_, is_good) in wanted.items()}


def test_the_line_of_shell_computes_the_signature(delivery: Delivery, tmp_path: Path) -> None:
    (tmp_path / "body.json").write_bytes(delivery.body)
    done = subprocess.run(
        ["sh", "-c", block("sh", "openssl")],
        env={
            "PATH": os.environ["PATH"],
            "TIMESTAMP": delivery.headers["x-gw-timestamp"],
            "SECRET": delivery.secret,
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.strip() == delivery.headers["x-gw-signature"]


def test_the_table_names_the_headers_that_come(delivery: Delivery) -> None:
    named = {name.lower() for name in re.findall(r"^\| `(X-GW-[\w-]+)`", PAGE, re.MULTILINE)}
    assert named == {name for name in delivery.headers if name.startswith("x-gw-")}


def test_the_settings_of_the_page_are_settings() -> None:
    for table, holding in (("smtp", "password_ref"), ("webhooks", "allow_networks")):
        read = tomllib.loads(block("toml", holding))
        known = set(SECTIONS[table].__struct_encode_fields__)
        assert set(read) == {table}
        assert set(read[table]) <= known


def test_the_example_takes_each_event_once_and_refuses_what_is_not_genuine(
    delivery: Delivery,
) -> None:
    port = free_port()
    receiver = subprocess.Popen(
        [sys.executable, str(EXAMPLE), str(port)],
        env={"PATH": os.environ["PATH"], "WEBHOOK_SECRET": f"whsec_old,{delivery.secret}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert receiver.stderr is not None
        assert receiver.stderr.readline().startswith("listening on ")
        statuses = {
            name: post(port, one)
            for name, (one, _) in cases(delivery).items()
            if name != "another secret"
        }
    finally:
        receiver.send_signal(signal.SIGTERM)
        out, _ = receiver.communicate(timeout=RECEIVER_S)
    assert statuses == {
        name: 204 if is_good else 401
        for name, (_, is_good) in cases(delivery).items()
        if name != "another secret"
    }
    title = json.loads(delivery.body)["title"]
    assert out == f"critical   model.retired   {title}\n"


def test_the_example_says_what_it_needs() -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLE)], env={}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "WEBHOOK_SECRET is missing" in done.stderr


def post(port: int, one: Delivery) -> int:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/", one.body, one.headers, method="POST"
    )
    try:
        with urllib.request.urlopen(request, timeout=RECEIVER_S) as reply:
            return int(reply.status)
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code
