"""/operator and the test of a provider: what the node says of itself."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from gwd.api import doctor
from gwd.demo import Behaviour
from tests.support.node import PRICES, Gateway


async def status(gateway: Gateway) -> Any:
    return (await gateway.manage("GET", "/operator/status"))["data"]


async def test_status_counts_what_was_served_failed_and_refused(gateway: Gateway) -> None:
    before = await status(gateway)
    assert before["requests"]["last_hour"] == 0
    assert before["requests"]["p50_ttft_ms"] is None
    for _ in range(3):
        assert (await gateway.chat()).status_code == 200
    assert (await gateway.chat(model="no/such")).status_code == 404
    gateway.vendor.script.next(Behaviour(status=400, message="no"))
    assert (await gateway.chat()).status_code == 400
    await gateway.at_rest()
    after = await status(gateway)
    traffic = after["requests"]
    assert (traffic["last_hour"], traffic["errors"], traffic["refusals"]) == (4, 1, 1)
    assert traffic["error_rate"] == 0.25
    assert traffic["p50_ttft_ms"] >= 0
    assert traffic["in_flight"] == 0
    assert after["uptime_s"] >= 0
    assert after["version"]
    spent = after["credits"]["total_usage"]
    assert spent > 0
    assert after["spent_today"] == spent
    assert after["holds"] == {"amount": 0, "requests": 0}
    minute = after["last_minute"]
    assert (minute["requests"], minute["errors"], minute["refusals"]) == (4, 1, 1)
    assert minute["charged"] == spent
    assert minute["tokens_prompt"] > 0
    assert minute["tokens_completion"] > 0
    vitals = after["vitals"]
    assert (vitals["writer_queue"], vitals["open_holds"], traffic["streams"]) == (0, 0, 0)
    assert vitals["disk_free_bytes"] > 0
    assert vitals["connections"] >= 1


async def test_status_tells_streams_from_other_requests(gateway: Gateway) -> None:
    gateway.vendor.script.next(Behaviour(stall_after=2), Behaviour(delay_s=30))
    body = {"model": "demo/chat", "messages": [{"role": "user", "content": "a"}], "stream": True}
    async with gateway.client.stream("POST", "/chat/completions", json=body) as reply:
        await anext(reply.aiter_bytes())
        whole = asyncio.ensure_future(gateway.chat())
        async with asyncio.timeout(20):
            while (found := (await status(gateway))["requests"])["in_flight"] < 2:
                await asyncio.sleep(0.02)
        assert (found["in_flight"], found["streams"]) == (2, 1)
        assert (await status(gateway))["vitals"]["open_holds"] >= 1
        whole.cancel()
    await gateway.at_rest()


async def test_status_names_each_endpoint_and_why_it_is_not_used(gateway: Gateway) -> None:
    found = {each["model"]: each for each in (await status(gateway))["endpoints"]}
    assert {each["status"] for each in found.values()} == {"healthy"}
    gateway.vendor.script.next(Behaviour(status=429, retry_after="40"))
    assert (await gateway.chat()).status_code == 429
    await gateway.manage(
        "PATCH", f"/catalog/endpoints/{found['demo/chat-b']['id']}", {"disabled": True}
    )
    (key,) = (await gateway.manage("GET", "/catalog/credentials?provider=openai-embeddings"))[
        "data"
    ]
    await gateway.manage("PATCH", f"/catalog/credentials/{key['id']}", {"disabled": True})
    after = await status(gateway)
    reported = {each["model"]: (each["status"], each["reason"]) for each in after["endpoints"]}
    assert reported["demo/chat"] == ("cooling_down", "rate_limited")
    assert reported["demo/chat-b"][0] == "disabled"
    assert reported["demo/embed"][0] == "no_credential"
    assert reported["demo/claude"] == ("healthy", None)
    assert (after["endpoints_healthy"], after["endpoints_cooling"]) == (3, 1)
    cooling = next(each for each in after["endpoints"] if each["model"] == "demo/chat")
    assert cooling["cooldown_until"].endswith("Z")
    assert (cooling["attempts"], cooling["failures"]) == (1, 1)


async def test_a_provider_is_tested_with_one_cheap_call_that_costs_nothing(
    gateway: Gateway,
) -> None:
    for adapter in ("openai-chat", "anthropic-messages", "openai-responses", "openai-embeddings"):
        calls = len(gateway.vendor.calls)
        done = (await gateway.manage("POST", f"/catalog/providers/{adapter}/test"))["data"]
        assert (done["ok"], done["provider"]) == (True, adapter)
        assert len(gateway.vendor.calls) == calls + 1
    assert gateway.vendor.calls[0].model in ("gpt-demo", "gpt-demo-mini")
    assert (await status(gateway))["credits"]["total_usage"] == 0


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        (Behaviour(status=401), "auth_invalid"),
        (Behaviour(status=500), "upstream_error"),
        (Behaviour(malformed="html"), "upstream_error"),
        (Behaviour(cut="reset", cut_after=-1), "network"),
    ],
)
async def test_a_provider_that_does_not_answer_says_why_and_stays_in_use(
    gateway: Gateway, behaviour: Behaviour, reason: str
) -> None:
    gateway.vendor.script.next(behaviour)
    reply = await gateway.operator.post("/catalog/providers/openai-chat/test")
    error = reply.json()["error"]
    assert (reply.status_code, error["code"]) == (502, "upstream_error")
    assert error["metadata"]["reason"] == reason
    assert "sk-demo-0000" not in reply.text
    assert (await gateway.chat()).status_code == 200


async def test_a_provider_without_endpoint_or_key_says_what_is_missing(gateway: Gateway) -> None:
    await gateway.manage(
        "POST",
        "/catalog/providers",
        {"slug": "bare", "name": "Bare", "adapter": "openai_chat", "base_url": gateway.vendor.url},
    )
    reply = await gateway.operator.post("/catalog/providers/bare/test")
    assert (reply.status_code, "endpoint" in reply.json()["error"]["message"]) == (409, True)
    await gateway.add_endpoint("demo/chat", "bare", "gpt-demo")
    reply = await gateway.operator.post("/catalog/providers/bare/test")
    assert (reply.status_code, "credential" in reply.json()["error"]["message"]) == (409, True)
    assert (await gateway.operator.post("/catalog/providers/none/test")).status_code == 404


async def test_reload_reads_key_files_again_and_unparks_keys(
    gateway: Gateway, tmp_path: Path
) -> None:
    """A vendor key that a file holds is replaced by writing the file and reloading."""
    secret = tmp_path / "vendor.key"
    base_url = gateway.vendor.openai_url
    provider = {"slug": "filed", "name": "F", "adapter": "openai_chat", "base_url": base_url}
    await gateway.manage("POST", "/catalog/providers", provider)
    reference = {"provider": "filed", "key_ref": f"file:{secret}"}
    await gateway.manage("POST", "/catalog/credentials", reference)
    await gateway.add_model("demo/filed", pricing=PRICES)
    await gateway.add_endpoint("demo/filed", "filed", "gpt-demo")
    reported = (await gateway.manage("POST", "/operator/reload"))["data"]
    assert [problem["provider"] for problem in reported["problems"]] == ["filed"]
    assert (await gateway.chat(model="demo/filed")).status_code == 503
    secret.write_text("sk-first-0000\n")
    assert (await gateway.manage("POST", "/operator/reload"))["data"]["problems"] == []
    assert (await gateway.chat(model="demo/filed")).status_code == 200
    assert gateway.vendor.calls.last.headers["authorization"] == "Bearer sk-first-0000"
    gateway.vendor.script.next(Behaviour(status=401))
    assert (await gateway.chat(model="demo/filed")).status_code == 502
    assert (await gateway.chat(model="demo/filed")).status_code == 503  # parked
    secret.write_text("sk-second-0000")
    await gateway.manage("POST", "/operator/reload")
    assert (await gateway.chat(model="demo/filed")).status_code == 200
    assert gateway.vendor.calls.last.headers["authorization"] == "Bearer sk-second-0000"


async def checks(gateway: Gateway) -> dict[str, Any]:
    found = (await gateway.manage("GET", "/operator/doctor"))["data"]
    assert found["ok"] == all(check["state"] != "failed" for check in found["checks"])
    return {check["name"]: check for check in found["checks"]}


async def test_doctor_finds_a_fresh_node_well(gateway: Gateway) -> None:
    found = await checks(gateway)
    assert {name for name, check in found.items() if check["state"] != "ok"} <= {
        "mail",
        "disk space",
        "backups",  # none without a directory
        "disk speed",
    }
    assert found["certificate"]["message"] == "none: the node speaks plain HTTP"
    assert found["time"]["message"] == "no vendor has said its time since the start"


async def test_doctor_names_what_keeps_requests_from_being_served(gateway: Gateway) -> None:
    (key,) = (await gateway.manage("GET", "/catalog/credentials?provider=openai-chat"))["data"]
    await gateway.manage("PATCH", f"/catalog/credentials/{key['id']}", {"disabled": True})
    await gateway.manage("POST", "/organizations", {"name": "Silent"})
    found = await checks(gateway)
    assert found["credentials"]["state"] == "failed"
    assert "openai-chat" in found["credentials"]["message"]
    assert found["owner e-mail"]["state"] == "warning"
    assert "Silent" in found["owner e-mail"]["message"]
    assert found["self service"]["state"] == "warning"
    for check in found.values():
        assert (check["state"] == "ok") == (check["do"] == "")


async def test_doctor_sees_a_key_ring_that_others_can_read_or_that_is_gone(
    gateway: Gateway,
) -> None:
    path = gateway.running.settings.keyring
    path.chmod(0o644)
    assert (await checks(gateway))["key ring"]["do"] == f"chmod 600 {path}"
    path.chmod(0o600)
    path.rename(path.with_suffix(".away"))
    try:
        assert (await checks(gateway))["key ring"]["state"] == "failed"
    finally:
        path.with_suffix(".away").rename(path)


def test_an_old_sqlite_and_a_full_disk_are_failures(tmp_path: Path) -> None:
    assert doctor.sqlite_version("3.51.2").state == "failed"
    assert doctor.sqlite_version("3.51.3").state == "ok"
    assert doctor.disk_space(tmp_path, 10 * doctor.GIB).state == "ok"
    assert doctor.disk_space(tmp_path, doctor.GIB).state == "warning"
    assert doctor.disk_space(tmp_path, 1000).state == "failed"
    assert doctor.ledger("the ledger does not add up").state == "failed"
