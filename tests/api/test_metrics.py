"""What the node says of itself at the root: /metrics in Prometheus text, /readyz, the separate listener."""

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from prometheus_client.parser import text_string_to_metric_families

from gwd.api.metrics import FAMILIES
from gwd.core.vitals import GIB, TOO_LITTLE_BYTES
from gwd.demo import Behaviour
from gwd.jobs import disk
from gwd.ledger import LedgerBroken
from gwd.store import Connection
from gwd.wiring import RunningNode
from tests.cases.caserunner.ports import free_port
from tests.support.node import Gateway, Nodes

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest_asyncio.fixture
async def running(tmp_path: Path) -> AsyncIterator[RunningNode]:
    nodes = Nodes(tmp_path)
    nodes.init()
    async with nodes.running() as node:
        yield node


def parsed(text: str) -> Samples:
    """Every sample of a page; a page that Prometheus could not read fails here."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


async def get(port: int, path: str) -> httpx.Response:
    async with httpx.AsyncClient() as client:
        return await client.get(f"http://127.0.0.1:{port}{path}")


async def scraped(node: RunningNode) -> Samples:
    reply = await get(node.port, "/metrics")
    assert reply.status_code == 200
    assert reply.headers["content-type"].startswith("text/plain; version=")
    return parsed(reply.text)


def value(samples: Samples, name: str, **labels: str) -> float:
    return samples.get((name, frozenset(labels.items())), 0.0)


async def test_what_is_served_is_what_the_table_of_families_says(running: RunningNode) -> None:
    page = (await get(running.port, "/metrics")).text
    found = {
        family.name: (family.type, family.documentation)
        for family in text_string_to_metric_families(page)
        if family.name.startswith("gwd_")
    }
    assert found == {family.name: (family.kind, family.text) for family in FAMILIES}


async def test_a_served_request_is_counted_once_in_each_place(gateway: Gateway) -> None:
    reply = await gateway.chat(stream=True)
    assert reply.status_code == 200
    await gateway.at_rest()
    found = await scraped(gateway.running)
    route = {"method": "POST", "route": "/chat/completions"}
    assert value(found, "gwd_requests_total", **route, status="2xx") == 1
    attempts = {"adapter": "openai_chat"}
    assert value(found, "gwd_upstream_attempts_total", **attempts, reason="ok") == 1
    assert value(found, "gwd_first_token_seconds_count") == 1
    assert value(found, "gwd_first_token_seconds_bucket", le="+Inf") == 1
    assert 0 < value(found, "gwd_first_token_seconds_sum") < 10
    assert value(found, "gwd_settlement_seconds_count") == 1
    assert value(found, "gwd_in_flight") == value(found, "gwd_open_reservations") == 0
    assert value(found, "gwd_writer_batch_size_count") >= 2
    assert value(found, "gwd_writer_commit_seconds_sum") > 0
    assert value(found, "gwd_wal_bytes") > 0
    assert value(found, "gwd_disk_free_bytes") > 0
    assert value(found, "gwd_connections") >= 1
    assert value(found, "gwd_ready") == 1
    assert value(found, "gwd_estimate_exceeded_total") == 0
    assert value(found, "process_open_fds") > 0


async def test_money_and_tokens_are_those_of_the_ledger_and_the_bills(gateway: Gateway) -> None:
    record = await gateway.generation(await gateway.chat())
    await gateway.at_rest()
    found = await scraped(gateway.running)
    assert value(found, "gwd_tokens_total", kind="input") == record["tokens_prompt"] > 0
    assert value(found, "gwd_tokens_total", kind="output") == record["tokens_completion"] > 0
    free_nano = int(await gateway.balance() * 10**9)
    assert value(found, "gwd_free_nano_usd") == free_nano
    assert value(found, "gwd_charged_nano_usd_total") == 10 * 10**9 - free_nano > 0
    assert value(found, "gwd_held_nano_usd") == 0


async def test_endpoints_are_counted_by_provider_and_how_they_stand(gateway: Gateway) -> None:
    assert (await gateway.chat(stream=True)).status_code == 200
    gateway.vendor.script.next(Behaviour(status=401))
    assert (await gateway.chat(model="demo/claude")).status_code >= 500
    await gateway.at_rest()
    found = await scraped(gateway.running)
    assert value(found, "gwd_endpoints", provider="openai-chat", status="healthy") == 2
    closed = {"provider": "anthropic-messages", "status": "cooling_down"}
    assert value(found, "gwd_endpoints", **closed) == 2  # the key is refused for both
    assert 0 < value(found, "gwd_endpoint_first_token_seconds", provider="openai-chat") < 10
    silent = ("gwd_endpoint_first_token_seconds", frozenset({("provider", "openai-responses")}))
    assert silent not in found


async def test_both_base_paths_are_one_route(gateway: Gateway) -> None:
    await get(gateway.running.port, "/v1/models")
    await get(gateway.running.port, "/api/v1/models")
    await get(gateway.running.port, "/api/v1/models/demo/chat")
    found = await scraped(gateway.running)
    labels = {"method": "GET", "status": "2xx"}
    assert value(found, "gwd_requests_total", **labels, route="/models") == 2
    assert value(found, "gwd_requests_total", **labels, route="/models/<model>") == 1


async def test_an_open_hold_is_seen_with_its_age(gateway: Gateway) -> None:
    gateway.vendor.script.next(Behaviour(delay_s=1.0))
    asking = asyncio.ensure_future(gateway.chat())
    line = gateway.running.node.line
    async with asyncio.timeout(5):
        while (
            not line.live
            or not (await scraped(gateway.running))[("gwd_open_reservations", frozenset())]
        ):
            await asyncio.sleep(0.02)
    await asyncio.sleep(0.2)
    found = await scraped(gateway.running)
    assert value(found, "gwd_in_flight") == value(found, "gwd_open_reservations") == 1
    assert 0.1 < value(found, "gwd_oldest_reservation_seconds") < 10
    assert (await asking).status_code == 200


async def test_refusals_and_failed_credentials_are_counted_by_code(gateway: Gateway) -> None:
    client = gateway.client
    assert (await gateway.chat(model="demo/nothing")).status_code == 404
    assert (await client.post("/chat/completions", content=b"{")).status_code == 400
    wrong = {"authorization": "Bearer gwi_" + "0" * 49}
    assert (await gateway.chat(headers=wrong)).status_code == 401
    management = {"authorization": f"Bearer {gateway.management_key}"}
    assert (await gateway.chat(headers=management)).status_code == 403
    assert (await client.get("/keys")).status_code == 403
    key, key_id = await gateway.new_key()
    await gateway.manage("PATCH", f"/keys/{key_id}", {"disabled": True})
    disabled = {"authorization": f"Bearer {key}"}
    assert (await gateway.chat(headers=disabled)).status_code == 401
    found = await scraped(gateway.running)
    for code in ("model_not_found", "invalid_json", "invalid_api_key", "key_disabled"):
        assert value(found, "gwd_refusals_total", code=code) == 1, code
    for kind, count in {"invalid_api_key": 1, "wrong_key_type": 2, "key_disabled": 1}.items():
        assert value(found, "gwd_auth_failures_total", kind=kind) == count, kind


async def test_an_address_that_keeps_failing_is_counted_as_such(gateway: Gateway) -> None:
    wrong = {"authorization": "Bearer gwi_" + "0" * 49}
    answers = [(await gateway.chat(headers=wrong)).status_code for _ in range(31)]
    assert answers == [401] * 30 + [429]
    found = await scraped(gateway.running)
    assert value(found, "gwd_auth_failures_total", kind="invalid_api_key") == 30
    assert value(found, "gwd_auth_failures_total", kind="too_many_failures") == 1


async def test_failed_attempts_are_counted_by_their_reason(gateway: Gateway) -> None:
    gateway.vendor.script.next(Behaviour(status=500))
    assert (await gateway.chat()).status_code == 502
    gateway.vendor.script.next(Behaviour(status=400, message="no"))
    assert (await gateway.chat()).status_code == 400
    assert (await gateway.chat()).status_code == 200
    found = await scraped(gateway.running)
    for reason in ("upstream_error", "bad_request", "ok"):
        labels = {"adapter": "openai_chat", "reason": reason}
        assert value(found, "gwd_upstream_attempts_total", **labels) == 1, reason
    assert value(found, "gwd_refusals_total", code="upstream_error") == 0


async def test_a_client_that_leaves_cancels_an_attempt(gateway: Gateway) -> None:
    gateway.vendor.script.next(Behaviour(stall_after=4))
    body = {"model": "demo/chat", "messages": [{"role": "user", "content": "a"}], "stream": True}
    async with gateway.client.stream("POST", "/chat/completions", json=body) as reply:
        await anext(reply.aiter_bytes())
    await gateway.at_rest()
    found = await scraped(gateway.running)
    labels = {"adapter": "openai_chat", "reason": "cancelled"}
    assert value(found, "gwd_upstream_attempts_total", **labels) == 1


async def test_bills_by_our_own_count_are_counted_by_their_cause(gateway: Gateway) -> None:
    gateway.vendor.script.next(
        Behaviour(usage="missing"), Behaviour(prompt_tokens=5_000_000, completion_tokens=5)
    )
    assert (await gateway.chat()).status_code == 200
    assert (await gateway.chat()).status_code == 200
    assert (await gateway.chat()).status_code == 200
    await gateway.at_rest()
    found = await scraped(gateway.running)
    assert value(found, "gwd_usage_estimated_total") == 1
    assert value(found, "gwd_usage_rejected_total") == 1


async def test_prompts_above_their_bound_are_counted_and_told_to_the_operator(
    gateway: Gateway, caplog: pytest.LogCaptureFixture
) -> None:
    """They are billed as reported; the metric and the doctor name the provider."""
    gateway.vendor.script.next(Behaviour(prompt_tokens=90_000, completion_tokens=5))
    reply = await gateway.chat()
    record = await gateway.generation(reply)
    assert (record["tokens_prompt"], record["usage_estimated"]) == (90_000, False)
    assert record["prompt_above_bound"] is True
    assert (await gateway.generation(await gateway.chat()))["prompt_above_bound"] is False
    await gateway.at_rest()
    found = await scraped(gateway.running)
    assert value(found, "gwd_prompts_above_bound_total", provider=record["provider_name"]) == 1
    assert "counted 90000 prompt tokens" in caplog.text
    doctor = (await gateway.manage("GET", "/operator/doctor"))["data"]
    [check] = [each for each in doctor["checks"] if each["name"] == "token counts"]
    assert check["state"] == "warning"
    assert record["provider_name"] in check["message"]
    assert "usage_unreliable" in check["do"]


async def test_a_cost_above_the_hold_is_counted(gateway: Gateway) -> None:
    """Only a vendor that goes a little over the cap it was sent gets there."""
    gateway.vendor.script.next(Behaviour(prompt_tokens=1_000, completion_tokens=69))
    assert (await gateway.chat(max_tokens=5)).status_code == 200
    await gateway.at_rest()
    assert value(await scraped(gateway.running), "gwd_estimate_exceeded_total") == 1


async def test_hosted_tools_that_no_upstream_has_are_counted(gateway: Gateway) -> None:
    own = {"type": "function", "name": "f", "parameters": {"type": "object"}}
    body = {"model": "demo/chat", "input": "hello", "tools": [{"type": "web_search"}, own]}
    assert (await gateway.client.post("/responses", json=body)).status_code == 200
    await gateway.at_rest()
    assert value(await scraped(gateway.running), "gwd_hosted_tools_dropped_total") == 1


async def test_no_label_names_a_key_a_person_or_an_organization(gateway: Gateway) -> None:
    await gateway.chat(user="user-4711", headers={"x-session-id": "session-4711"})
    await gateway.chat(headers={"authorization": "Bearer gwi_" + "1" * 49})
    await gateway.manage("GET", f"/keys/{gateway.key_id}")
    await gateway.at_rest()
    text = (await get(gateway.running.port, "/metrics")).text
    organization_id = await gateway.organization_id()
    for name in ("4711", gateway.key_id, gateway.key, "gwi_", organization_id, "demo/chat"):
        assert name not in text


async def test_what_no_route_takes_is_one_line_whatever_was_asked(running: RunningNode) -> None:
    for path in ("/a", "/b", "/api/v1/c"):
        assert (await get(running.port, path)).status_code == 404
    found = await scraped(running)
    labels = {"method": "other", "route": "unmatched", "status": "4xx"}
    assert value(found, "gwd_requests_total", **labels) == 3


async def test_a_broken_invariant_is_counted_and_undone(running: RunningNode) -> None:
    def breaks(_: Connection) -> None:
        raise LedgerBroken("the books do not add up")

    with pytest.raises(LedgerBroken):
        await running.store.write(breaks)
    assert value(await scraped(running), "gwd_invariant_failures_total") == 1


async def test_a_separate_listener_takes_the_metrics_and_both_have_the_health(
    tmp_path: Path,
) -> None:
    nodes = Nodes(tmp_path)
    nodes.init()
    port = free_port()
    async with nodes.running(GWD_SERVER_METRICS_PORT=str(port)) as node:
        assert (await get(node.port, "/metrics")).status_code == 404
        assert value(parsed((await get(port, "/metrics")).text), "gwd_ready") == 1
        for at in (node.port, port):
            assert (await get(at, "/healthz")).status_code == 200
            assert (await get(at, "/readyz")).status_code == 200
        for path in ("/api/v1/models", "/v1/keys"):
            assert (await get(port, path)).status_code == 404
        assert (await get(node.port, "/api/v1/models")).status_code == 200
    with pytest.raises(httpx.ConnectError):
        await get(port, "/healthz")


async def test_a_node_that_drains_or_is_in_quarantine_is_not_ready(running: RunningNode) -> None:
    status = running.node.status
    assert (await get(running.port, "/readyz")).status_code == 200
    status.draining = True
    assert (await get(running.port, "/readyz")).status_code == 503
    status.draining = False
    status.quarantine = "the ledger does not add up"
    assert (await get(running.port, "/readyz")).status_code == 503
    assert (await get(running.port, "/healthz")).status_code == 200
    assert value(await scraped(running), "gwd_quarantine") == 1
    status.quarantine = None
    assert (await get(running.port, "/readyz")).status_code == 200


async def test_a_writer_that_is_silent_for_ten_seconds_or_far_behind_is_not_ready(
    running: RunningNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    vitals = running.node.vitals
    seen_s = vitals.writer_seen_s
    async with asyncio.timeout(5):
        while vitals.writer_seen_s == seen_s:  # the heartbeat comes once a second
            await asyncio.sleep(0.05)
    vitals.writer_seen_s -= 10.1
    assert (await get(running.port, "/readyz")).status_code == 503
    await running._heartbeat.beat()
    assert (await get(running.port, "/readyz")).status_code == 200
    monkeypatch.setattr(type(running.store), "queued", 1_001)
    assert (await get(running.port, "/readyz")).status_code == 503
    monkeypatch.setattr(type(running.store), "queued", 1_000)
    assert (await get(running.port, "/readyz")).status_code == 200


async def test_a_node_whose_disk_is_almost_full_refuses_before_it_calls_anybody(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    free = GIB

    def free_bytes(_: Path) -> int:
        return free

    monkeypatch.setattr(disk, "free_bytes", free_bytes)
    watch = gateway.running._disk
    watch.look()
    with caplog.at_level(logging.WARNING, logger="gwd.jobs.disk"):
        free = GIB - 1
        watch.look()
        watch.look()
        assert [record.levelname for record in caplog.records] == ["ERROR"]
        assert (await gateway.chat()).status_code == 200
        free = TOO_LITTLE_BYTES - 1
        watch.look()
        assert [record.levelname for record in caplog.records] == ["ERROR", "CRITICAL"]
    before = _calls(gateway)
    refused = await gateway.chat()
    assert refused.status_code == 503
    assert refused.json()["error"]["code"] == "storage_unavailable"
    assert int(refused.headers["retry-after"]) > 0
    assert _calls(gateway) == before
    assert (await get(gateway.running.port, "/readyz")).status_code == 503
    await gateway.manage("GET", "/keys")  # reading goes on
    free = TOO_LITTLE_BYTES
    watch.look()
    assert (await gateway.chat()).status_code == 200
    assert (await get(gateway.running.port, "/readyz")).status_code == 200


def _calls(gateway: Gateway) -> float:
    attempts: Any = gateway.running.node.counters.attempts
    total: int = sum(attempts.values())
    return total


async def test_the_loop_is_watched(running: RunningNode) -> None:
    await asyncio.sleep(0.6)
    found = await scraped(running)
    assert value(found, "gwd_loop_lag_seconds_count") >= 1
