"""The signature checked by a program that is not ours: openssl, over the bytes that arrived."""

import asyncio
import shutil
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gwd.alerts import samples
from tests.support.node import Gateway, open_gateway
from tests.support.receivers import Received, Receiver, open_receiver

PLACE = "/notifications/destinations"


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with open_receiver() as made:
        yield made


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Gateway]:
    environment = {
        "GWD_WEBHOOKS_ALLOW_NETWORKS": '["127.0.0.0/8"]',
        "GWD_WEBHOOKS_ALLOW_HTTP": "true",
    }
    async with open_gateway(tmp_path, environment=environment) as made:
        yield made


def by_openssl(secret: str, got: Received) -> str:
    """What a receiver computes with `openssl dgst`: over the timestamp, a dot, and the raw body."""
    openssl = shutil.which("openssl")
    assert openssl is not None, "openssl is missing; install it"
    signed = got.headers["x-gw-timestamp"].encode() + b"." + got.body
    done = subprocess.run(
        [openssl, "dgst", "-sha256", "-hmac", secret], input=signed, capture_output=True, check=True
    )
    return "v1=" + done.stdout.decode().split("= ")[1].strip()


async def test_openssl_finds_the_same_signature(gateway: Gateway, receiver: Receiver) -> None:
    """Of every type of alert, with letters beyond ASCII, and of a rotated secret beside the one before."""
    made = await gateway.manage(
        "POST", PLACE, {"type": "webhook", "name": "ops – Zürich ✓", "url": receiver.url()}
    )
    old, place = made["signing_secret"], f"{PLACE}/{made['data']['id']}"
    for type_ in (None, *samples.TYPES):
        await gateway.manage("POST", f"{place}/test", {"type": type_})
    assert len(receiver.received) == len(samples.TYPES) + 1
    assert "Zürich ✓".encode() in receiver.received[0].body
    for got in receiver.received:
        found = await asyncio.to_thread(by_openssl, old, got)
        assert got.headers["x-gw-signature"] == found, got.json["type"]
    new = (await gateway.manage("POST", f"{place}/rotate-secret", {"overlap_s": 60}))[
        "signing_secret"
    ]
    await gateway.manage("POST", f"{place}/test", {})
    last = receiver.received[-1]
    both = [await asyncio.to_thread(by_openssl, secret, last) for secret in (new, old)]
    assert last.headers["x-gw-signature"] == ",".join(both)
    # Teeth: another byte has another signature.
    last.body += b" "
    assert await asyncio.to_thread(by_openssl, new, last) != both[0]
