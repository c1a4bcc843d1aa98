"""What rests after a failure is tried last, and tried all the same where nothing else is left."""

import asyncio
import logging
from typing import Any

import httpx
import pytest

from gwd.demo import Behaviour
from gwd.keys.policy import KeyPolicy
from tests.flows.clock import MovableClock
from tests.flows.conftest import ORDER, A, B, Opened, add_backup
from tests.flows.frames import error_of, receipt_of
from tests.support.node import Gateway

ASK_RECEIPT = {"x-gw-metadata": "enabled"}
OVERLOADED = Behaviour(status=503)
NO_MODEL = Behaviour(status=404, message="The model does not exist or you have no access to it.")
EMPTY = Behaviour(status=402, message="Insufficient credits")


async def _served_by(gateway: Gateway, content: str = "hello") -> str:
    """Which endpoint answers a request that would like the first."""
    reply = await gateway.chat(content, provider=ORDER)
    assert reply.status_code == 200, reply.text
    served: str = gateway.vendor.calls.last.model
    return served


@pytest.mark.parametrize(
    ("fault", "length_s"),
    [
        (OVERLOADED, 10),
        (Behaviour(status=529), 10),
        (NO_MODEL, 60),
        (Behaviour(status=403, message="Your account has no access to this model"), 60),
        (EMPTY, 900),
        (Behaviour(status=429, message="Monthly quota exceeded. It resets in 2 hours."), 7200),
        (Behaviour(status=429), 1),
    ],
    ids=["503", "529", "404", "403", "402", "quota until", "429"],
)
async def test_a_rest_ends_after_its_time(
    opened: Opened, clock: MovableClock, fault: Behaviour, length_s: int
) -> None:
    async with opened(clock) as gateway:
        await add_backup(gateway)
        clock.stop()
        gateway.vendor.script.next(fault, model=A)
        assert await _served_by(gateway) == B
        clock.pass_by(length_s * 0.85)
        assert await _served_by(gateway) == B
        clock.pass_by(length_s * 0.2)
        assert await _served_by(gateway) == A
        # What served is awake, whatever was.
        assert await _served_by(gateway) == A


async def test_where_all_rest_the_soonest_end_is_tried_first(
    opened: Opened, clock: MovableClock
) -> None:
    async with opened(clock) as gateway:
        await add_backup(gateway)
        gateway.vendor.script.next(EMPTY, model=A)
        gateway.vendor.script.next(OVERLOADED, model=B)
        assert (await gateway.chat(provider=ORDER)).status_code == 502
        assert await _served_by(gateway) == B
        gateway.vendor.script.next(OVERLOADED, OVERLOADED, model=B)
        # B fails and rests: A, which rests too, is all that is left, and serves.
        assert await _served_by(gateway) == A
        assert await _served_by(gateway) == A
        assert len(gateway.vendor.calls.of(B)) == 3


async def test_a_resting_model_stands_behind_a_fallback_that_is_awake(gateway: Gateway) -> None:
    gateway.vendor.script.next(OVERLOADED, model=A)
    assert (await gateway.chat()).status_code == 503
    reply = await gateway.chat(models=["demo/claude"], headers=ASK_RECEIPT)
    assert receipt_of(reply)["model"] == "demo/claude"
    gateway.vendor.script.next(*[Behaviour(status=500)] * 3, model="claude-demo")
    reply = await gateway.chat(models=["demo/claude"], headers=ASK_RECEIPT)
    assert reply.status_code == 200
    assert receipt_of(reply)["model"] in ("demo/chat", "demo/claude")


async def test_one_request_is_no_proof_but_two_different_ones_are(
    opened: Opened, clock: MovableClock
) -> None:
    async with opened(clock) as gateway:
        await add_backup(gateway)
        gateway.vendor.script.next(NO_MODEL, NO_MODEL, model=A)
        await _served_by(gateway, "one")
        clock.pass_by(61)
        await _served_by(gateway, "one")  # tried again, refused again, but the same request
        clock.pass_by(61)
        assert await _served_by(gateway, "one") == A
        gateway.vendor.script.next(NO_MODEL, NO_MODEL, model=A)
        assert await _served_by(gateway, "two") == B
        clock.pass_by(61)
        assert await _served_by(gateway, "three") == B
        clock.pass_by(800)
        assert await _served_by(gateway, "four") == B
        clock.pass_by(101)
        assert await _served_by(gateway, "five") == A


async def test_throttling_without_a_hint_rests_longer_each_time_and_says_so(
    opened: Opened, clock: MovableClock
) -> None:
    async with opened(clock) as gateway:
        gateway.vendor.script.always(Behaviour(status=429, retry_after="soon"))
        for wait_s in (1, 2, 4, 8, 16, 32, 60, 60):
            reply = await gateway.chat()
            assert (reply.status_code, error_of(reply)["code"]) == (429, "endpoints_throttled")
            assert wait_s * 0.9 <= int(reply.headers["retry-after"]) <= wait_s
            reported = error_of(reply)["metadata"]["retry_after"]
            assert str(reported) == reply.headers["retry-after"]
        assert len(gateway.vendor.calls) == 8
        gateway.vendor.script.clear()
        assert (await gateway.chat()).status_code == 200


async def test_the_soonest_end_is_told_also_of_what_could_not_be_tried(
    opened: Opened, clock: MovableClock
) -> None:
    async with opened(clock) as gateway:
        await add_backup(gateway)
        gateway.vendor.script.next(Behaviour(status=429, retry_after="20"), model=A)
        await _served_by(gateway)
        clock.pass_by(5)
        gateway.vendor.script.next(Behaviour(status=429, retry_after="50"), model=B)
        reply = await gateway.chat(provider=ORDER)
        assert (reply.status_code, reply.headers["retry-after"]) == (429, "15")
        assert len(gateway.vendor.calls) == 3


async def test_a_call_under_way_opens_nothing_that_was_closed_meanwhile(gateway: Gateway) -> None:
    health = gateway.running.node.state.health
    await gateway.chat()
    plan_input = await gateway.running.node.state.plan_input(
        await gateway.organization_id(), KeyPolicy()
    )
    [endpoint] = plan_input.catalog.models["demo/chat"].endpoints
    [key] = plan_input.vendor_keys[endpoint.provider]
    slow = Behaviour(first_event_delay_s=0.4)
    gateway.vendor.script.next(slow, Behaviour(status=429, retry_after="40"), model=A)
    first = asyncio.create_task(gateway.chat("first", stream=True))
    await asyncio.sleep(0.15)
    assert (await gateway.chat("second")).status_code == 429
    assert (await first).status_code == 200
    await gateway.at_rest()
    rest = health.rest(endpoint.id, key.id, gateway.running.node.clock.monotonic_s())
    assert rest is not None
    assert rest.is_closed


# What a failing request of one tenant may do to another.

_TOOLS: dict[str, Any] = {
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
}


def _error(status: int, message: str, **fields: Any) -> Behaviour:
    return Behaviour(status=status, message=message, **{"code": str(status), **fields})


KINDS: list[Behaviour | str] = [
    _error(400, "max_tokens must be positive"),
    _error(400, "This model's maximum context length is 8 tokens"),
    _error(400, "Invalid `signature` in `thinking` block"),
    _error(400, "property 'reasoning_content' is unsupported"),
    _error(400, "The invalid api key of your MCP server was refused"),
    _error(400, "Unknown parameter: 'insufficient_quota'"),
    _error(400, "This organization has been disabled."),
    _error(400, "blocked by our content policy", code="content_policy_violation"),
    _error(402, "This request requires more credits, or fewer max_tokens"),
    _error(403, "Your prompt was blocked"),
    _error(403, "Image input is not enabled for your plan"),
    _error(403, "You may not use the web search tool"),
    _error(403, "Your account has no access to this model"),
    _error(404, "No endpoints found that support tool use"),
    _error(404, "No endpoints found that support image input"),
    _error(404, "Conversation with id 'conv_1' not found."),
    _error(404, "File file-1 not found"),
    _error(404, "The model does not exist"),
    _error(404, "Not Found"),
    _error(404, "Something we have never seen before"),
    _error(408, "too slow"),
    _error(413, "Request too large"),
    _error(422, "Field required"),
    _error(429, "slow down"),
    _error(
        429,
        "Request too large for gpt on tokens per min (TPM): Limit 30000, Requested 45000.",
        retry_after="59",
    ),
    _error(429, "You exceeded your current quota", code="insufficient_quota"),
    _error(429, "Daily quota exceeded, try again in 9 hours"),
    _error(500, "boom"),
    _error(500, "The server had an error with this prompt", retry_after="300"),
    _error(503, "busy"),
    _error(529, "overloaded"),
    _error(418, "a teapot"),
    "cut_before_headers",
    "reset_before_headers",
    "empty_body",
    "html",
    "bad_json",
    "error_first",
    "overloaded_first",
]


async def test_two_tenants_one_endpoint(gateway: Gateway) -> None:
    """However one tenant's requests fail, the other's next one is answered."""
    made = await gateway.manage("POST", "/organizations", {"name": "B", "owner_email": "b@b.test"})
    headers = {"authorization": f"Bearer {made['management_key']}"}
    async with httpx.AsyncClient(base_url=gateway.base_url, headers=headers) as owner:
        bought = await owner.post("/credits/purchases", json={"amount": "5", "reference": "first"})
        assert bought.status_code in (200, 201), bought.text
        key = (await owner.post("/keys", json={"name": "b"})).json()["key"]
    other = {"authorization": f"Bearer {key}"}
    assert len(KINDS) >= 30
    wrong = []
    for kind in KINDS:
        for stream in (False, True):
            # As different requests, and as often as a row of network faults needs to count.
            for turn in range(3):
                gateway.vendor.script.next(kind, kind, model=A)
                await gateway.chat(f"request {turn}", stream=stream, **_TOOLS)
                gateway.vendor.script.clear()
            reply = await gateway.chat("and I?", headers=other, stream=stream)
            if reply.status_code != 200 or '"error"' in reply.text:
                wrong.append((kind, stream, reply.status_code, reply.text[:200]))
    assert wrong == []


async def test_a_refused_key_is_believed_by_its_status_or_code_and_not_by_words(
    gateway: Gateway,
) -> None:
    said = _error(400, "This organization has been disabled.")
    gateway.vendor.script.next(said, said, said, model=A)
    for content in ("one", "two", "three"):
        assert (await gateway.chat(content)).status_code == 502
    assert (await gateway.chat("four")).status_code == 200
    gateway.vendor.script.next(_error(400, "no", code="invalid_api_key"), model=A)
    assert (await gateway.chat("five")).status_code == 502
    assert error_of(await gateway.chat("six"))["code"] == "no_available_endpoint"


# What is about the request goes on to the next endpoint, and ends in the vendor's own sentence.


async def test_a_404_about_the_request_is_passed_on_when_nobody_can(two: Gateway) -> None:
    cannot = _error(404, "No endpoints found that support tool use.")
    two.vendor.script.next(cannot, model=A)
    served = await two.chat(provider=ORDER, headers=ASK_RECEIPT, **_TOOLS)
    assert served.status_code == 200
    two.vendor.script.next(cannot, model=A)
    two.vendor.script.next(cannot, model=B)
    refused = await two.chat(provider=ORDER, headers=ASK_RECEIPT, **_TOOLS)
    assert refused.status_code == 404
    assert "support tool use" in error_of(refused)["message"]
    assert await _served_by(two) == A


@pytest.mark.parametrize(
    ("faults", "status"),
    [
        ([_error(404, "No such tool"), OVERLOADED], 503),
        ([_error(404, "No such tool"), Behaviour(status=500)], 502),
        ([_error(404, "No such tool"), NO_MODEL], 404),
        ([NO_MODEL, _error(404, "No such tool")], 404),
    ],
    ids=["busy", "broken", "denied", "denied before"],
)
async def test_what_is_told_when_endpoints_fail_for_different_reasons(
    two: Gateway, faults: list[Behaviour], status: int
) -> None:
    two.vendor.script.next(faults[0], model=A)
    two.vendor.script.next(faults[1], model=B)
    assert (await two.chat(provider=ORDER)).status_code == status


async def test_a_vendors_4xx_carries_the_receipt_when_asked(gateway: Gateway) -> None:
    for status in (400, 403, 404, 413, 422):
        for stream in (False, True):
            await _refused_with_receipt(gateway, status, stream=stream)


async def _refused_with_receipt(gateway: Gateway, status: int, *, stream: bool) -> None:
    for headers in (ASK_RECEIPT, {}):
        gateway.vendor.script.next(_error(status, "the tool is odd"), model=A)
        reply = await gateway.chat(headers=headers, stream=stream)
        assert reply.status_code == status
        metadata = error_of(reply)["metadata"]
        assert ("gateway_metadata" in metadata) is bool(headers)
    for path, body in (
        ("/messages", {"max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}),
        ("/responses", {"input": "hi"}),
    ):
        gateway.vendor.script.next(_error(status, "the tool is odd"), model=A)
        reply = await gateway.client.post(
            path, json={"model": "demo/chat", "stream": stream, **body}, headers=ASK_RECEIPT
        )
        receipt = reply.json()["error"]["metadata"]["gateway_metadata"]
        timing = receipt["timing_ms"]
        assert {type(value) for value in timing.values()} == {int}
        assert receipt["routing"]["attempts"] == 1


async def test_only_a_change_of_the_catalog_ends_a_rest(two: Gateway) -> None:
    two.vendor.script.next(NO_MODEL, model=A)
    assert await _served_by(two) == B
    await two.manage("POST", "/keys", {"name": "of somebody else"})
    assert await _served_by(two) == B
    [endpoint] = (await two.manage("GET", "/catalog/endpoints?provider=backup"))["data"]
    await two.manage("PATCH", f"/catalog/endpoints/{endpoint['id']}", {"weight": 2})
    assert await _served_by(two) == A


# What is shown of rests.


async def test_what_rests_why_and_until_when_is_shown(
    gateway: Gateway, caplog: pytest.LogCaptureFixture
) -> None:
    async def seen() -> tuple[dict[str, Any], dict[str, Any], int]:
        status = (await gateway.manage("GET", "/operator/status"))["data"]
        [endpoint] = [each for each in status["endpoints"] if each["model"] == "demo/chat"]
        doctor = (await gateway.manage("GET", "/operator/doctor"))["data"]
        [check] = [each for each in doctor["checks"] if each["name"] == "rests"]
        model = (await gateway.client.get("/models/demo/chat")).json()["data"]
        return endpoint, check, model["endpoints_available"]

    endpoint, check, available = await seen()
    assert (endpoint["rests"], endpoint["p50_tokens_per_second"]) == ([], None)
    assert (check["state"], available) == ("ok", 1)

    with caplog.at_level(logging.INFO, logger="gwd.health.health"):
        gateway.vendor.script.next(_error(503, "too busy"), _error(503, "too busy"), model=A)
        await gateway.chat()
        await gateway.chat()
    endpoint, check, available = await seen()
    [rest] = endpoint["rests"]
    assert (rest["reason"], rest["status"], rest["message"]) == ("overloaded", 503, "too busy")
    assert rest["tried"] is True
    assert rest["since"] < rest["until"] == endpoint["cooldown_until"]
    assert "demo/chat" in check["message"]
    assert (check["state"], available) == ("warning", 1)
    [line] = [r.getMessage() for r in caplog.records]  # a rest that goes on is told once
    assert "demo/chat" in line
    assert "overloaded (status 503): too busy" in line

    with caplog.at_level(logging.INFO, logger="gwd.health.health"):
        assert (await gateway.chat()).status_code == 200
    assert "serves again" in caplog.records[-1].getMessage()
    assert (await seen())[0]["rests"] == []

    gateway.vendor.script.next(_error(429, "slow down", retry_after="30"), model=A)
    await gateway.chat()
    endpoint, check, available = await seen()
    assert (endpoint["rests"][0]["tried"], available) == (False, 0)

    gateway.running.node.state.health.forget_credentials()
    gateway.running.node.state.health._rests._pairs.clear()
    gateway.vendor.script.next(Behaviour(status=401), model=A)
    await gateway.chat()
    endpoint, check, available = await seen()
    assert (endpoint["status"], endpoint["cooldown_until"]) == ("cooling_down", None)
    assert (endpoint["rests"][0]["until"], available) == (None, 0)
    assert "gwctl provider secret" in check["do"]


async def test_available_endpoints_are_those_that_can_serve(two: Gateway) -> None:
    async def available() -> int:
        listed = (await two.client.get("/models")).json()["data"]
        [model] = [each for each in listed if each["id"] == "demo/chat"]
        found: int = model["endpoints_available"]
        return found

    assert await available() == 2
    [key] = (await two.manage("GET", "/catalog/credentials?provider=backup"))["data"]
    await two.manage("PATCH", f"/catalog/credentials/{key['id']}", {"disabled": True})
    assert await available() == 1


# What is measured.


@pytest.mark.parametrize("way", ["whole", "burst", "mixed"])
async def test_throughput_chooses_the_faster_endpoint(two: Gateway, way: str) -> None:
    """Whole answers, and those that come in one piece, are measured like slow ones."""
    fast = Behaviour(text="word " * 40)
    slow = (
        Behaviour(text="word " * 40, delay_s=0.3)
        if way == "whole"
        else Behaviour(text="word " * 40, tokens_per_second=100)
    )
    for _ in range(3):
        two.vendor.script.next(slow, model=A)
        two.vendor.script.next(fast, model=B)
        only_a, only_b = {"only": ["openai-chat"]}, {"only": ["backup"]}
        await two.chat(provider=only_a, stream=way != "whole")
        await two.chat(provider=only_b, stream=way == "burst")
    health = two.running.node.state.health
    for asked in ({"model": "demo/chat:nitro"}, {"provider": {"sort": "throughput"}}):
        reply = await two.chat(**asked)
        assert reply.status_code == 200
        assert two.vendor.calls.last.model == B
    speeds = [
        health.median_throughput(e, two.running.node.clock.monotonic_s()) for e in health._endpoints
    ]
    assert None not in speeds


async def test_an_alias_of_deprecated_models_serves_the_newest(gateway: Gateway) -> None:
    for slug, day in (("demo/old-1", "2024-01-01"), ("demo/old-2", "2025-01-01")):
        await gateway.manage(
            "POST",
            "/catalog/models",
            {
                "id": slug,
                "name": slug,
                "vendor": "Demo",
                "family": "old",
                "context_length": 200_000,
                "max_completion_tokens": 32_000,
                "supported_parameters": ["max_tokens"],
                "input_modalities": ["text"],
                "output_modalities": ["text"],
                "pricing": {"prompt": "0.000001", "completion": "0.000001"},
                "released_at": f"{day}T00:00:00Z",
                "deprecated_at": "2025-06-01T00:00:00Z",
                "successor": "demo/chat",
            },
        )
        await gateway.add_endpoint(slug, "openai-chat", A)
    reply = await gateway.chat(model="~demo/old-latest", headers=ASK_RECEIPT)
    assert reply.status_code == 200, reply.text
    assert receipt_of(reply)["model"] == "demo/old-2"
