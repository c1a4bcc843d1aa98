"""GET /credits/ledger: every movement of a request is a line, and the lines add up."""

import base64
import json
from decimal import Decimal
from typing import Any

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from tests.support.node import Gateway


async def entries(gateway: Gateway, **query: str) -> list[dict[str, Any]]:
    reply = await gateway.operator.get("/credits/ledger", params=query)
    found: list[dict[str, Any]] = json.loads(reply.text, parse_float=Decimal)["data"]
    return found


async def test_a_served_request_is_held_settled_and_charged(gateway: Gateway) -> None:
    reply = await gateway.chat(usage={"include": True})
    cost = json.loads(reply.text, parse_float=Decimal)["usage"]["cost"]
    generation_id = reply.headers["x-gw-generation-id"]
    lines = await entries(gateway, generation_id=generation_id)
    assert {line["generation_id"] for line in lines} == {generation_id}
    kinds = {line["type"] for line in lines}
    assert {"reservation", "settlement", "charge"} <= kinds
    assert sum(line["amount"] for line in lines if line["type"] == "charge") == -cost


async def test_a_failed_request_is_held_and_released(gateway: Gateway) -> None:
    gateway.vendor.script.always("status=500")
    reply = await gateway.chat()
    assert reply.status_code == 502
    lines = await entries(gateway, generation_id=reply.headers["x-gw-generation-id"])
    assert {line["type"] for line in lines} == {"reservation", "release"}
    assert sum(line["amount"] for line in lines) == 0


async def test_a_refused_request_moves_nothing(gateway: Gateway) -> None:
    before = await entries(gateway)
    assert (await gateway.chat(model="demo/none")).status_code == 404
    assert await entries(gateway) == before


async def test_lines_are_found_by_type_and_time_and_the_books_verify(gateway: Gateway) -> None:
    await gateway.chat()
    (purchase,) = await entries(gateway, type="purchase")
    assert purchase["amount"] == 10
    later = "2999-01-01T00:00:00Z"
    assert await entries(gateway, **{"from": later}) == []
    assert len(await entries(gateway, to=later)) > 1
    verified = (await gateway.manage("POST", "/ledger/verify", {}))["data"]
    assert verified["ok"] is True
    assert verified["differences"] == []


async def test_a_head_that_was_kept_is_part_of_the_later_history(gateway: Gateway) -> None:
    kept = (await gateway.manage("GET", "/ledger/head"))["data"]
    (books,) = kept["books"]
    assert books["organization_id"] == await gateway.organization_id()
    of_node = (await gateway.manage("GET", "/ledger/head?all=true"))["data"]
    assert [each["organization_id"] for each in of_node["books"]][-1] is None
    assert of_node["public_key"] == kept["public_key"]
    signed = msgspec.json.encode({**kept, "signature": ""})
    key = Ed25519PublicKey.from_public_bytes(base64.b64decode(kept["public_key"]))
    key.verify(base64.b64decode(kept["signature"]), signed)  # raises if it is not so
    await gateway.chat()
    for head, asked in ((kept, {}), (of_node, {"all": True}), (of_node, {})):
        body = {"head": head, **asked}
        assert (await gateway.manage("POST", "/ledger/verify", body))["data"]["ok"] is True


async def test_what_is_no_head_of_this_node_is_refused_by_name(gateway: Gateway) -> None:
    kept = (await gateway.manage("GET", "/ledger/head"))["data"]
    books = [{**kept["books"][0], "entries": 77}]
    for head in (
        {**kept, "books": books},
        {**kept, "taken_at": "2020-01-01T00:00:00Z"},
        {**kept, "signature": "AAAA"},
        {**kept, "signature": "no base64"},
        {**kept, "public_key": kept["signature"]},
        {**kept, "format": "gwd-head-9"},
        {**kept, "more": 1},
        {"books": 5},
        {},
    ):
        refused = await gateway.manage("POST", "/ledger/verify", {"head": head}, status=400)
        assert refused["error"]["param"] == "head", head


async def test_an_inference_key_does_not_read_the_books(gateway: Gateway) -> None:
    reply = await gateway.client.get("/credits/ledger")
    assert (reply.status_code, reply.json()["error"]["code"]) == (403, "wrong_key_type")
