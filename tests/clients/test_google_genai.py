"""Google's own Python SDK at a running gateway: tool loops with thinking, whole and streamed, at every format."""

import pytest
from google import genai
from google.genai import types

from gwd.demo import Behaviour
from tests.support.node import PRICES, Gateway

GEMINI = "demo/gemini"
MODELS = ("demo/chat", "demo/claude", "demo/responses", GEMINI)


def sdk(gateway: Gateway) -> genai.Client:
    """The client as its page says: the address without a version, which the SDK adds itself."""
    options = types.HttpOptions(base_url=gateway.base_url.removesuffix("/v1"))
    return genai.Client(api_key=gateway.key, http_options=options)


@pytest.fixture(autouse=True)
async def gemini(gateway: Gateway) -> None:
    await gateway.add_provider("google", "gemini", f"{gateway.vendor.gemini_url}/")
    await gateway.add_model(GEMINI, pricing=PRICES)
    flags = {"thinking_form": "adaptive"}
    await gateway.add_endpoint(GEMINI, "google", "gemini-demo", flags=flags)


@pytest.mark.parametrize("model", MODELS)
async def test_a_question_is_answered_whole_and_streamed(gateway: Gateway, model: str):
    gateway.vendor.script.next(Behaviour(text="Good morning."), Behaviour(text="Good morning."))
    client = sdk(gateway).aio
    whole = await client.models.generate_content(model=model, contents="Hello")
    assert whole.text == "Good morning."
    assert whole.model_version == model
    said = ""
    async for chunk in await client.models.generate_content_stream(model=model, contents="Hello"):
        said += chunk.text or ""
    assert said == "Good morning."
    assert chunk.candidates is not None
    assert chunk.candidates[0].finish_reason == types.FinishReason.STOP
    assert chunk.usage_metadata is not None
