"""POST /embeddings: vectors in input order, billed on input alone."""

import base64
import json
import struct
from decimal import Decimal
from typing import Any

import httpx
import pytest

from tests.support.node import Gateway


async def send(gateway: Gateway, **fields: Any) -> httpx.Response:
    body = {"model": "demo/embed", "input": ["first", "second"], **fields}
    return await gateway.client.post("/embeddings", json=body)


async def test_vectors_come_in_the_order_of_the_input(gateway: Gateway) -> None:
    both = (await send(gateway)).json()
    assert (both["object"], both["model"]) == ("list", "demo/embed")
    assert [entry["index"] for entry in both["data"]] == [0, 1]
    alone = (await send(gateway, input="second")).json()
    assert alone["data"][0]["embedding"] == both["data"][1]["embedding"]
    assert both["usage"].keys() == {"prompt_tokens", "total_tokens"}


async def test_base64_is_the_same_vector_as_little_endian_floats(gateway: Gateway) -> None:
    plain = (await send(gateway)).json()["data"][0]["embedding"]
    as_base64 = (await send(gateway, encoding_format="base64")).json()["data"][0]["embedding"]
    raw = base64.b64decode(as_base64)
    assert struct.unpack(f"<{len(raw) // 4}f", raw) == pytest.approx(plain)
    for call in gateway.vendor.calls.on("/v1/embeddings"):
        assert call.body
        assert call.body.get("encoding_format", "float") == "float"


async def test_dimensions_are_forwarded(gateway: Gateway) -> None:
    body = (await send(gateway, dimensions=8)).json()
    assert len(body["data"][0]["embedding"]) == 8


async def test_token_arrays_reach_a_vendor_that_takes_them(gateway: Gateway) -> None:
    body = (await send(gateway, input=[[1, 2, 3], [4]])).json()
    assert len(body["data"]) == 2
    assert body["usage"]["prompt_tokens"] == 4


async def test_input_tokens_alone_are_charged(gateway: Gateway) -> None:
    before = await gateway.balance()
    reply = await send(gateway, usage={"include": True})
    usage = json.loads(reply.text, parse_float=Decimal)["usage"]
    assert usage["cost"] == usage["prompt_tokens"] * Decimal("0.0000001")
    assert await gateway.balance() == before - usage["cost"]


@pytest.mark.parametrize(
    "given", ["", [], [""], None, 5, ["a"] * 2049, [[]], ["a", [1]], {"text": "a"}]
)
async def test_an_input_that_cannot_be_embedded_is_refused(gateway: Gateway, given: Any) -> None:
    reply = await send(gateway, input=given)
    assert reply.status_code == 400
    assert reply.json()["error"]["param"].startswith("input")
    assert gateway.vendor.calls.on("/v1/embeddings") == []


async def test_each_kind_of_model_has_its_endpoint(gateway: Gateway) -> None:
    chat_model = await send(gateway, model="demo/chat")
    assert (chat_model.status_code, chat_model.json()["error"]["code"]) == (400, "wrong_endpoint")
    embedding_model = await gateway.chat(model="demo/embed")
    assert embedding_model.status_code == 400
    assert embedding_model.json()["error"]["code"] == "wrong_endpoint"
