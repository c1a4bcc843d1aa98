"""Google's dialect over HTTP: addresses, names, credentials, both forms of a stream, refusals, what is recorded."""

import base64
import os
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
import pytest_asyncio

from gwd.demo import Behaviour, PlannedCall
from tests.support.node import PRICES, Gateway, open_gateway, with_catalog
from tests.unit.dialects.test_gemini import FULL, REPLAY, replace_somewhere

BASES = ("/v1beta", "/api/v1beta", "/v1", "/api/v1")
GEMINI = "demo/gemini"
FUZZED = int(os.environ.get("GEMINI_BODIES", "150"))
CONTENTS: list[Any] = [{"role": "user", "parts": [{"text": "Hello"}]}]
HELLO = {"contents": CONTENTS}
CODE = {"executableCode": {"language": "PYTHON", "code": "1"}}
CALL = {"functionCall": {"name": "look", "args": {"at": "it"}}}
RESULT = {"functionResponse": {"name": "look", "response": {"output": "a cat"}}}
LOOK: dict[str, Any] = {"functionDeclarations": [{"name": "look"}]}


async def with_gemini(gateway: Gateway) -> None:
    await with_catalog(gateway)
    await gateway.add_provider("google", "gemini", f"{gateway.vendor.gemini_url}/")
    await gateway.add_model(GEMINI, pricing=PRICES)
    await gateway.add_endpoint(GEMINI, "google", "gemini-demo", flags={"thinking_form": "adaptive"})


@pytest_asyncio.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Gateway]:
    async with open_gateway(tmp_path, begin=with_gemini) as made:
        yield made


async def ask(
    gateway: Gateway,
    body: Any = HELLO,
    *,
    model: str = "demo/chat",
    method: str = "generateContent",
    **more: Any,
) -> httpx.Response:
    address = gateway.base_url.removesuffix("/api/v1")
    url = f"{address}/v1beta/models/{model}:{method}"
    return await gateway.client.post(url, json=body, **more)


def error(reply: httpx.Response) -> dict[str, Any]:
    found: dict[str, Any] = reply.json()["error"]
    assert found["code"] == reply.status_code
    return found


def fields(reply: httpx.Response) -> list[str]:
    """The fields that an error names."""
    return [
        violation["field"]
        for detail in error(reply)["details"]
        for violation in detail.get("fieldViolations", ())
    ]


async def test_every_base_takes_names_with_a_slash_with_the_collection_and_encoded(
    gateway: Gateway,
):
    address = gateway.base_url.removesuffix("/api/v1")
    names = (
        "demo/chat",
        "models/demo/chat",
        "demo%2Fchat",
        "models%2Fdemo%2Fchat",
        "demo/chat:floor",
    )
    for base in BASES:
        for name in names:
            url = f"{address}{base}/models/{name}:generateContent"
            reply = await gateway.client.post(url, json=HELLO)
            assert reply.status_code == 200, (url, reply.text)
            assert reply.json()["modelVersion"] == "demo/chat"
    encoded = await gateway.client.post(
        f"{address}/v1beta/models/demo%2Fchat%3AgenerateContent", json=HELLO
    )
    assert encoded.status_code == 200


async def test_a_key_is_taken_from_either_header_and_from_the_query_and_shown_nowhere(
    gateway: Gateway, caplog: pytest.LogCaptureFixture
):
    caplog.set_level("DEBUG")
    key = gateway.key
    del gateway.client.headers["authorization"]
    for headers, query in (
        ({"x-goog-api-key": key}, {}),
        ({"authorization": f"Bearer {key}"}, {}),
        ({}, {"key": key}),
        ({"x-goog-api-key": "AIzaSy-of-another"}, {"key": key}),
        ({"authorization": "Bearer ya29.of-another", "x-goog-api-key": key}, {}),
    ):
        reply = await ask(gateway, headers=headers, params=query)
        assert reply.status_code == 200, (headers, query, reply.text)
    wrong = await ask(gateway, params={"key": key[:-1] + "x"})
    broken = await ask(gateway, {"contents": [3]}, params={"key": key})
    assert (wrong.status_code, error(wrong)["status"]) == (401, "UNAUTHENTICATED")
    assert (broken.status_code, fields(broken)) == (400, ["contents[0]"])
    assert key[:-1] not in wrong.text + broken.text
    logged = [
        each.getMessage()
        for each in caplog.records
        if not each.name.startswith(("httpx", "httpcore"))  # the test's own client
    ]
    assert logged
    assert not [each for each in logged if key[:-1] in each]
    twice = await ask(
        gateway, headers={"x-goog-api-key": key, "x-api-key": (await gateway.new_key())[0]}
    )
    assert twice.status_code == 401
    assert (await ask(gateway)).status_code == 401


async def test_a_stream_is_events_or_one_array(gateway: Gateway):
    gateway.vendor.script.next(Behaviour(text="Good morning."), Behaviour(text="Good morning."))
    events = await ask(gateway, method="streamGenerateContent", params={"alt": "sse"})
    array = await ask(gateway, method="streamGenerateContent")
    assert events.headers["content-type"].startswith("text/event-stream")
    assert array.headers["content-type"] == "application/json"
    streamed = [
        msgspec.json.decode(line.removeprefix("data: "))
        for line in events.text.splitlines()
        if line.startswith("data: ")
    ]
    listed = array.json()
    for chunks in (streamed, listed):
        parts = [chunk["candidates"][0]["content"]["parts"] for chunk in chunks]
        assert "".join(part["text"] for [part] in parts) == "Good morning."
        assert chunks[-1]["candidates"][0]["finishReason"] == "STOP"
        assert [("usageMetadata" in chunk) for chunk in chunks].count(True) == 1
    unknown = await ask(gateway, method="streamGenerateContent", params={"alt": "proto"})
    assert (unknown.status_code, unknown.json()[0]["error"]["code"]) == (400, 400)


async def test_a_stream_that_breaks_off_ends_in_an_error_in_both_forms(gateway: Gateway):
    broken = Behaviour(text="Once upon a time", finish="none")
    gateway.vendor.script.next(broken, broken)
    events = await ask(gateway, model=GEMINI, method="streamGenerateContent", params={"alt": "sse"})
    array = await ask(gateway, model=GEMINI, method="streamGenerateContent")
    last = msgspec.json.decode(events.text.strip().splitlines()[-1].removeprefix("data: "))
    assert last["error"]["status"] == array.json()[-1]["error"]["status"] == "UNAVAILABLE"
    assert "finishReason" not in events.text + array.text


@pytest.mark.parametrize(
    ("body", "at"),
    [
        ({**HELLO, "cachedContent": "cachedContents/1"}, "cachedContent"),
        ({**HELLO, "generationConfig": {"candidateCount": 2}}, "generationConfig.candidateCount"),
        (
            {**HELLO, "generation_config": {"response_modalities": ["AUDIO"]}},
            "generationConfig.responseModalities",
        ),
        ({**HELLO, "generationConfig": {"speechConfig": {}}}, "generationConfig.speechConfig"),
        (
            {"contents": [{"parts": [{"fileData": {"fileUri": "files/abc"}}]}]},
            "contents[0].parts[0].fileData.fileUri",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_what_cannot_be_is_refused_by_its_path(gateway: Gateway, body: Any, at: str):
    reply = await ask(gateway, body)
    assert (reply.status_code, error(reply)["status"]) == (400, "INVALID_ARGUMENT")
    assert error(reply)["details"][0]["reason"] == "unsupported_parameter"
    assert fields(reply) == [at]


@pytest.mark.parametrize(
    ("body", "at"),
    [
        ({}, "contents"),
        ({"contents": []}, "contents"),
        ({"contents": [{"role": "system", "parts": [{"text": "a"}]}]}, "contents[0].role"),
        ({"contents": [{"parts": [{}]}]}, "contents[0].parts[0]"),
        ({"contents": [{"parts": [CODE]}]}, "contents[0].parts[0].executableCode"),
        ({"contents": [{"role": "user", "parts": [CALL]}]}, "contents[0].parts[0].functionCall"),
        ({**HELLO, "systemInstruction": {"parts": [CALL]}}, "systemInstruction.parts[0]"),
        (
            {"contents": [{"parts": [{"inlineData": {"mimeType": "image/png", "data": "§"}}]}]},
            "contents[0].parts[0].inlineData.data",
        ),
        (
            {**HELLO, "tools": [LOOK], "toolConfig": {"functionCallingConfig": {"mode": "SOME"}}},
            "toolConfig.functionCallingConfig.mode",
        ),
        (
            {**HELLO, "generationConfig": {"responseSchema": {"type": "OBJECT"}}},
            "generationConfig.responseMimeType",
        ),
        ({**HELLO, "generationConfig": {"logprobs": 3}}, "generationConfig.logprobs"),
        ({**HELLO, "generationConfig": {"temperature": 3}}, "generationConfig.temperature"),
        ({**HELLO, "labels": {"a": 1}}, "labels[...]"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_what_is_wrong_is_named_by_its_path(gateway: Gateway, body: Any, at: str):
    reply = await ask(gateway, body)
    assert (reply.status_code, fields(reply)) == (400, [at]), reply.text


async def test_errors_of_the_gateway_have_googles_words(gateway: Gateway):
    missing = await ask(gateway, model="demo/none")
    assert (missing.status_code, error(missing)["status"]) == (404, "NOT_FOUND")
    method = await ask(gateway, method="predict")
    assert (method.status_code, error(method)["status"]) == (404, "NOT_FOUND")
    address = gateway.base_url.removesuffix("/api/v1")
    for path in ("/v1beta/files", "/api/v1beta/cachedContents", "/v1beta/models/a/b:predict"):
        reply = await gateway.client.post(f"{address}{path}", json={})
        assert (reply.status_code, error(reply)["status"]) == (404, "NOT_FOUND"), path
    wrong = await gateway.client.delete(f"{address}/v1beta/models/demo/chat")
    assert (wrong.status_code, error(wrong)["status"]) == (405, "UNIMPLEMENTED")
    assert set(wrong.headers["allow"].split(", ")) == {"GET", "HEAD", "OPTIONS", "POST"}
    read = await gateway.client.get(f"{address}/v1beta/models/demo/chat:generateContent")
    assert (read.status_code, error(read)["status"]) == (405, "UNIMPLEMENTED")
    gateway.vendor.script.next(Behaviour(status=429, retry_after="7"))
    slow = await ask(gateway)
    assert (slow.status_code, error(slow)["status"]) == (429, "RESOURCE_EXHAUSTED")
    assert {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7s"} in error(slow)[
        "details"
    ]


async def test_calls_and_results_without_ids_find_each_other(gateway: Gateway):
    body = {
        "contents": [
            *CONTENTS,
            {"role": "model", "parts": [CALL, CALL]},
            {"role": "function", "parts": [RESULT, RESULT]},
        ],
        "tools": [LOOK],
    }
    reply = await ask(gateway, body)
    assert reply.status_code == 200, reply.text
    sent = (gateway.vendor.calls[-1].body or {})["messages"]
    ids = [call["id"] for call in sent[1]["tool_calls"]]
    assert len(set(ids)) == 2
    assert [(each["tool_call_id"], each["content"]) for each in sent[2:]] == [
        (ids[0], "a cat"),
        (ids[1], "a cat"),
    ]


async def test_fields_that_only_google_knows_reach_it_and_are_recorded_elsewhere(gateway: Gateway):
    safety = [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}]
    body = {
        **HELLO,
        "safety_settings": safety,
        "generationConfig": {"mediaResolution": "MEDIA_RESOLUTION_LOW", "temperature": 1},
        "tools": [LOOK, {"googleSearch": {}}],
        "toolConfig": {"functionCallingConfig": {"mode": "VALIDATED"}},
    }
    own = await ask(gateway, body, model=GEMINI)
    foreign = await ask(gateway, body)
    to_google, _ = (call.body or {} for call in gateway.vendor.calls)
    assert to_google["safetySettings"] == safety
    assert to_google["generationConfig"] == {
        "mediaResolution": "MEDIA_RESOLUTION_LOW",
        "temperature": 1,
    }
    assert to_google["toolConfig"] == {"functionCallingConfig": {"mode": "VALIDATED"}}
    records = [await gateway.generation(reply) for reply in (own, foreign)]
    assert [record["dialect"] for record in records] == ["gemini", "gemini"]
    assert [record["dropped_tools"] for record in records] == [["google_search"]] * 2
    assert records[0]["dropped_parameters"] == ["web_search"]
    assert set(records[1]["dropped_parameters"]) >= {
        "safetySettings",
        "generationConfig.mediaResolution",
        "web_search",
    }
    strict = {**HELLO, "safetySettings": safety, "provider": {"require_parameters": True}}
    assert (await ask(gateway, strict, model=GEMINI)).status_code == 200
    refused = await ask(gateway, strict)
    assert refused.status_code == 404
    assert "safetySettings" in error(refused)["message"]


async def test_labels_are_tags(gateway: Gateway):
    labelled = await ask(
        gateway,
        {**HELLO, "labels": {"team": "search", "nightly": ""}},
        headers={"x-gw-tags": "header"},
    )
    by_header = await ask(gateway, headers={"x-gw-tags": "header"})
    records = [await gateway.generation(reply) for reply in (labelled, by_header)]
    assert [record["tags"] for record in records] == [["team=search", "nightly"], ["header"]]
    many = {**HELLO, "labels": {str(number): "x" for number in range(9)}}
    assert fields(await ask(gateway, many)) == ["labels"]


async def test_receipt_and_cost_are_there_for_who_asks(gateway: Gateway):
    told = await ask(
        gateway, {**HELLO, "usage": {"include": True}}, headers={"x-gw-metadata": "enabled"}
    )
    body = told.json()
    assert body["usageMetadata"]["cost"] == body["gateway_metadata"]["cost"]["total"] > 0
    assert body["responseId"] == body["gateway_metadata"]["generation_id"]
    assert body["responseId"] == told.headers["x-gw-generation-id"]
    plain = (await ask(gateway)).json()
    assert "gateway_metadata" not in plain
    assert "cost" not in plain["usageMetadata"]


async def test_a_prompt_that_google_blocks_has_no_candidate(gateway: Gateway):
    blocked = {
        "promptFeedback": {"blockReason": "PROHIBITED_CONTENT"},
        "usageMetadata": {"promptTokenCount": 5, "totalTokenCount": 5},
    }
    scripted = Behaviour(status=200, body=msgspec.json.encode(blocked).decode())
    gateway.vendor.script.next(scripted)
    reply = (await ask(gateway, model=GEMINI)).json()
    assert reply["promptFeedback"] == {"blockReason": "PROHIBITED_CONTENT"}
    assert "candidates" not in reply


async def test_the_list_of_models_is_googles_for_googles_clients_only(gateway: Gateway):
    address = gateway.base_url.removesuffix("/api/v1")
    for path in ("/v1beta/models", "/v1/models"):
        listed = (
            await gateway.client.get(
                f"{address}{path}", headers={"x-goog-api-key": gateway.key}, params={"pageSize": 2}
            )
        ).json()
        assert [set(each) >= {"name", "inputTokenLimit"} for each in listed["models"]] == [True] * 2
        assert listed["nextPageToken"] == "2"
    plain = (await gateway.client.get("/models")).json()
    assert plain["object"] == "list"
    wrong = await gateway.client.get(f"{address}/v1beta/models", params={"pageToken": "x"})
    assert (wrong.status_code, fields(wrong)) == (400, ["pageToken"])


async def test_a_model_of_another_format_is_told_a_picture_and_a_file(gateway: Gateway):
    png = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(32)).decode()
    pdf = base64.urlsafe_b64encode(b"%PDF-1.4 >>> ???").decode().rstrip("=")
    parts = [
        {"inline_data": {"mime_type": "image/png", "data": png}},
        {"inlineData": {"mimeType": "application/pdf", "data": pdf}},
        {"text": "What is this?"},
    ]
    reply = await ask(gateway, {"contents": {"role": "user", "parts": parts}}, model="demo/claude")
    assert reply.status_code == 200, reply.text
    content = (gateway.vendor.calls[-1].body or {})["messages"][0]["content"]
    assert [block["type"] for block in content] == ["image", "document", "text"]


async def test_a_question_about_a_request_names_its_model_in_the_body(gateway: Gateway):
    asked = {"dialect": "gemini", "request": {**HELLO, "model": "models/demo/chat"}}
    explained = (await gateway.client.post("/route/explain", json=asked)).json()["data"]
    assert (explained["dialect"], explained["serves"]) == ("gemini", "openai-chat")


async def test_counting_takes_contents_or_a_whole_request(gateway: Gateway):
    inner = {**HELLO, "systemInstruction": {"parts": [{"text": "Be very brief. " * 20}]}}
    counts = []
    for body in (HELLO, {"generateContentRequest": {"model": "models/demo/chat", **inner}}):
        reply = await ask(gateway, body, method="countTokens")
        counts.append(reply.json()["totalTokens"])
    assert 0 < counts[0] < counts[1]
    assert gateway.vendor.calls == []


async def test_a_call_and_its_arguments_come_as_an_object(gateway: Gateway):
    call = PlannedCall(name="look", arguments='{"at":"it"}')
    gateway.vendor.script.next(Behaviour(calls=(call,)))
    reply = (await ask(gateway, {**HELLO, "tools": LOOK})).json()
    [part] = reply["candidates"][0]["content"]["parts"]
    assert part["functionCall"]["args"] == {"at": "it"}
    assert part["functionCall"]["id"]


async def test_no_body_is_a_fault_of_the_gateway_and_none_leaves_a_hold(gateway: Gateway):
    """Real bodies with something else in one place of theirs; the fixture looks for open holds."""
    chance = random.Random(7)
    values: tuple[Any, ...] = (
        None,
        True,
        -1,
        1e300,
        "x",
        "",
        [],
        {},
        [[]],
        {"a": 1},
        "data:,",
        ["x", 2],
    )
    for _ in range(FUZZED):
        body = msgspec.json.decode(chance.choice((FULL, REPLAY)))
        del body["safetySettings" if "safetySettings" in body else "tools"]
        replace_somewhere(body, chance.choice(values), chance)
        model = chance.choice(("demo/chat", "demo/claude", "demo/responses", GEMINI))
        method = chance.choice(("generateContent", "streamGenerateContent", "countTokens"))
        reply = await ask(gateway, body, model=model, method=method)
        assert reply.status_code < 500, (model, body, reply.text)
