"""Refusals before a request is planned: answered with all headers, recorded once, and cheap to repeat."""

import gzip
from typing import Any

import pytest
import pytest_asyncio

from tests.support.node import Gateway, open_gateway

pytestmark = pytest.mark.asyncio(loop_scope="module")

LIMIT = 10_000
RATE_HEADERS = ("x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset")
PATHS = (
    *("/chat/completions", "/messages", "/responses", "/completions", "/embeddings"),
    "/models/demo/chat:generateContent",
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One node that takes only small bodies."""
    settings = {"GWD_LIMITS_REQUEST_BODY_MAX_BYTES": str(LIMIT)}
    async with open_gateway(tmp_path_factory.mktemp("door"), environment=settings) as made:
        yield made


async def recorded(gateway: Gateway, key_id: str) -> dict[str, int]:
    """Code → how often it was recorded; and how many records there are."""
    gateway.running.node.refusals.flush()
    await gateway.store.write(lambda connection: None)

    def look(connection: Any) -> dict[str, int]:
        rows = connection.rows(
            "SELECT error_code, SUM(occurrences), COUNT(*) FROM generation WHERE key_id = ? GROUP BY error_code",
            (key_id,),
        )
        found = {code: times for code, times, _ in rows}
        return found | {"records": sum(count for _, _, count in rows)}

    found: dict[str, int] = await gateway.store.read(look)
    return found


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("size", [LIMIT + 500, LIMIT + 50_000], ids=["by us", "by the framework"])
async def test_a_body_too_large_is_refused_alike_compressed_and_plain(
    gateway: Gateway, path: str, size: int
) -> None:
    body = b'{"model": "demo/chat", "x": "' + b"a" * size + b'"}'
    plain = await gateway.client.post(path, content=body)
    compressed = await gateway.client.post(
        path, content=gzip.compress(body), headers={"content-encoding": "gzip"}
    )
    for reply in (plain, compressed):
        assert reply.status_code == 413, reply.text
        assert str(LIMIT) in reply.json()["error"]["message"]
        for name in ("x-gw-generation-id", *RATE_HEADERS):
            assert name in reply.headers
        record = await gateway.generation(reply)
        assert (record["status"], record["error"]["code"]) == ("refused", "request_too_large")
    assert plain.json()["error"] == compressed.json()["error"]
    left = [int(reply.headers["x-ratelimit-remaining"]) for reply in (plain, compressed)]
    assert left[0] == left[1] + 1


async def test_who_sends_too_much_is_asked_for_a_key_first(gateway: Gateway) -> None:
    body = b"a" * (LIMIT + 50_000)
    for key, status in (("gwi_" + "0" * 49, 401), (gateway.management_key, 403)):
        reply = await gateway.client.post(
            "/messages", content=body, headers={"authorization": f"Bearer {key}"}
        )
        assert reply.status_code == status
        assert reply.json()["type"] == "error"
    elsewhere = await gateway.client.post("/keys", content=body)
    assert elsewhere.status_code == 413
    assert "x-gw-generation-id" not in elsewhere.headers


@pytest.mark.parametrize("path", PATHS)
async def test_a_key_that_may_not_act_costs_few_records_and_has_a_minute_too(
    gateway: Gateway, path: str
) -> None:
    key, key_id = await gateway.new_key(rate_limit_per_minute=5)
    await gateway.manage("PATCH", f"/keys/{key_id}", {"disabled": True})
    dead = {"authorization": f"Bearer {key}"}
    replies = [await gateway.client.post(path, json={}, headers=dead) for _ in range(25)]
    assert [reply.status_code for reply in replies] == [401] * 5 + [429] * 20
    for name in ("x-gw-generation-id", *RATE_HEADERS):
        assert all(name in reply.headers for reply in replies)
    found = await recorded(gateway, key_id)
    assert (found["key_disabled"], found["rate_limit_exceeded"]) == (5, 20)
    assert found["records"] <= 6  # one a second and code


async def test_a_management_key_that_keeps_trying_costs_few_records(gateway: Gateway) -> None:
    made = await gateway.manage("POST", "/keys", {"name": "m", "type": "management"})
    wrong = {"authorization": f"Bearer {made['key']}"}
    for _ in range(25):
        assert (await gateway.chat(headers=wrong)).status_code == 403
    found = await recorded(gateway, made["data"]["id"])
    assert found["wrong_key_type"] == 25
    assert found["records"] <= 3


async def test_an_old_key_that_is_hammered_starves_no_successor(gateway: Gateway) -> None:
    old, old_id = await gateway.new_key(rate_limit_per_minute=5)
    new = (await gateway.manage("POST", f"/keys/{old_id}/rotate", {"overlap": "1h"}))["key"]
    await gateway.manage("PATCH", f"/keys/{old_id}", {"disabled": True})
    for _ in range(8):
        await gateway.chat(headers={"authorization": f"Bearer {old}"})
    served = await gateway.chat(headers={"authorization": f"Bearer {new}"})
    assert served.status_code == 200


PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="


async def test_a_picture_for_a_model_that_reads_only_text_is_a_400_in_plain_words(
    gateway: Gateway,
) -> None:
    """In every dialect: agents show a 400 to their user, and take a 404 for a missing model."""
    await gateway.manage("PATCH", "/catalog/models/demo/chat", {"input_modalities": ["text"]})
    url = f"data:image/png;base64,{PNG}"
    chat = {"type": "image_url", "image_url": {"url": url}}
    block = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": PNG},
    }
    item = {"type": "input_image", "image_url": url}
    file = {
        "type": "file",
        "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PNG}"},
    }
    bodies: list[tuple[str, dict[str, Any], str]] = [
        ("/chat/completions", {"messages": [{"role": "user", "content": [chat]}]}, "picture"),
        ("/chat/completions", {"messages": [{"role": "user", "content": [file]}]}, "file"),
        (
            "/messages",
            {"max_tokens": 9, "messages": [{"role": "user", "content": [block]}]},
            "picture",
        ),
        ("/responses", {"input": [{"role": "user", "content": [item]}]}, "picture"),
    ]
    for path, body, what in bodies:
        reply = await gateway.client.post(path, json={"model": "demo/chat", **body})
        assert reply.status_code == 400, reply.text
        error = reply.json()["error"]
        assert error.get("code", "unsupported_content") == "unsupported_content"
        assert "`demo/chat`" in error["message"]
        assert what in error["message"]
    both = {"models": ["demo/chat", "demo/chat-b"], **bodies[0][1]}
    reply = await gateway.client.post("/chat/completions", json=both)
    assert reply.headers["x-gw-model"] == "demo/chat-b"
    seeing = {"input_modalities": ["text", "image", "file"]}
    await gateway.manage("PATCH", "/catalog/models/demo/chat", seeing)
