"""Tags of requests: from the client, its key and its workspace into the records."""

from typing import Any

from tests.limits.price import bearer
from tests.support.node import Gateway


async def tags_of(gateway: Gateway, reply: Any) -> list[str]:
    found: list[str] = (await gateway.generation(reply))["tags"]
    return found


async def test_a_request_bears_its_own_tags_its_key_s_and_its_workspace_s(gateway: Gateway) -> None:
    assert await tags_of(gateway, await gateway.chat()) == []
    web = {"name": "Web", "tags": ["web", "shared"]}
    workspace = (await gateway.manage("POST", "/workspaces", web))["data"]
    assert workspace["tags"] == ["web", "shared"]
    key, key_id = await gateway.new_key(workspace_id=workspace["id"], tags=["ci", "shared"])
    header = {"x-gw-tags": "nightly, ci", **bearer(key)}
    assert await tags_of(gateway, await gateway.chat(headers=header)) == [
        *("nightly", "ci", "shared", "web")
    ]
    own = await gateway.chat(headers=bearer(key), metadata={"tags": "a,b"})
    assert await tags_of(gateway, own) == ["a", "b", "ci", "shared", "web"]
    # A refusal before the body is read has those of its key and workspace.
    broken = await gateway.client.post(
        "/chat/completions", content=b"{", headers={"x-gw-tags": "x", **bearer(key)}
    )
    assert await tags_of(gateway, broken) == ["ci", "shared", "web"]
    await gateway.manage("PATCH", f"/keys/{key_id}", {"tags": []})
    await gateway.manage("PATCH", f"/workspaces/{workspace['id']}", {"tags": ["web"]})
    assert await tags_of(gateway, await gateway.chat(headers=bearer(key))) == ["web"]
    rotated = (await gateway.manage("PATCH", f"/keys/{key_id}", {"tags": ["ci"]}))["data"]
    assert rotated["tags"] == ["ci"]
    rotated = await gateway.manage("POST", f"/keys/{key_id}/rotate")
    assert rotated["data"]["tags"] == ["ci"]


async def test_the_list_of_requests_is_narrowed_by_a_tag(gateway: Gateway) -> None:
    await gateway.chat()
    for tag in ("night", "nightly"):
        await gateway.chat(headers={"x-gw-tags": f"{tag},eu"})
    await gateway.at_rest()
    for tag, count in (("nightly", 1), ("night", 1), ("eu", 2), ("NIGHTLY", 0)):
        found = await gateway.manage("GET", f"/generations?tag={tag}")
        assert (found["total_count"], len(found["data"])) == (count, count), tag


async def test_tags_that_are_none_are_refused_and_name_the_field(gateway: Gateway) -> None:
    nine = ",".join("abcdefghi")
    for headers, body, field in (
        ({"x-gw-tags": nine}, {}, "x-gw-tags"),
        ({"x-gw-tags": "a" * 65}, {}, "x-gw-tags"),
        ({}, {"metadata": {"tags": nine}}, "metadata.tags"),
        ({}, {"metadata": {"tags": {"a": 1}}}, "metadata.tags"),
    ):
        reply = await gateway.chat(headers=headers, **body)
        error = reply.json()["error"]
        assert (reply.status_code, error["code"], error["param"]) == (400, "invalid_value", field)
    for path in ("/keys", "/workspaces"):
        for tags in (list("abcdefghi"), ["a,b"], [""]):
            refused = await gateway.manage("POST", path, {"name": "a", "tags": tags}, status=400)
            assert refused["error"]["param"].startswith("tags"), refused
