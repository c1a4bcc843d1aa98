"""GET /vendor-usage: what was sent to vendors by UTC day, as a vendor's bill is laid beside it."""

from decimal import Decimal
from typing import Any

import httpx
import pytest

from gwctl.jsontext import loads
from gwd.core.clock import US_PER_DAY, iso
from gwd.demo import Behaviour
from tests.api.office import Office
from tests.support.node import Gateway
from tests.support.own_keys import attach

TOKENS = ("tokens_input", "tokens_cache_read", "tokens_cache_write", "tokens_output")


def today(gateway: Gateway) -> dict[str, str]:
    day = gateway.running.node.clock.now_us() // US_PER_DAY
    return {"from": iso((day - 1) * US_PER_DAY), "to": iso((day + 2) * US_PER_DAY)}


async def rows(gateway: Gateway, **query: str) -> list[Any]:
    reply = await gateway.operator.get("/vendor-usage", params={**today(gateway), **query})
    assert reply.status_code == 200, reply.text
    found: list[Any] = loads(reply.text)["data"]["rows"]
    return found


async def test_a_day_s_requests_are_summed_by_endpoint_with_what_they_cost_at_list_price(
    gateway: Gateway,
) -> None:
    for prompt, cached in ((301, 100), (77, 0)):
        gateway.vendor.script.next(
            Behaviour(text="fine", prompt_tokens=prompt, cached_tokens=cached, completion_tokens=9)
        )
        assert (await gateway.chat(max_tokens=20)).status_code == 200
    assert (await gateway.chat(model="demo/claude", max_tokens=20)).status_code == 200
    await gateway.chat(model="demo/none")  # refused: nothing was sent
    await gateway.at_rest()
    chat, claude = sorted(await rows(gateway), key=lambda row: str(row["model"]))
    assert (chat["provider"], chat["upstream_model"]) == ("openai-chat", "gpt-demo")
    assert (claude["provider"], claude["upstream_model"]) == ("anthropic-messages", "claude-demo")
    assert (chat["requests"], chat["errors"], chat["insured"], chat["byok"]) == (2, 0, 0, False)
    assert [chat[name] for name in TOKENS] == [278, 100, 0, 18]
    cost = 278 * Decimal("0.000002") + 100 * Decimal("0.0000005") + 18 * Decimal("0.000008")
    assert chat["cost"] == chat["charged"] == cost
    # Input, cache reads and output of two requests: six times half a nanodollar.
    assert chat["rounding"] == Decimal("0.000000003")


async def test_what_was_sent_and_not_charged_is_there(gateway: Gateway) -> None:
    gateway.vendor.script.next(Behaviour(text="", finish="", prompt_tokens=50, completion_tokens=0))
    await gateway.chat(max_tokens=20)
    await gateway.at_rest()
    await attach(gateway)
    gateway.vendor.script.next(Behaviour(text="fine", prompt_tokens=100, completion_tokens=10))
    assert (await gateway.chat(max_tokens=20)).status_code == 200
    await gateway.at_rest()
    found = {(row["byok"], row["insured"]): row for row in await rows(gateway)}
    insured = found[False, 1]
    assert (insured["tokens_input"], insured["charged"]) == (50, 0)
    assert insured["cost"] == Decimal("0.0001")
    own = found[True, 0]
    assert own["cost"] == 100 * Decimal("0.000002") + 10 * Decimal("0.000008")
    assert 0 < own["charged"] < own["cost"]


async def test_a_deleted_endpoint_has_no_upstream_model_any_more(gateway: Gateway) -> None:
    assert (await gateway.chat(max_tokens=20)).status_code == 200
    await gateway.at_rest()
    (row,) = await rows(gateway)
    await gateway.manage("DELETE", f"/catalog/endpoints/{row['endpoint_id']}")
    assert await rows(gateway) == [{**row, "upstream_model": None}]


@pytest.mark.parametrize(
    ("query", "param", "code"),
    [
        ({"from": "2026-11-01T00:00:00Z"}, "to", "missing_parameter"),
        ({"to": "2026-11-01T00:00:00Z"}, "from", "missing_parameter"),
        ({"from": "2026-11-01T00:00:01Z", "to": "2026-11-02T00:00:00Z"}, "from", "invalid_value"),
        ({"from": "2026-11-02T00:00:00Z", "to": "2026-11-02T00:00:00Z"}, "to", "invalid_value"),
        ({"from": "2026-11-01T00:00:00Z", "to": "2026-12-03T00:00:00Z"}, "to", "invalid_value"),
    ],
)
async def test_days_are_whole_and_31_at_most(
    gateway: Gateway, query: dict[str, str], param: str, code: str
) -> None:
    reply = await gateway.operator.get("/vendor-usage", params=query)
    error = reply.json()["error"]
    assert (reply.status_code, error["param"], error["code"]) == (400, param, code)


async def test_all_organizations_are_the_operator_s_and_others_see_their_own(
    busy_office: Office,
) -> None:
    gateway = busy_office.gateway
    made = await busy_office.ok("owner", "POST", "/keys", {"name": "inference-too"})
    reply = await gateway.chat(headers={"authorization": f"Bearer {made['key']}"}, max_tokens=20)
    assert reply.status_code == 200, reply.text
    await gateway.at_rest()

    async def seen(person: str, **query: str) -> httpx.Response:
        asked = {**today(gateway), **query}
        return await busy_office.call(person, "GET", "/vendor-usage", params=asked)

    for person, count in (("operator", 1), ("owner", 1), ("billing", 1), ("stranger", 0)):
        reply = await seen(person)
        assert (person, len(reply.json()["data"]["rows"])) == (person, count)
    assert (await seen("lead")).json()["data"]["rows"] == []  # another workspace's
    assert len((await seen("operator", all="true")).json()["data"]["rows"]) == 1
    for person in ("owner", "stranger"):
        refused = await seen(person, all="true")
        assert (refused.status_code, refused.json()["error"]["param"]) == (403, "all")
