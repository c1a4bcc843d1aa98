"""An organization that is deleted while its answer runs: the charge is made, nobody is told, the node goes on."""

from typing import Any

import pytest

from gwd.alerts import threshold_alerts
from gwd.demo import Behaviour
from tests.flows.started import Started, reading, second_organization, started, stop, vendor
from tests.support.node import Gateway

__all__ = ["started", "vendor"]


async def asked_and_deleted(gateway: Gateway, organization_id: str, key: str) -> str:
    """The text of a stream whose organization was deleted in its middle."""
    gateway.vendor.script.next(Behaviour(event_delay_s=0.03, tokens=25))
    headers = {"authorization": f"Bearer {key}"}
    asking = await reading(gateway, stream=True, headers=headers)
    await gateway.manage("DELETE", f"/organizations/{organization_id}")
    return (await asking).text


async def test_the_stream_is_charged_and_the_node_starts_again(started: Started) -> None:
    running, gateway = await started.start()
    organization_id, key = await second_organization(gateway)
    text = await asked_and_deleted(gateway, organization_id, key)
    assert text.endswith("data: [DONE]\n\n")
    await gateway.verify()
    [row] = await gateway.store.read(_charges, organization_id)
    assert row[0] > 0
    assert await gateway.store.read(_alerts, organization_id) == []
    assert running.node.status.quarantine is None
    refused = await gateway.chat(headers={"authorization": f"Bearer {key}"})
    assert refused.status_code == 401
    await stop(running, gateway)
    running, gateway = await started.start()
    assert (await gateway.chat()).status_code == 200
    await gateway.verify()
    await stop(running, gateway)


@pytest.mark.parametrize("stream", [False, True])
async def test_an_alert_that_cannot_be_raised_is_left_out_and_the_charge_stands(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, stream: bool
) -> None:
    """Neither judging a cause nor telling it loses the settlement; causes after it are told."""
    await gateway.manage(
        "POST",
        "/budgets",
        {"scope": "organization", "interval": "monthly", "kind": "soft", "limit": 0.0000001},
    )
    await gateway.manage("PATCH", "/organization/settings", {"low_balance_threshold": 50})

    def fails(connection: Any, *_: Any, **__: Any) -> None:
        connection.execute("UPDATE account SET pool_nano = pool_nano + 1")
        raise RuntimeError("no words")

    monkeypatch.setattr(threshold_alerts, "raise_budget", fails)
    monkeypatch.setattr("gwd.alerts.threshold_alerts.keys.standing", _cannot)
    reply = await gateway.chat(stream=stream)
    assert reply.status_code == 200
    record = await gateway.generation(reply)
    assert (record["status"], record["error"]) == ("succeeded", None)
    assert float(record["total_cost"]) > 0
    assert gateway.store.tolerated == 2
    assert await gateway.store.read(_alerts, await gateway.organization_id()) == [
        "alert.low_balance"
    ]


def _cannot(*_: Any, **__: Any) -> None:
    raise RuntimeError("cannot be judged")


def _charges(connection: Any, organization_id: str) -> list[Any]:
    found: list[Any] = connection.rows(
        "SELECT amount_nano FROM entry WHERE organization_id = ? AND type = 'charge'",
        (organization_id,),
    )
    return found


def _alerts(connection: Any, organization_id: str) -> list[str]:
    rows = connection.rows("SELECT type FROM alert WHERE organization_id = ?", (organization_id,))
    return [row[0] for row in rows]
