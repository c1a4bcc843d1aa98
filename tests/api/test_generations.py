"""GET /generations: the activity log, refusals included, filtered and paged."""

from typing import Any

import pytest

from tests.support.node import Gateway


async def listed(gateway: Gateway, **query: str) -> Any:
    return (await gateway.operator.get("/generations", params=query)).json()


async def test_served_and_refused_requests_are_both_listed_newest_first(gateway: Gateway) -> None:
    served = await gateway.chat()
    refused = await gateway.chat(model="demo/none")
    await gateway.generation(refused)
    found = await listed(gateway)
    assert found["total_count"] == 2
    ids = [reply.headers["x-gw-generation-id"] for reply in (refused, served)]
    assert [record["id"] for record in found["data"]] == ids
    (endpoint,) = [
        one["id"]
        for one in (await gateway.manage("GET", "/catalog/endpoints"))["data"]
        if one["model"] == "demo/chat"
    ]
    assert [record["endpoint_id"] for record in found["data"]] == [None, endpoint]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("status", "refused"),
        ("user", "ann"),
        ("session_id", "chat-7"),
        ("error_code", "model_not_found"),
    ],
)
async def test_filters_narrow_the_list(gateway: Gateway, name: str, value: str) -> None:
    await gateway.chat()
    tagged = await gateway.chat(
        model="demo/none", user="ann", headers={"x-gw-session-id": "chat-7"}
    )
    await gateway.generation(tagged)
    found = await listed(gateway, **{name: value})
    assert [record["id"] for record in found["data"]] == [tagged.headers["x-gw-generation-id"]]


async def test_a_status_that_is_none_names_the_ones_there_are(gateway: Gateway) -> None:
    reply = await gateway.operator.get("/generations", params={"status": "bogus"})
    error = reply.json()["error"]
    assert (reply.status_code, error["code"], error["param"]) == (400, "invalid_value", "status")
    assert "succeeded" in error["message"]
    assert (await listed(gateway, status="in_progress"))["data"] == []


async def test_pages_follow_each_other(gateway: Gateway) -> None:
    for _ in range(3):
        await gateway.chat()
    await gateway.at_rest()
    pages = [await listed(gateway, limit="2", offset=offset) for offset in ("0", "2")]
    assert [len(page["data"]) for page in pages] == [2, 1]
    assert {page["total_count"] for page in pages} == {3}
    assert len({record["id"] for page in pages for record in page["data"]}) == 3


async def test_an_inference_key_does_not_list(gateway: Gateway) -> None:
    reply = await gateway.client.get("/generations")
    assert (reply.status_code, reply.json()["error"]["code"]) == (403, "wrong_key_type")
