"""Rotation of the ring's keys: everything is sealed anew while the node serves; old keys go when nothing needs them."""

import asyncio
from typing import Any

from gwd.credentials import keyring
from tests.support.node import Gateway


async def _rotated(gateway: Gateway) -> Any:
    await gateway.manage("POST", "/operator/secrets/rotate", {})
    for _ in range(500):
        found = (await gateway.manage("GET", "/operator/secrets"))["data"]
        if found["current_since"] is not None:
            return found
        await asyncio.sleep(0.02)
    raise AssertionError("the rotation does not end")


async def test_a_rotation_seals_everything_anew_and_nobody_notices(gateway: Gateway) -> None:
    path = gateway.running.settings.keyring
    before = keyring.read(path)
    found = await _rotated(gateway)
    after = keyring.read(path)
    assert after.pepper == before.pepper
    assert after.active != before.active
    assert before.keks.items() < after.keks.items()
    assert (found["state"], found["left"], found["active"]) == ("current", 0, after.active)
    assert found["secrets"] > 0
    assert (await gateway.manage("GET", "/operator/secrets/verify"))["data"]["ok"]
    assert (await gateway.chat()).status_code == 200


async def test_an_old_key_goes_only_by_force_and_when_nothing_needs_it(gateway: Gateway) -> None:
    path = gateway.running.settings.keyring
    await _rotated(gateway)
    refused = await gateway.operator.post("/operator/secrets/prune", json={})
    assert refused.status_code == 409
    assert "keep a copy of the key ring" in refused.json()["error"]["message"]
    assert len(keyring.read(path).keks) == 2
    await gateway.manage("POST", "/operator/secrets/prune", {"force": True})
    assert len(keyring.read(path).keks) == 1
    assert (await gateway.chat()).status_code == 200
