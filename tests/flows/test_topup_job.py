"""A top-up from end to end: a real store, a real receiver, a signature that the receiver can check."""

from collections.abc import AsyncIterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gwd import ledger, topup
from gwd.core.clock import US_PER_S, iso
from gwd.credentials.keyring import KeyRing
from gwd.credentials.vault import Vault
from gwd.jobs.topup import TopUpJob
from gwd.management import topup as use_case
from gwd.orgs import organizations
from gwd.outbound import OutboundClient
from gwd.outbound.signature import signature
from gwd.store import Connection, Store
from tests.support.listener import LOOPBACK, Listener, answers, listener
from tests.support.money import ORGANIZATION, open_organization
from tests.support.store import NOW_US, open_store

__all__ = ["listener"]

VAULT = Vault(KeyRing(active="k1", keks={"k1": b"k" * 32}, pepper=b"p" * 32))


class StandingClock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.us = NOW_US

    def now_us(self) -> int:
        return self.us

    def monotonic_s(self) -> float:
        return self.us / US_PER_S


class Scene:
    """One organization with top-up switched on and nothing left, its hook being the listener."""

    def __init__(self, store: Store, listener: Listener) -> None:
        self.store = store
        self.listener = listener
        self.clock = StandingClock()
        self.secret = ""
        client = OutboundClient(LOOPBACK, user_agent="gwd/test", resolver=answers("127.0.0.1"))
        self.job = TopUpJob(store, client, VAULT, self.clock, app_url="http://app.example")

    async def prepare(self) -> None:
        changes = topup.PatchTopUp(
            enabled=True,
            threshold=Decimal(5),
            amount=Decimal("20.5"),
            hook_url=f"http://pay.example:{self.listener.port}/hook",
        )
        self.secret = await self.store.write(_switch_on, changes)

    async def balance(self) -> int:
        found = await self.store.read(ledger.balance, ORGANIZATION, now_us=self.clock.us)
        return found.owned_nano

    async def raised_alerts(self) -> list[dict[str, object]]:
        """The data of every alert about a failed top-up, oldest first."""
        return await self.store.read(_raised_alerts)


def _raised_alerts(connection: Connection) -> list[dict[str, object]]:
    rows = connection.rows(
        "SELECT data FROM alert WHERE type = 'alert.auto_topup_failed' ORDER BY created_at"
    )
    return [msgspec.json.decode(row[0]) for row in rows]


def _switch_on(connection: Connection, changes: topup.PatchTopUp) -> str:
    open_organization(connection, now_us=NOW_US)
    patched = use_case.patch(
        connection, VAULT, ORGANIZATION, changes, rules=LOOPBACK, now_us=NOW_US
    )
    assert patched.signing_secret is not None
    return patched.signing_secret


@pytest.fixture
async def scene(tmp_path: Path, listener: Listener) -> AsyncIterator[Scene]:
    async with open_store(tmp_path) as store:
        made = Scene(store, listener)
        await made.prepare()
        yield made


async def test_low_credit_is_bought_once_by_a_signed_call(scene: Scene) -> None:
    await scene.job.run()
    await scene.job.run()
    assert await scene.balance() == 20_500_000_000
    [request] = scene.listener.requests
    head, _, body = request.partition(b"\r\n\r\n")
    sent = dict(line.split(": ", 1) for line in head.decode().lower().split("\r\n")[1:])
    called = msgspec.json.decode(body)
    assert called == {
        "id": called["id"],
        "type": "topup.requested",
        "organization_id": ORGANIZATION,
        "amount": 20.5,
        "currency": "USD",
        "attempt": 1,
        "created_at": "2026-09-21T14:13:20Z",
    }
    assert sent["idempotency-key"] == called["id"].lower()
    assert sent["x-gw-event"] == "topup.requested"
    timestamp_s = int(sent["x-gw-timestamp"])
    assert timestamp_s == NOW_US // US_PER_S
    assert sent["x-gw-signature"] == signature(scene.secret, timestamp_s, body)
    assert (await scene.store.read(ledger.verify)).differences == ()


async def test_trouble_is_tried_again_with_the_same_key_and_a_new_signature(scene: Scene) -> None:
    scene.listener.answer = b"HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n"
    await scene.job.run()
    [failed] = await scene.raised_alerts()
    assert (failed["attempt"], failed["reason"]) == (1, "the hook answered 503")
    assert failed["next_attempt_at"] == iso(NOW_US + 60 * US_PER_S)
    await scene.job.run()
    assert len(scene.listener.requests) == 1
    scene.clock.us += 60 * US_PER_S
    scene.listener.answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"
    await scene.job.run()
    assert await scene.balance() == 20_500_000_000
    first, second = (request.decode().lower() for request in scene.listener.requests)

    def header(text: str, name: str) -> str:
        return text.partition(f"{name}: ")[2].partition("\r\n")[0]

    assert header(first, "idempotency-key") == header(second, "idempotency-key")
    assert header(first, "x-gw-signature") != header(second, "x-gw-signature")


async def test_a_clear_no_is_not_asked_again(scene: Scene) -> None:
    scene.listener.answer = b"HTTP/1.1 402 Declined\r\ncontent-length: 0\r\n\r\n"
    await scene.job.run()
    [failed] = await scene.raised_alerts()
    assert (failed["reason"], failed["next_attempt_at"]) == ("the hook answered 402", None)
    scene.clock.us += 3_000 * US_PER_S
    await scene.job.run()
    assert len(scene.listener.requests) == 1
    assert await scene.balance() == 0
    assert failed["amount"] == 20.5


# An organization that is deleted


def _delete(connection: Connection) -> None:
    organizations.delete(connection, ORGANIZATION, now_us=NOW_US)


def _attempts(connection: Connection) -> list[tuple[str, str | None]]:
    return [tuple(row) for row in connection.rows("SELECT state, error FROM topup_attempt")]


def _noted(connection: Connection) -> list[dict[str, object]]:
    rows = connection.rows("SELECT details FROM audit WHERE action = 'credit.topup_after_deletion'")
    return [msgspec.json.decode(row[0]) for row in rows]


async def test_a_deleted_organization_is_not_asked_for_money(scene: Scene) -> None:
    await scene.store.write(_delete)
    for _ in range(2):
        await scene.job.run()
        scene.clock.us += 3_000 * US_PER_S
    assert scene.listener.requests == []
    assert await scene.store.read(_attempts) == [("failed", "the organization was deleted")]
    assert await scene.raised_alerts() == []


async def test_a_payment_taken_while_its_organization_was_deleted_is_in_the_books(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody paid: the ledger has it, and the audit tells the operator whom to pay back."""
    real = scene.job._client.post

    async def post(*args: Any, **kwargs: Any) -> Any:
        await scene.store.write(_delete)
        return await real(*args, **kwargs)

    monkeypatch.setattr(scene.job._client, "post", post)
    for _ in range(2):
        await scene.job.run()
        scene.clock.us += 3_000 * US_PER_S
    assert len(scene.listener.requests) == 1
    assert await scene.store.read(_attempts) == [("succeeded", None)]
    assert await scene.balance() == 20_500_000_000
    [noted] = await scene.store.read(_noted)
    assert noted["amount_nano"] == 20_500_000_000
    assert (await scene.store.read(ledger.verify)).ok


async def test_a_failure_at_a_deleted_organization_is_told_to_nobody_and_not_tried_again(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.listener.answer = b"HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n"
    await scene.job.run()
    await scene.store.write(_delete)
    for _ in range(3):
        scene.clock.us += 3_000 * US_PER_S
        await scene.job.run()
    assert len(scene.listener.requests) == 1
    assert len(await scene.raised_alerts()) == 1
    assert await scene.store.read(_attempts) == [("failed", "the organization was deleted")]


async def test_an_attempt_that_breaks_keeps_no_other_back_and_comes_again(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    await scene.store.write(_second)
    real, asked = scene.job._try, list[str]()

    async def try_(attempt: topup.ClaimedAttempt) -> None:
        asked.append(attempt.organization_id)
        if len(asked) == 1:
            raise RuntimeError("broken")
        await real(attempt)

    monkeypatch.setattr(scene.job, "_try", try_)
    await scene.job.run()
    assert sorted(asked) == sorted([ORGANIZATION, "org_second"])
    scene.clock.us += 200 * US_PER_S
    await scene.job.run()
    assert asked.count(asked[0]) == 2
    assert (await scene.store.read(ledger.verify)).ok


def _second(connection: Connection) -> None:
    open_organization(connection, now_us=NOW_US, organization_id="org_second")
    changes = topup.PatchTopUp(
        enabled=True, threshold=Decimal(5), amount=Decimal(1), hook_url="http://pay.example:1/hook"
    )
    use_case.patch(connection, VAULT, "org_second", changes, rules=LOOPBACK, now_us=NOW_US)
