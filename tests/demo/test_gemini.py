"""Gemini's format of the simulated vendor: answers, faults, and what the real one refuses."""

from typing import Any

import httpx
import msgspec
import pytest

from gwd.demo import Behaviour, PlannedCall, SimulatedVendor
from gwd.demo.signatures import sign
from tests.demo.requests import WEATHER_SCHEMA, events

MODEL = "/v1beta/models/gemini-demo"
KEY = {"x-goog-api-key": "k"}
USER = {"role": "user", "parts": [{"text": "Tell me about green tea."}]}
CALL = {"functionCall": {"name": "get_weather", "args": {"city": "Oslo"}}}
SIGNED = {**CALL, "thoughtSignature": sign("anything")}
RESULT = {"functionResponse": {"name": "get_weather", "response": {"output": "18 degrees"}}}
DECLARED = {"name": "get_weather", "parametersJsonSchema": WEATHER_SCHEMA}
TOOLS = [{"functionDeclarations": [DECLARED]}]
THOUGHTS = {"thinkingConfig": {"thinkingLevel": "LOW", "includeThoughts": True}}


def said(*turns: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"contents": list(turns or (USER,)), **fields}


def model(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": "model", "parts": list(parts)}


def user(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "parts": list(parts)}


def config(**fields: Any) -> dict[str, Any]:
    return said(generationConfig=fields)


async def whole(http: httpx.AsyncClient, body: Any, path: str = MODEL) -> httpx.Response:
    return await http.post(f"{path}:generateContent", json=body, headers=KEY)


async def stream(http: httpx.AsyncClient, body: Any) -> list[Any]:
    path = f"{MODEL}:streamGenerateContent?alt=sse"
    return [data for _, data in events((await http.post(path, json=body, headers=KEY)).content)]


def text_of(chunks: list[Any], *, thought: bool = False) -> str:
    return "".join(
        part.get("text", "")
        for chunk in chunks
        for part in chunk["candidates"][0]["content"].get("parts", [])
        if part.get("thought", False) == thought
    )


async def test_whole_and_stream_say_the_same_and_count_it(http: httpx.AsyncClient):
    body = said(generationConfig=THOUGHTS)
    answer, chunks = (await whole(http, body)).json(), await stream(http, body)
    ended = chunks[-1]
    assert text_of([answer]) == text_of(chunks)
    assert text_of([answer], thought=True) == text_of(chunks, thought=True) != ""
    assert answer["usageMetadata"] == ended["usageMetadata"]
    usage = ended["usageMetadata"]
    pieces = [chunk["candidates"][0]["content"]["parts"][0] for chunk in chunks[:-1]]
    assert usage["thoughtsTokenCount"] == sum("thought" in piece for piece in pieces) == 12
    assert usage["candidatesTokenCount"] == sum("thought" not in piece for piece in pieces)
    assert [chunk["candidates"][0].get("finishReason") for chunk in chunks[-2:]] == [None, "STOP"]
    assert ended["candidates"][0]["content"]["parts"][0]["text"] == ""  # it carries the signature


async def test_a_call_is_signed_and_its_result_quoted(http: httpx.AsyncClient):
    body = said(user({"text": "Use get_weather for both Oslo and Rome"}), tools=TOOLS)
    for made in ((await whole(http, body)).json(), *await stream(http, body)):
        parts = made["candidates"][0]["content"].get("parts", [])
        assert all(part["functionCall"]["args"]["days"] >= 2 for part in parts)
    first, second = (await whole(http, body)).json()["candidates"][0]["content"]["parts"]
    assert "thoughtSignature" in first
    assert "thoughtSignature" not in second
    turns = [*body["contents"], model(first, second), user(RESULT, RESULT)]
    answer = await whole(http, said(*turns, tools=TOOLS))
    assert "18 degrees" in text_of([answer.json()])


async def test_faults_are_played_in_geminis_words(http: httpx.AsyncClient, vendor: SimulatedVendor):
    vendor.script.next("status=503", "status=429 message=slow", "overloaded_first")
    found = [(await whole(http, said())).json()["error"] for _ in range(3)]
    assert [(one["code"], one["status"]) for one in found] == [
        (503, "UNAVAILABLE"),
        (429, "RESOURCE_EXHAUSTED"),
        (503, "UNAVAILABLE"),
    ]
    vendor.script.next("error=overloaded error_after=2", "no_finish", "finish=length", "empty")
    assert [*await stream(http, said())][-1]["error"]["code"] == 503
    assert "finishReason" not in (await stream(http, said()))[-1]["candidates"][0]
    assert (await stream(http, said()))[-1]["candidates"][0]["finishReason"] == "MAX_TOKENS"
    assert text_of(await stream(http, said())) == ""
    vendor.script.next("zero_usage", "no_usage", "usage=wrong_total", "usage=twice")
    assert set((await whole(http, said())).json()["usageMetadata"].values()) == {0}
    assert "usageMetadata" not in (await whole(http, said())).json()
    assert (await whole(http, said())).json()["usageMetadata"]["totalTokenCount"] > 1000
    assert [("finishReason" in c["candidates"][0]) for c in (await stream(http, said()))[-2:]] == [
        True,
        True,
    ]
    vendor.script.next(Behaviour(calls=(PlannedCall(name="f", arguments='{"a":'),)))
    parts = (await whole(http, said())).json()["candidates"][0]["content"]["parts"]
    assert parts[0]["functionCall"] == {"name": "f", "args": {}}
    named = "/v1beta/models/gemini-demo%23status=500"
    assert (await whole(http, said(), path=named)).status_code == 500


async def test_credentials_methods_and_models(vendor: SimulatedVendor, http: httpx.AsyncClient):
    for path, headers, status in (
        (f"{MODEL}:generateContent", {}, 403),
        (f"{MODEL}:countTokens", KEY, 404),
        (MODEL, KEY, 404),
        ("/v1beta/models/nobody:generateContent", KEY, 404),
        ("/v1beta/models/embed-demo:generateContent", KEY, 404),
        ("/v1beta/models/gemini-demo:batchEmbedContents", KEY, 404),
    ):
        answer = await http.post(path, json=said(), headers=headers)
        assert (answer.status_code, answer.json()["error"]["code"]) == (status, status), path
    async with SimulatedVendor(keys=["right"]) as locked:
        answer = await http.post(f"{locked.url}{MODEL}:generateContent", json=said(), headers=KEY)
        assert "API key not valid" in answer.json()["error"]["message"]


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no contents": ({}, "contents is not specified"),
    "unknown field": (said(temperature=1), 'Unknown name "temperature"'),
    "snake case": (said(generation_config={}), 'Unknown name "generation_config"'),
    "unknown config": (config(max_tokens=5), 'Unknown name "max_tokens"'),
    "cap of zero": (config(maxOutputTokens=0), "must be positive"),
    "seed too long": (config(seed=2**40), "TYPE_INT32"),
    "temperature": (config(temperature=3), "temperature must be in the range"),
    "six stops": (config(stopSequences=list("abcdef")), "at most 5"),
    "empty stop": (config(stopSequences=[""]), "must not be empty"),
    "schema without its type": (config(responseJsonSchema={"type": "object"}), "mime_type"),
    "level and budget": (
        config(thinkingConfig={"thinkingLevel": "LOW", "thinkingBudget": 5}),
        "only one of",
    ),
    "unknown level": (config(thinkingConfig={"thinkingLevel": "MAX"}), "thinking_level"),
    "budget": (config(thinkingConfig={"thinkingBudget": 40_000}), "budget 40000 is invalid"),
    "role": (said({"role": "assistant", "parts": [{"text": "x"}]}), "valid role"),
    "no parts": (said(user()), "parts must not be empty"),
    "empty text": (said(user({"text": ""})), "must have a text parameter"),
    "two kinds in one part": (said(user({"text": "x", **CALL})), "required oneof field"),
    "call by the user": (said(user(CALL)), "no place in a turn of the role user"),
    "image without a type": (said(user({"inlineData": {"data": "AA=="}})), "mime_type"),
    "image that is no base64": (
        said(user({"inlineData": {"data": "?", "mimeType": "image/png"}})),
        "TYPE_BYTES",
    ),
    "call without result": (said(USER, model(SIGNED), USER), "number of function response parts"),
    "call at the end": (said(USER, model(SIGNED)), "number of function response parts"),
    "result without call": (said(USER, user(RESULT)), "number of function response parts"),
    "no signature": (said(USER, model(CALL), user(RESULT)), "missing a thought_signature"),
    "foreign signature": (
        said(USER, model({**CALL, "thoughtSignature": "c2lnMQ=="}), user(RESULT)),
        "Corrupted thought signature",
    ),
    "declared twice": (
        said(tools=[{"functionDeclarations": [DECLARED, DECLARED]}]),
        "Duplicate function declaration",
    ),
    "name with a blank": (
        said(tools=[{"functionDeclarations": [{"name": "get weather"}]}]),
        "Invalid function name",
    ),
    "schema that is none": (
        said(
            tools=[{"functionDeclarations": [{"name": "f", "parametersJsonSchema": {"type": 1}}]}]
        ),
        "1 is not a type",
    ),
    "mode": (said(toolConfig={"functionCallingConfig": {"mode": "any"}}), ".mode'"),
    "undeclared name": (
        said(
            tools=TOOLS,
            toolConfig={"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]}},
        ),
        "nobody declared: f",
    ),
}
ACCEPTED: dict[str, dict[str, Any]] = {
    "signed": said(USER, model(SIGNED), user(RESULT), tools=TOOLS),
    "the word for a missing signature": said(
        USER,
        model({**CALL, "thoughtSignature": "skip_thought_signature_validator"}),
        user(RESULT),
    ),
    "unsigned in a closed turn": said(USER, model(CALL), user(RESULT), model({"text": "x"}), USER),
    "signature on an empty text": said(
        USER, model({"text": "x"}, {"text": "", "thoughtSignature": sign("x")}), USER
    ),
    "system and schema": said(
        systemInstruction={"parts": [{"text": "Be brief."}]},
        generationConfig={
            "responseMimeType": "application/json",
            "responseJsonSchema": WEATHER_SCHEMA,
        },
    ),
}


async def test_what_is_refused_and_what_is_taken(http: httpx.AsyncClient):
    wrong = []
    for name, (body, words) in REFUSED.items():
        answer = await whole(http, body)
        if answer.status_code != 400 or words not in answer.json()["error"]["message"]:
            wrong.append((name, answer.text))
    for name, body in ACCEPTED.items():
        answer = await whole(http, body)
        if answer.status_code != 200:
            wrong.append((name, answer.text))
    assert not wrong


async def test_embeddings_refused(http: httpx.AsyncClient):
    path, name = "/v1beta/models/gemini-embed-demo:batchEmbedContents", "models/gemini-embed-demo"
    one = {"model": name, "content": {"parts": [{"text": "tea"}]}}
    for requests, words in (
        ([], "requests is not specified"),
        ([one] * 101, "at most 100"),
        ([{**one, "model": "models/other"}], "must be the model of the path"),
        ([{**one, "content": {"parts": [{"text": ""}]}}], "content is empty"),
        ([{**one, "outputDimensionality": 4000}], "must be in 1..768"),
    ):
        answer = await http.post(path, json={"requests": requests}, headers=KEY)
        assert words in answer.json()["error"]["message"]
    answer = await http.post(path, json={"requests": [one, one]}, headers=KEY)
    first, second = (len(made["values"]) for made in answer.json()["embeddings"])
    assert (first, second) == (768, 768)


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses", "/v1/messages"])
async def test_without_checks_what_can_be_read_is_answered_and_the_rest_refused(path: str):
    async with SimulatedVendor() as vendor, httpx.AsyncClient(verify=False) as http:
        http.headers.update({"authorization": "Bearer k", **KEY})
        readable = {
            "model": "claude-demo" if "messages" in path else "gpt-demo",
            "input" if "responses" in path else "messages": [{"role": "user", "content": "Hi"}],
            "an_unknown_field": True,
        }
        assert (await http.post(vendor.url + path, json=readable)).status_code == 200
        answers = [
            await http.post(vendor.url + path, json={"model": readable["model"], "tools": [{}]}),
            await http.post(vendor.url + f"{MODEL}:generateContent", json={"contents": [7]}),
            await http.post(vendor.url + f"{MODEL}:generateContent", content=b"{"),
        ]
        assert [answer.status_code for answer in answers] == [400, 200, 400]
        assert msgspec.json.decode(answers[0].content)["error"]["message"]
