"""Failover before the first output, what the receipt says of it, and the statuses when everything failed."""

from typing import Any

import pytest

from gwd.demo import Behaviour
from tests.flows.clock import MovableClock
from tests.flows.conftest import ORDER, A, B, Opened, add_backup
from tests.flows.frames import error_of, frames_of, receipt_of, text_of
from tests.support.node import Gateway

ASK_RECEIPT = {"x-gw-metadata": "enabled"}
FOR_A_DAY = Behaviour(status=429, retry_after="86400")
THROTTLED = Behaviour(status=429, retry_after="17")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (Behaviour(status=500), "upstream_error"),
        (Behaviour(status=429, retry_after="3"), "rate_limited"),
        (Behaviour(status=529), "overloaded"),
        (Behaviour(status=401), "auth_invalid"),
        (Behaviour(status=404), "model_access_denied"),
        (Behaviour(status=429, code="insufficient_quota"), "quota_exhausted"),
        (Behaviour(cut="close", cut_after=-1), "network"),
        (Behaviour(error="server_error", error_after=0), "upstream_error"),
        (Behaviour(malformed="html"), "upstream_error"),
        (Behaviour(malformed="empty_body"), "upstream_error"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_next_endpoint_serves_and_the_receipt_says_why(
    two: Gateway, fault: Behaviour, reason: str, stream: bool
) -> None:
    two.vendor.script.next(fault, model=A)
    before = await two.balance()
    reply = await two.chat(
        stream=stream, headers=ASK_RECEIPT, provider=ORDER, usage={"include": True}
    )
    assert reply.status_code == 200
    receipt = receipt_of(reply)
    routing = receipt["routing"]
    assert (routing["attempt"], routing["attempts"]) == (2, 2)
    assert routing["fallback_model"] is False
    [fallback] = routing["fallbacks"]
    assert fallback["vendor"] == "Demo"
    assert fallback["provider"].startswith("openai-chat")
    assert (fallback["outcome"], fallback["reason"]) == ("retryable_error", reason)
    assert isinstance(fallback["duration_ms"], int)
    assert receipt["timing_ms"]["fallback"] == fallback["duration_ms"]
    record = await two.generation(reply)
    assert (record["status"], record["attempts"]) == ("succeeded", 2)
    assert record["provider_name"].startswith("backup")
    assert float(before - await two.balance()) == pytest.approx(receipt["cost"]["total"], abs=0)
    assert [call.model for call in two.vendor.calls] == [A, B]


async def test_client_of_a_failed_first_frame_sees_one_clean_stream(two: Gateway) -> None:
    """A status line of 200 proves nothing."""
    two.vendor.script.next("error_first comments", model=A)
    reply = await two.chat(stream=True, provider=ORDER)
    frames = frames_of(reply.text)
    assert [f for f in frames if "error" in f] == []
    assert [f["choices"][0]["delta"].get("role") for f in frames if f["choices"]].count(
        "assistant"
    ) == 1
    assert text_of(frames)


async def test_fallback_model_serves_when_the_first_has_no_endpoint_left(gateway: Gateway) -> None:
    gateway.vendor.script.next(Behaviour(status=503), model=A)
    reply = await gateway.chat(models=["demo/chat-b"], headers=ASK_RECEIPT)
    assert reply.status_code == 200
    assert reply.headers["x-gw-model"] == "demo/chat-b"
    receipt = receipt_of(reply)
    assert receipt["requested_model"] == "demo/chat"
    assert receipt["model"] == "demo/chat-b"
    assert receipt["routing"]["fallback_model"] is True


BOTH_FAIL: list[tuple[str, Any, Any, int, str, int | None]] = [
    ("throttled", THROTTLED, Behaviour(status=429, retry_after="9"), 429, "endpoints_throttled", 9),
    ("no hints", Behaviour(status=429), Behaviour(status=429), 429, "endpoints_throttled", 1),
    ("a day", FOR_A_DAY, FOR_A_DAY, 429, "endpoints_throttled", 60),
    ("throttled, overloaded", THROTTLED, "overloaded", 503, "upstream_unavailable", 17),
    ("overloaded", "overloaded", Behaviour(status=503), 503, "upstream_unavailable", None),
    ("network", "cut_before_headers", "reset_before_headers", 503, "upstream_unavailable", None),
    ("throttled, broken", THROTTLED, "server_error", 502, "upstream_error", None),
    ("network, broken", "cut_before_headers", "server_error", 502, "upstream_error", None),
    ("our accounts", Behaviour(status=401), Behaviour(status=402), 502, "upstream_error", None),
    ("throttled, account", THROTTLED, "quota", 502, "upstream_error", None),
]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("case", BOTH_FAIL, ids=[case[0] for case in BOTH_FAIL])
async def test_status_when_every_attempt_failed(two: Gateway, case: Any, stream: bool) -> None:
    _, first, second, status, code, retry_after = case
    two.vendor.script.next(first, model=A)
    two.vendor.script.next(second, model=B)
    before = await two.balance()
    reply = await two.chat(stream=stream, headers=ASK_RECEIPT, provider=ORDER)
    assert reply.status_code == status
    error = error_of(reply)
    assert error["code"] == code
    assert reply.headers.get("retry-after") == (None if retry_after is None else str(retry_after))
    previous = error["metadata"]["previous_errors"]
    assert [p["provider"].split("/")[0] for p in previous] == ["openai-chat", "backup"]
    routing = receipt_of(reply)["routing"]
    assert (routing["attempt"], routing["attempts"]) == (None, 2)
    assert [f["reason"] for f in routing["fallbacks"]] == [p["code"] for p in previous]
    assert receipt_of(reply)["cost"]["total"] == 0
    for name in ("x-gw-generation-id", "x-gw-provider", "x-gw-model", "x-ratelimit-limit"):
        assert name in reply.headers
    assert await two.balance() == before
    record = await two.generation(reply)
    assert (record["status"], record["total_cost"]) == ("failed", 0)
    assert record["error"]["code"] == code


async def test_receipt_is_not_on_an_error_that_nobody_asked_it_for(gateway: Gateway) -> None:
    gateway.vendor.script.next("server_error")
    assert "gateway_metadata" not in error_of(await gateway.chat())["metadata"]


async def test_our_vendor_accounts_are_not_described_to_the_client(two: Gateway) -> None:
    text = "Incorrect API key provided: sk-demo-0000"
    for model in (A, B):
        two.vendor.script.next(Behaviour(status=401, message=text), model=model)
    reply = await two.chat(provider=ORDER)
    assert reply.status_code == 502
    assert "Incorrect" not in reply.text
    assert "sk-demo" not in reply.text


@pytest.mark.parametrize("status", [400, 413, 422])
async def test_bad_request_is_tried_once_and_keeps_the_vendors_words(
    two: Gateway, status: int
) -> None:
    two.vendor.script.next(
        Behaviour(status=status, message="Unknown word: fnord", code="odd_word"), model=A
    )
    reply = await two.chat(provider=ORDER)
    assert reply.status_code == status
    error = error_of(reply)
    assert "fnord" in error["message"]
    assert error["metadata"]["provider_code"] == "odd_word"
    assert len(two.vendor.calls) == 1


async def test_too_long_a_prompt_is_tried_again_only_where_the_context_is_larger(
    gateway: Gateway,
) -> None:
    await add_backup(gateway)
    await gateway.add_provider("large", "openai_chat", gateway.vendor.openai_url)
    await gateway.add_endpoint("demo/chat", "large", "gpt-demo", context_length=400_000)
    too_long = Behaviour(status=400, code="context_length_exceeded", message="too long")
    gateway.vendor.script.next(too_long, too_long, model=A)
    reply = await gateway.chat(provider={"order": ["openai-chat", "backup", "large"]})
    assert reply.status_code == 400
    assert error_of(reply)["code"] == "context_length_exceeded"
    keys = [call.headers["authorization"] for call in gateway.vendor.calls]
    assert len(keys) == 2
    assert "Bearer sk-backup-1" not in keys


async def test_refused_content_goes_to_the_next_model_not_to_the_next_endpoint(
    two: Gateway,
) -> None:
    blocked = Behaviour(status=400, code="content_policy_violation", message="blocked")
    two.vendor.script.next(blocked, model=A)
    reply = await two.chat(provider=ORDER, models=["demo/claude"])
    assert reply.status_code == 200
    assert reply.headers["x-gw-model"] == "demo/claude"
    assert two.vendor.calls.of(B) == []


async def test_vendors_529_is_passed_on_only_to_a_client_without_fallbacks(
    gateway: Gateway,
) -> None:
    gateway.vendor.script.next("overloaded")
    alone = await gateway.chat(provider={"allow_fallbacks": False}, headers=ASK_RECEIPT)
    assert (alone.status_code, error_of(alone)["code"]) == (529, "overloaded")
    assert receipt_of(alone)["routing"]["attempts"] == 1
    gateway.vendor.script.next("overloaded")
    usual = await gateway.chat()
    assert (usual.status_code, error_of(usual)["code"]) == (503, "upstream_unavailable")


async def test_without_fallbacks_only_the_first_candidate_is_tried(two: Gateway) -> None:
    two.vendor.script.always("server_error")
    reply = await two.chat(provider={"allow_fallbacks": False})
    assert reply.status_code == 502
    assert len(two.vendor.calls) == 1


async def test_at_most_six_attempts_are_made(gateway: Gateway) -> None:
    for number in range(7):
        await gateway.add_provider(f"p{number}", "openai_chat", gateway.vendor.openai_url)
        await gateway.add_endpoint("demo/chat", f"p{number}", A)
    gateway.vendor.script.always("server_error")
    reply = await gateway.chat(headers=ASK_RECEIPT)
    assert reply.status_code == 502
    assert len(gateway.vendor.calls) == 6
    assert receipt_of(reply)["routing"]["attempts"] == 6


# What is closed. (What only rests: test_rests.py.)


async def test_throttled_endpoint_is_left_alone_for_the_time_it_asked_for(
    opened: Opened, clock: MovableClock
) -> None:
    async with opened(clock) as gateway:
        gateway.vendor.script.next(THROTTLED, model=A)
        first = await gateway.chat()
        assert (first.status_code, first.headers["retry-after"]) == (429, "17")
        clock.pass_by(10)
        second = await gateway.chat()
        assert (second.status_code, error_of(second)["code"]) == (429, "endpoints_throttled")
        assert second.headers["retry-after"] == "7"
        assert error_of(second)["metadata"]["retry_after"] == 7
        assert (await gateway.generation(second))["status"] == "refused"
        assert len(gateway.vendor.calls) == 1
        clock.pass_by(8)
        assert (await gateway.chat()).status_code == 200


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (Behaviour(status=429, retry_after="86400"), "endpoints_throttled"),
        (Behaviour(status=429, retry_after="Fri, 31 Dec 2055 00:00:00 GMT"), "endpoints_throttled"),
    ],
)
async def test_retry_after_of_a_day_benches_an_endpoint_for_five_minutes(
    opened: Opened, clock: MovableClock, fault: Behaviour, code: str
) -> None:
    """One absurd hint must not take an endpoint out for a day; the client is told when it is tried again."""
    async with opened(clock) as gateway:
        gateway.vendor.script.next(fault)
        first = await gateway.chat()
        assert first.headers["retry-after"] == "60"
        assert error_of(first)["metadata"]["retry_after"] == 300
        clock.pass_by(299)
        assert error_of(await gateway.chat())["code"] == code
        clock.pass_by(2)
        assert (await gateway.chat()).status_code == 200


async def test_a_504_with_an_absurd_hint_does_not_bench_at_all(gateway: Gateway) -> None:
    gateway.vendor.script.next(Behaviour(status=504, retry_after="86400"))
    assert (await gateway.chat()).status_code == 502
    assert (await gateway.chat()).status_code == 200


async def test_refused_vendor_key_stays_parked_until_somebody_edits_it(
    opened: Opened, clock: MovableClock
) -> None:
    async with opened(clock) as gateway:
        gateway.vendor.script.next(Behaviour(status=401))
        await gateway.chat()
        clock.pass_by(40 * 86_400)
        assert error_of(await gateway.chat())["code"] == "no_available_endpoint"
        await gateway.manage(
            "POST", "/catalog/credentials", {"provider": "openai-chat", "key": "sk-new-1"}
        )
        assert (await gateway.chat()).status_code == 200


async def test_a_parked_key_waits_for_its_own_edit_and_nobody_is_told_a_time(
    gateway: Gateway,
) -> None:
    gateway.vendor.script.next(Behaviour(status=401))
    await gateway.chat()
    await gateway.manage("PATCH", "/catalog/models/demo/embed", {"name": "Renamed"})
    refused = await gateway.chat()
    assert error_of(refused)["code"] == "no_available_endpoint"
    assert "retry-after" not in refused.headers
    keys = (await gateway.manage("GET", "/catalog/credentials"))["data"]
    [parked] = [key["id"] for key in keys if key["provider"] == "openai-chat"]
    await gateway.manage("PATCH", f"/catalog/credentials/{parked}", {"name": "looked after"})
    assert (await gateway.chat()).status_code == 200


@pytest.mark.parametrize("status", [429, 401], ids=["throttled", "refused"])
async def test_the_receipt_is_there_also_when_nothing_could_be_tried(
    gateway: Gateway, status: int
) -> None:
    gateway.vendor.script.next(Behaviour(status=status, retry_after="17"))
    await gateway.chat()
    refused = await gateway.chat(headers=ASK_RECEIPT)
    assert refused.status_code == (429 if status == 429 else 503)
    receipt = error_of(refused)["metadata"]["gateway_metadata"]
    assert receipt["model"] == "demo/chat"
    assert receipt["routing"] | {"strategy": "", "sort": None} == {
        "strategy": "",
        "sort": None,
        "eligible_endpoints": 0,
        "attempt": None,
        "attempts": 0,
        "fallback_model": False,
        "fallbacks": [],
    }
    assert receipt["cost"]["total"] == 0
    timing = receipt["timing_ms"]
    assert [type(timing[name]) for name in ("ttft", "generation")] == [int, int]
    assert "gateway_metadata" not in (error_of(await gateway.chat())["metadata"] or {})


async def test_an_order_of_who_does_not_serve_is_a_mistake_not_an_outage(two: Gateway) -> None:
    elsewhere = {"order": ["anthropic-messages"], "allow_fallbacks": False}
    refused = await two.chat(provider=elsewhere)
    assert (refused.status_code, error_of(refused)["code"]) == (404, "no_eligible_endpoints")
    assert error_of(refused)["metadata"]["excluded_by"] == ["allowed_providers"]
    assert error_of(refused)["metadata"]["chosen_by"] == {"allowed_providers": ["request"]}
    assert (await two.chat(provider={"order": ["anthropic-messages"]})).status_code == 200


@pytest.mark.parametrize(
    ("model", "models", "unknown"),
    [
        ("demo/chat", ["demo/claude:odd"], ["demo/claude:odd"]),
        ("demo/claude:odd", ["demo/chat"], ["demo/claude:odd"]),
        (
            None,
            ["demo/claude:odd", "demo/chat:free", "demo/chat"],
            ["demo/claude:odd", "demo/chat:free"],
        ),
    ],
    ids=["behind", "in front", "models alone"],
)
async def test_suffixes_that_nobody_knows_are_passed_over(
    gateway: Gateway, model: str | None, models: list[str], unknown: list[str]
) -> None:
    body = {"models": models, "messages": [{"role": "user", "content": "hi"}]}
    if model is not None:
        body["model"] = model
    reply = await gateway.client.post("/chat/completions", json=body, headers=ASK_RECEIPT)
    assert reply.status_code == 200, reply.text
    routing = receipt_of(reply)["routing"]
    assert [f["model"] for f in routing["fallbacks"]] == unknown
    assert {f["outcome"] for f in routing["fallbacks"]} == {"fatal_error"}
    assert routing["fallback_model"] is (model != "demo/chat")
    assert (routing["attempt"], routing["attempts"]) == (1, 1)


async def test_a_family_without_an_active_member_is_passed_over(gateway: Gateway) -> None:
    past = {"deprecated_at": "2026-01-01T00:00:00Z", "retired_at": "2026-01-02T00:00:00Z"}
    retired = {"family": "old", "successor": "demo/chat", **past}
    await gateway.manage("PATCH", "/catalog/models/demo/chat-b", retired)
    reply = await gateway.chat(models=["~demo/old-latest"], headers=ASK_RECEIPT)
    routing = receipt_of(reply)["routing"]
    assert [f["model"] for f in routing["fallbacks"]] == ["~demo/old-latest"]
    refused = await gateway.chat(model="~demo/old-latest")
    assert (refused.status_code, error_of(refused)["code"]) == (404, "model_not_found")


async def test_names_that_are_no_models_are_refused_with_the_nearest(gateway: Gateway) -> None:
    refused = await gateway.chat(model="demo/none", models=["demo/chat"])
    assert (refused.status_code, error_of(refused)["code"]) == (404, "model_not_found")
    assert error_of(refused)["metadata"]["requested_model"] == "demo/none"
    refused = await gateway.chat(models=["demo/claudia"])
    assert (refused.status_code, error_of(refused)["code"]) == (400, "invalid_value")
    assert error_of(refused)["param"] == "models"
    assert "demo/claude" in error_of(refused)["metadata"]["suggestions"]
    assert gateway.vendor.calls == []
