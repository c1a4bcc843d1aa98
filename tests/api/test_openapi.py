"""GET /openapi.json: read by anybody, and built only when somebody asks."""

import httpx

from gwd.api.openapi import document, encoded
from tests.support.node import Gateway


async def test_anybody_may_read_it_and_it_is_built_when_first_asked_for(gateway: Gateway) -> None:
    encoded.cache_clear()
    assert (await gateway.client.get("/models")).status_code == 200
    assert encoded.cache_info().currsize == 0
    async with httpx.AsyncClient(base_url=gateway.base_url, verify=False) as anybody:
        reply = await anybody.get("/openapi.json", headers={"origin": "https://docs.example"})
        assert reply.json() == document()
        assert reply.headers["access-control-allow-origin"] == "*"
        assert (await anybody.head("/openapi.json")).status_code == 200
        older = await anybody.get(gateway.base_url.replace("/api/v1", "/v1") + "/openapi.json")
        assert older.content == reply.content
    assert encoded.cache_info().misses == 1
