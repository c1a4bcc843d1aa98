"""What the operator sees of one endpoint: circuit, rests, last errors, what was measured."""

import asyncio
from typing import Any

from gwd.demo import Behaviour
from gwd.health.health import LAST_FAULTS, MAX_MESSAGE
from tests.flows.clock import MovableClock
from tests.flows.conftest import A, Opened
from tests.support.node import Gateway


async def _endpoint_id(gateway: Gateway) -> str:
    [endpoint] = (await gateway.manage("GET", "/catalog/endpoints?model=demo/chat"))["data"]
    found: str = endpoint["id"]
    return found


async def _health(gateway: Gateway) -> dict[str, Any]:
    path = f"/catalog/endpoints/{await _endpoint_id(gateway)}/health"
    found: dict[str, Any] = (await gateway.manage("GET", path))["data"]
    return found


def _circuits(record: dict[str, Any]) -> tuple[str, str, bool, bool]:
    """(the endpoint's circuit, its credential's, whether that is on trial, whether it rests)."""
    [credential] = record["credentials"]
    resting = credential["rest"] is not None
    return record["circuit"], credential["circuit"], credential["on_trial"], resting


async def test_a_circuit_opens_is_half_open_after_its_rest_and_closes_with_a_success(
    opened: Opened, clock: MovableClock
) -> None:
    async with opened(clock) as gateway:
        clock.stop()
        record = await _health(gateway)
        assert _circuits(record) == ("closed", "closed", False, False)
        assert (record["last_errors"], record["in_flight"], record["attempts"]) == ([], 0, 0)

        gateway.vendor.script.next(Behaviour(status=503, message="too busy"), model=A)
        await gateway.chat()
        record = await _health(gateway)
        assert _circuits(record) == ("open", "open", False, True)
        [credential], [fault] = record["credentials"], record["last_errors"]
        assert credential["rest"]["reason"] == fault["reason"] == "overloaded"
        assert (fault["status"], fault["message"]) == (503, "too busy")
        assert fault["credential_id"] == credential["credential_id"]
        assert fault["at"] == credential["rest"]["since"] < credential["rest"]["until"]
        assert record["rests"] == [credential["rest"]]

        clock.pass_by(11)
        assert _circuits(await _health(gateway)) == ("half_open", "half_open", False, False)

        gateway.vendor.script.next(Behaviour(delay_s=1), model=A)
        asking = asyncio.create_task(gateway.chat())
        await gateway.vendor.calls.wait_for(2)
        record = await _health(gateway)
        assert _circuits(record) == ("half_open", "half_open", True, False)
        assert record["in_flight"] == 1
        await asking
        await gateway.at_rest()
        record = await _health(gateway)
        assert _circuits(record) == ("closed", "closed", False, False)
        assert (record["in_flight"], record["attempts"], record["failures"]) == (0, 2, 1)
        assert record["last_errors"] == [fault]  # what went wrong is shown for a day
        listed = (await gateway.manage("GET", "/operator/status"))["data"]["endpoints"]
        [same] = [each for each in listed if each["id"] == record["id"]]
        assert same == {name: record[name] for name in same}


async def test_a_refused_key_opens_the_circuit_for_good(gateway: Gateway) -> None:
    gateway.vendor.script.next(Behaviour(status=401), model=A)
    await gateway.chat()
    record = await _health(gateway)
    assert _circuits(record) == ("open", "open", False, True)
    rest = record["credentials"][0]["rest"]
    assert (rest["until"], rest["tried"]) == (None, False)


async def test_last_errors_are_few_short_and_without_secrets(gateway: Gateway) -> None:
    long = "a long story " * 100
    for number in range(LAST_FAULTS + 5):
        said = f"{number} sk-abcdefgh1234 and sk-demo-0000 {long}"
        gateway.vendor.script.next(Behaviour(status=500, message=said), model=A)
        assert (await gateway.chat()).status_code == 502
    refused = Behaviour(status=400, message="your own fault")
    gateway.vendor.script.next(refused, model=A)
    await gateway.chat()
    shown = (await _health(gateway))["last_errors"]
    assert [fault["message"].split()[0] for fault in shown] == [
        str(number) for number in range(LAST_FAULTS + 4, 4, -1)
    ]
    assert all(len(fault["message"]) <= MAX_MESSAGE for fault in shown)
    assert "sk-" not in str(shown)


async def test_only_the_operator_sees_it(gateway: Gateway) -> None:
    path = f"/catalog/endpoints/{await _endpoint_id(gateway)}/health"
    made = await gateway.manage("POST", "/organizations", {"name": "B", "owner_email": "b@b.test"})
    for key in (made["management_key"], gateway.key):
        reply = await gateway.client.get(path, headers={"authorization": f"Bearer {key}"})
        assert reply.status_code == 403, reply.text
    await gateway.manage("GET", "/catalog/endpoints/ep_none/health", status=404)
