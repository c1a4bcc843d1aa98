"""GET /generation: what became of one request, by the id of any dialect."""

import pytest

from tests.support.node import Gateway

FIELDS = {
    *("id", "model", "provider_name", "status", "streamed", "finish_reason", "tokens_prompt"),
    *("tokens_completion", "native_tokens_cached", "native_tokens_reasoning", "total_cost"),
    *("latency", "generation_time", "created_at"),
}


@pytest.mark.parametrize("streamed", [False, True])
async def test_the_record_says_what_the_reply_said(gateway: Gateway, *, streamed: bool) -> None:
    reply = await gateway.chat(stream=streamed, usage={"include": True})
    record = await gateway.generation(reply)
    assert record.keys() >= FIELDS
    assert (record["status"], record["streamed"]) == ("succeeded", streamed)
    assert (record["model"], record["finish_reason"]) == ("demo/chat", "stop")
    assert record["provider_name"] == "openai-chat"
    if not streamed:
        usage = reply.json()["usage"]
        assert record["tokens_prompt"] == usage["prompt_tokens"]
        assert record["tokens_completion"] == usage["completion_tokens"]
        assert record["total_cost"] == usage["cost"]


@pytest.mark.parametrize(
    ("path", "body", "prefix"),
    [
        ("/messages", {"messages": [{"role": "user", "content": "x"}], "max_tokens": 20}, "msg_"),
        ("/responses", {"input": "x"}, "resp_"),
        ("/completions", {"prompt": "x"}, "gen-"),
    ],
)
async def test_the_id_in_the_body_finds_the_record(
    gateway: Gateway, path: str, body: dict[str, object], prefix: str
) -> None:
    reply = await gateway.client.post(path, json={"model": "demo/chat", **body})
    shown = reply.json()["id"]
    assert shown.startswith(prefix)
    await gateway.generation(reply)
    data = (await gateway.client.get("/generation", params={"id": shown})).json()["data"]
    assert data["id"] == reply.headers["x-gw-generation-id"]


async def test_a_failure_is_on_record_and_free(gateway: Gateway) -> None:
    gateway.vendor.script.always("status=500")
    record = await gateway.generation(await gateway.chat())
    assert (record["status"], record["total_cost"]) == ("failed", 0)
    assert record["error"]["status"] == 502


async def test_tags_of_the_request_are_kept(gateway: Gateway) -> None:
    headers = {
        "x-gw-session-id": "chat-7",
        "x-gw-user-id": "ann",
        "http-referer": "https://app.example",
    }
    record = await gateway.generation(await gateway.chat(headers=headers))
    assert (record["session_id"], record["external_user"]) == ("chat-7", "ann")
    assert record["http_referer"] == "https://app.example"


async def test_what_is_not_there_or_not_named_is_refused(gateway: Gateway) -> None:
    missing = await gateway.client.get("/generation")
    assert (missing.status_code, missing.json()["error"]["param"]) == (400, "id")
    unknown = await gateway.client.get("/generation", params={"id": "gen-nothing"})
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "generation_not_found")
