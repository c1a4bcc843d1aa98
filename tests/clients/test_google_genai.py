"""Google's own Python SDK at a running gateway: tool loops with thinking, whole and streamed, at every format."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from google import genai
from google.genai import errors, types
from msgspec.structs import replace

from gwd.demo import Behaviour, PlannedCall
from tests.support.node import PRICES, Gateway, open_gateway, with_catalog

GEMINI, EMBED = "demo/gemini", "demo/vectors"
OPEN = "demo/open"  # shows its reasoning, unsigned
MODELS = (OPEN, "demo/claude", "demo/claude-next", "demo/responses", GEMINI)
PARAMETERS: Any = {
    "type": "OBJECT",
    "properties": {"city": {"type": "STRING"}, "days": {"type": "INTEGER", "nullable": True}},
    "required": ["city"],
    "property_ordering": ["city", "days"],
}
WEATHER: Any = {"name": "get_weather", "description": "The weather.", "parameters": PARAMETERS}
CHAT_WEATHER: Any = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": ["integer", "null"]}},
            "required": ["city"],
        },
    },
}
OSLO = PlannedCall(name="get_weather", arguments='{"city":"Oslo"}')
ROME = PlannedCall(name="get_weather", arguments='{"city":"Rome","days":2}')
COUNTED = Behaviour(prompt_tokens=100, cached_tokens=40, completion_tokens=50, reasoning_tokens=30)
TOOL_TURN = replace(COUNTED, reasoning="A look would help.", calls=(OSLO, ROME))
ANSWER = replace(COUNTED, text="3 degrees in Oslo, 20 in Rome.")


async def with_gemini(gateway: Gateway) -> None:
    await with_catalog(gateway)
    await gateway.add_provider("google", "gemini", f"{gateway.vendor.gemini_url}/")
    await gateway.add_model(GEMINI, pricing=PRICES)
    flags = {"thinking_form": "adaptive"}
    await gateway.add_endpoint(GEMINI, "google", "gemini-demo", flags=flags)
    await gateway.add_model(OPEN, pricing=PRICES)
    await gateway.add_endpoint(OPEN, "openai-chat", "open-demo", max_completion_tokens=16_384)
    await gateway.add_model(EMBED, pricing={"prompt": "0.0000001"}, embeddings=True)
    await gateway.add_endpoint(EMBED, "google", "gemini-embed-demo")


@pytest_asyncio.fixture
async def gateway(tmp_path: Path) -> Any:
    async with open_gateway(tmp_path, begin=with_gemini) as made:
        yield made


@pytest_asyncio.fixture
async def client(gateway: Gateway) -> Any:
    """The client as its page says: the address without a version, which the SDK adds itself."""
    options = types.HttpOptions(base_url=gateway.base_url.removesuffix("/v1"))
    with genai.Client(api_key=gateway.key, http_options=options) as made:
        async with made.aio as client:
            yield client


async def told(client: Any, *, stream: bool, **asked: Any) -> tuple[list[Any], Any]:
    """The contents of an answer as the SDK keeps them for its history, and its last chunk."""
    if not stream:
        whole = await client.models.generate_content(**asked)
        return [whole.candidates[0].content], whole
    contents = []
    async for chunk in await client.models.generate_content_stream(**asked):
        if chunk.candidates and chunk.candidates[0].content:
            contents.append(chunk.candidates[0].content)
    return contents, chunk


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("model", MODELS)
async def test_a_tool_loop_with_thinking_keeps_everything_and_costs_what_it_costs_by_chat(
    gateway: Gateway, client: Any, model: str, stream: bool
):
    """Each turn is also asked by chat completions: the bill is the same to the nano."""
    config = types.GenerateContentConfig(
        system_instruction="Be brief.",
        tools=[types.Tool(function_declarations=[WEATHER])],
        thinking_config=types.ThinkingConfig(include_thoughts=True, thinking_budget=2048),
        max_output_tokens=8000,
    )
    gateway.vendor.script.next(TOOL_TURN)
    before = await gateway.balance()
    question = types.Content(role="user", parts=[types.Part(text="Weather in Oslo and Rome?")])
    said, last = await told(client, stream=stream, model=model, contents=[question], config=config)
    parts = [part for content in said for part in content.parts]
    calls = [part.function_call for part in parts if part.function_call]
    assert "".join(part.text or "" for part in parts if part.thought) == "A look would help."
    assert [(call.name, call.args) for call in calls] == [
        ("get_weather", {"city": "Oslo"}),
        ("get_weather", {"city": "Rome", "days": 2}),
    ]
    assert len({call.id for call in calls}) == 2
    assert last.candidates[0].finish_reason == types.FinishReason.STOP
    used = last.usage_metadata
    assert (used.prompt_token_count, used.cached_content_token_count) == (100, 40)
    assert (used.candidates_token_count or 0) + (used.thoughts_token_count or 0) == 50
    results: list[Any] = [
        types.Part.from_function_response(name=call.name, response={"result": degrees})
        for call, degrees in zip(calls, ("3", "20"), strict=True)
    ]
    for result, call in zip(results, calls, strict=True):
        assert result.function_response is not None
        result.function_response.id = call.id
    gateway.vendor.script.next(ANSWER)
    answer = types.Content(role="user", parts=[*reversed(results)])
    contents = [question, *said, answer]
    said, _ = await told(client, stream=stream, model=model, contents=contents, config=config)
    text = "".join(p.text or "" for content in said for p in content.parts if not p.thought)
    assert text == "3 degrees in Oslo, 20 in Rome."
    await gateway.at_rest()
    by_gemini = before - await gateway.balance()
    assert by_gemini == await _by_chat(gateway, model, stream=stream)
    assert by_gemini > 0


async def _by_chat(gateway: Gateway, model: str, *, stream: bool) -> Decimal:
    """What the same conversation costs by chat completions."""
    before = await gateway.balance()
    gateway.vendor.script.next(TOOL_TURN, ANSWER)
    body = {
        "model": model,
        "tools": [CHAT_WEATHER],
        "reasoning": {"max_tokens": 2048},
        "max_tokens": 8000,
        "stream": stream,
    }
    messages: list[Any] = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Weather in Oslo and Rome?"},
    ]
    for _ in range(2):
        reply = await gateway.client.post("/chat/completions", json={**body, "messages": messages})
        assert reply.status_code == 200, reply.text
    await gateway.at_rest()
    return before - await gateway.balance()


async def test_a_function_of_python_is_called_by_the_sdk_itself(gateway: Gateway, client: Any):
    def get_weather(city: str) -> str:
        """The weather in a city."""
        return f"3 degrees in {city}"

    gateway.vendor.script.next(Behaviour(calls=(OSLO,)), ANSWER)
    config = types.GenerateContentConfig(tools=[get_weather])
    answer = await client.models.generate_content(model=GEMINI, contents="Weather?", config=config)
    assert answer.text == "3 degrees in Oslo, 20 in Rome."
    result = (gateway.vendor.calls[1].body or {})["contents"][2]["parts"][0]["functionResponse"]
    assert result["response"] == {"result": "3 degrees in Oslo"}


async def test_a_chat_of_the_sdk_goes_on_from_its_own_stream(gateway: Gateway, client: Any):
    """The SDK keeps every chunk as a content of its own, and drops a turn with a chunk that it finds empty."""
    gateway.vendor.script.next(Behaviour(text="Good morning."), Behaviour(text="Again."))
    chat = client.chats.create(model="demo/chat")
    async for _ in await chat.send_message_stream("Hello"):
        pass
    assert len(chat.get_history(curated=True)) > 1
    await chat.send_message("Again?")
    sent = (gateway.vendor.calls[1].body or {})["messages"]
    assert [(each["role"], each["content"]) for each in sent] == [
        ("user", "Hello"),
        ("assistant", "Good morning."),
        ("user", "Again?"),
    ]


async def test_thoughts_are_shown_only_to_who_asks_for_them(gateway: Gateway, client: Any):
    gateway.vendor.script.next(replace(ANSWER, reasoning="Hm."))
    answer = await client.models.generate_content(model="demo/chat", contents="Hello")
    assert [part.thought for part in answer.candidates[0].content.parts] == [None]


async def test_an_answer_in_a_form_is_read_by_the_sdk(gateway: Gateway, client: Any):
    class City(msgspec.Struct):
        name: str

    gateway.vendor.script.next(Behaviour(text='{"name": "Oslo"}'))
    config = types.GenerateContentConfig(
        response_mime_type="application/json",
        response_schema={"type": "OBJECT", "properties": {"name": {"type": "STRING"}}},
    )
    answer = await client.models.generate_content(
        model="demo/responses", contents="A city?", config=config
    )
    assert msgspec.json.decode(answer.text, type=City) == City("Oslo")
    form = (gateway.vendor.calls[0].body or {})["text"]["format"]
    assert form["schema"] == {"type": "object", "properties": {"name": {"type": "string"}}}


async def test_tokens_are_counted_and_texts_embedded(gateway: Gateway, client: Any):
    counted = await client.models.count_tokens(model="demo/chat", contents="Hello there")
    assert counted.total_tokens > 0
    config = types.EmbedContentConfig(task_type="RETRIEVAL_QUERY", output_dimensionality=8)
    for model in (EMBED, "demo/embed"):
        found = await client.models.embed_content(
            model=model, contents=["green tea", "black tea"], config=config
        )
        assert [len(each.values) for each in found.embeddings] == [8, 8]
        assert found.embeddings[0].values != found.embeddings[1].values
    own, foreign = (call.body or {} for call in gateway.vendor.calls)
    assert own["requests"][1]["taskType"] == "RETRIEVAL_QUERY"
    assert "taskType" not in foreign


async def test_models_are_listed_in_pages_and_shown(gateway: Gateway, client: Any):
    pager = await client.models.list(config={"page_size": 2})
    names = [model.name async for model in pager]
    assert names[:2] == sorted(names)[:2]
    assert {f"models/{name}" for name in (*MODELS, EMBED)} <= set(names)
    found = await client.models.get(model=GEMINI)
    assert (found.name, found.input_token_limit) == (f"models/{GEMINI}", 200_000)
    assert "generateContent" in found.supported_actions


async def test_errors_are_the_sdks_own(gateway: Gateway, client: Any):
    with pytest.raises(errors.ClientError) as caught:
        await client.models.generate_content(model="demo/none", contents="Hello")
    assert (caught.value.code, caught.value.status) == (404, "NOT_FOUND")
    gateway.vendor.script.next(replace(COUNTED, text="Once", finish="none"))
    with pytest.raises(errors.ServerError) as broken:
        async for _ in await client.models.generate_content_stream(model=GEMINI, contents="Hello"):
            pass
    assert (broken.value.code, broken.value.status) == (502, "UNAVAILABLE")
