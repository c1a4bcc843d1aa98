"""Spans and metrics reach a collector, say nothing of what was asked, and a collector that fails harms nobody."""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gwd.core.counters import Counters
from gwd.demo import Behaviour
from gwd.settings import SettingsError
from gwd.telemetry import telemetry
from gwd.telemetry.telemetry import Telemetry
from tests.cases.caserunner.ports import free_port
from tests.flows.conftest import ORDER, add_backup
from tests.support.collector import Collector, attributes, collecting
from tests.support.node import Gateway, Nodes, open_gateway

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
LAST_WORDS_S = telemetry.LAST_WORDS_S
KEPT = f"00-{TRACE}-{PARENT}-01"


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine takes its time to send the last spans."""
    monkeypatch.setattr(telemetry, "LAST_WORDS_S", 60.0)


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as made:
        yield made


def otel(collector: Collector, **more: str) -> dict[str, str]:
    return {"GWD_OTEL_ENDPOINT": collector.url, **more}


async def fails_over(gateway: Gateway) -> Any:
    """A streamed request whose first vendor fails, in a client's trace; its record."""
    await add_backup(gateway)
    gateway.vendor.script.next(Behaviour(status=500), Behaviour(text="canary-answer"))
    reply = await gateway.chat(
        "canary-question",
        stream=True,
        provider=ORDER,
        user="canary-user",
        headers={"traceparent": KEPT, "x-title": "canary-title"},
    )
    assert reply.status_code == 200
    return await gateway.generation(reply)


async def test_a_request_is_a_span_with_one_below_it_for_each_call(
    tmp_path: Path, collector: Collector
) -> None:
    headers = {"GWD_OTEL_HEADERS": '["authorization=env:OTEL_TOKEN"]', "OTEL_TOKEN": "otel-secret"}
    async with open_gateway(tmp_path, environment=otel(collector, **headers)) as gateway:
        record = await fails_over(gateway)
        await gateway.at_rest()
        assert "traceparent" not in gateway.vendor.calls.last.headers
    assert {each["authorization"] for each in collector.headers} == {"otel-secret"}
    own, failed, served = collector.spans
    assert (own.name, failed.name) == ("chat demo/chat", "chat gpt-demo")
    assert served.name == "chat gpt-demo-mini"
    assert {span.trace_id.hex() for span in collector.spans} == {TRACE}
    assert own.parent_span_id.hex() == PARENT
    assert failed.parent_span_id == served.parent_span_id == own.span_id
    assert len({span.span_id for span in collector.spans}) == 3
    assert (own.kind, failed.kind) == (own.SPAN_KIND_SERVER, own.SPAN_KIND_CLIENT)
    said = attributes(own)
    wanted = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "backup",
        "gen_ai.request.model": "demo/chat",
        "gen_ai.response.model": "demo/chat",
        "gen_ai.response.id": record["id"],
        "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.usage.input_tokens": record["tokens_prompt"],
        "gen_ai.usage.output_tokens": record["tokens_completion"],
        "gwd.attempts": 2,
        "gwd.status": "succeeded",
        "gwd.cost_nano": round(record["total_cost"] * 10**9),
    }
    assert {name: said.get(name) for name in wanted} == wanted
    assert attributes(failed)["error.type"] == "upstream_error"
    assert attributes(failed)["http.response.status_code"] == 500
    assert attributes(served)["server.address"] == "127.0.0.1"
    assert (failed.status.code, own.status.code, served.status.code) == (2, 0, 0)
    times = [own.start_time_unix_nano, failed.start_time_unix_nano, failed.end_time_unix_nano]
    times += [served.start_time_unix_nano, served.end_time_unix_nano, own.end_time_unix_nano]
    assert times == sorted(times)
    for body in collector.bodies:
        for secret in (b"canary", gateway.key.encode(), b"sk-demo", b"sk-backup", b"otel-secret"):
            assert secret not in body


async def test_measurements_are_those_of_the_conventions(
    tmp_path: Path, collector: Collector
) -> None:
    async with open_gateway(tmp_path, environment=otel(collector)) as gateway:
        record = await gateway.generation(await gateway.chat(stream=True))
        await gateway.chat(model="demo/nothing")
        await gateway.at_rest()
    assert set(collector.metrics) == {
        *("gen_ai.client.operation.duration", "gen_ai.client.token.usage"),
        *("gen_ai.server.time_to_first_token", "gwd.cost"),
    }
    points = collector.metrics["gen_ai.client.token.usage"].histogram.data_points
    sums = {attributes(point)["gen_ai.token.type"]: point.sum for point in points}
    assert sums == {"input": record["tokens_prompt"], "output": record["tokens_completion"]}
    (cost,) = collector.metrics["gwd.cost"].sum.data_points
    assert cost.as_int == round(record["total_cost"] * 10**9) > 0
    (duration,) = collector.metrics["gen_ai.client.operation.duration"].histogram.data_points
    assert (duration.count, attributes(duration)["gen_ai.request.model"]) == (1, "demo/chat")


async def test_vendors_are_told_of_the_trace_only_where_that_is_set(
    tmp_path: Path, collector: Collector
) -> None:
    environment = otel(collector, GWD_OTEL_PROPAGATE="true", GWD_OTEL_METRICS="false")
    async with open_gateway(tmp_path, environment=environment) as gateway:
        assert (await gateway.chat(headers={"traceparent": KEPT})).status_code == 200
        told = gateway.vendor.calls.last.headers["traceparent"]
        await gateway.at_rest()
    call = collector.named("chat gpt-demo")
    assert told == f"00-{TRACE}-{call.span_id.hex()}-01"
    assert collector.metrics == {}


async def test_refusals_are_spans_too_and_what_is_not_sampled_is_none(
    tmp_path: Path, collector: Collector
) -> None:
    environment = otel(collector, GWD_OTEL_SAMPLE_RATIO="0")
    async with open_gateway(tmp_path, environment=environment) as gateway:
        assert (await gateway.chat()).status_code == 200
        kept = {"traceparent": KEPT}
        assert (await gateway.chat(model="canary/none", headers=kept)).status_code == 404
        not_kept = {"traceparent": KEPT[:-2] + "00"}
        assert (await gateway.chat(headers=not_kept)).status_code == 200
        broken = await gateway.client.post("/chat/completions", content=b"{", headers=kept)
        assert broken.status_code == 400
        await gateway.at_rest()
    assert [attributes(span)["error.type"] for span in collector.spans] == [
        "model_not_found",
        "invalid_json",
    ]
    assert not any(b"canary" in body for body in collector.bodies)


async def test_a_collector_that_refuses_harms_no_request(
    tmp_path: Path, collector: Collector, caplog: pytest.LogCaptureFixture
) -> None:
    collector.status = 401
    async with open_gateway(tmp_path, environment=otel(collector)) as gateway:
        await _serves(gateway)
        counters = gateway.running.node.counters
    assert dict(counters.spans) == {"export_failed": 4}
    assert caplog.text.count("takes no spans or metrics") == 1


async def test_a_collector_that_is_gone_harms_no_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(telemetry, "LAST_WORDS_S", 0.1)
    environment = {"GWD_OTEL_ENDPOINT": f"http://127.0.0.1:{free_port()}"}
    async with open_gateway(tmp_path, environment=environment) as gateway:
        await _serves(gateway)
        counters = gateway.running.node.counters
    assert counters.spans["sent"] == 0


async def _serves(gateway: Gateway) -> None:
    for stream in (False, True):
        assert (await gateway.chat(stream=stream)).status_code == 200
    await gateway.at_rest()


async def test_a_stop_does_not_wait_for_a_collector_that_answers_nothing(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(telemetry, "LAST_WORDS_S", LAST_WORDS_S)
    assert LAST_WORDS_S < 2
    collector.go_on.clear()
    made = Telemetry(collector.url, headers={}, metrics=True, counters=Counters())
    made._queue.append(_span(made))
    await asyncio.to_thread(made.close)
    assert made._thread.is_alive()  # it still waits; nobody waits for it
    assert made._thread.daemon
    collector.go_on.set()
    made._thread.join(60)


async def test_what_finds_no_place_in_the_queue_is_counted_and_forgotten(
    tmp_path: Path, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(telemetry, "MAX_QUEUE", 3)
    monkeypatch.setattr(telemetry, "SEND_S", 600.0)
    async with open_gateway(tmp_path, environment=otel(collector)) as gateway:
        for _ in range(3):
            assert (await gateway.chat()).status_code == 200
        await gateway.at_rest()
        counters = gateway.running.node.counters
        assert counters.spans["queue_full"] == 4
        page = (await gateway.client.get(gateway.base_url[:-7] + "/metrics")).text
        assert 'gwd_spans_total{outcome="queue_full"} 4.0' in page
    assert counters.spans["sent"] == 2


def _span(made: Telemetry) -> Any:
    from opentelemetry.sdk.trace import ReadableSpan

    from gwd.telemetry.spans import _context

    return ReadableSpan("x", context=_context(1, 1), resource=made._resource)


async def test_without_the_extra_the_start_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "gwd.telemetry.telemetry")
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    monkeypatch.delitem(sys.modules, "gwd.telemetry.spans")
    monkeypatch.delitem(sys.modules, "gwd.telemetry.instruments")
    nodes = Nodes(tmp_path)
    nodes.init()
    with pytest.raises(SettingsError, match=r"pip install 'gwd\[otel\]'"):
        async with nodes.running(GWD_OTEL_ENDPOINT="http://127.0.0.1:4318"):
            pass
