"""examples/ci/provision-key.sh, run as a pipeline would run it."""

import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import ROOT
from tests.cli.gateway import SECRET, Answer, FakeGateway, Received, error

SCRIPT = ROOT / "examples" / "ci" / "provision-key.sh"
Provision = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def provision(shell: Any, home: Path) -> Provision:
    def call(**more: str) -> Any:
        return shell("sh", str(SCRIPT), "ci", "ci.key", PAUSE="0", **more)

    return call


def test_the_first_run_makes_the_key_and_the_second_changes_nothing(
    provision: Provision, gateway: FakeGateway, home: Path
) -> None:
    gateway.collection("/keys", prefix="key_")
    done = provision()
    assert (done.returncode, done.stdout) == (0, "")
    kept = home / "ci.key"
    assert kept.read_text() == SECRET + "\n"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert SECRET not in done.stderr
    assert gateway.sent("POST", "/keys").body["allowed_models"] == ["openai/*"]
    assert provision().returncode == 0
    assert len(gateway.collections["/keys"].rows) == 1


def test_a_changed_policy_is_brought_up_to_date(provision: Provision, gateway: FakeGateway) -> None:
    gateway.collection("/keys", prefix="key_")
    provision()
    assert provision(LIMIT="80").returncode == 0
    assert gateway.sent("PATCH", "/keys/key_1").body["limit"] == 80


def test_a_lost_secret_is_replaced_by_rotation(
    provision: Provision, gateway: FakeGateway, home: Path
) -> None:
    gateway.collection("/keys", {"id": "key_1", "name": "ci", "limit": 50})
    reply = {"key": "gwi_new", "data": {"id": "key_2", "name": "ci"}}
    gateway.on("POST", "/keys/key_1/rotate", Answer(reply, 201))
    assert provision().returncode == 0
    assert (home / "ci.key").read_text() == "gwi_new\n"


def test_a_refused_key_ends_with_4_at_once(
    provision: Provision, gateway: FakeGateway, home: Path
) -> None:
    gateway.on("POST", "/keys", error(401, "invalid_api_key", "Unknown key."))
    assert provision().returncode == 4
    assert len(gateway.requests) == 1
    assert not (home / "ci.key").exists()


def test_a_busy_gateway_is_asked_again(provision: Provision, gateway: FakeGateway) -> None:
    keys = gateway.collection("/keys", prefix="key_")
    refusals = [error(429, "rate_limit_exceeded", "Slow down.")] * 2

    def script(request: Received) -> Answer:
        return refusals.pop() if refusals else keys.answer(request, "")

    gateway.on("POST", "/keys", script)
    assert provision().returncode == 0
    assert keys.rows[0]["name"] == "ci"


def test_a_gateway_that_stays_away_is_7(provision: Provision) -> None:
    assert provision(GWCTL_URL="http://127.0.0.1:9/api/v1", ATTEMPTS="2").returncode == 7


def test_without_a_place_for_the_secret_no_key_is_made(
    shell: Any, gateway: FakeGateway, home: Path
) -> None:
    gateway.collection("/keys", prefix="key_")
    done = shell("sh", str(SCRIPT), "ci", "nowhere/ci.key", PAUSE="0")
    assert done.returncode == 1
    assert "nowhere/ci.key cannot be written; nothing was done" in done.stderr
    assert gateway.requests == []
