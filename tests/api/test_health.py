"""/healthz, /readyz and the probes of agents: at the root, without a key."""

import re
from pathlib import Path

import httpx
import pytest

from tests.support.node import Gateway, open_gateway


async def ask(gateway: Gateway, method: str, path: str) -> httpx.Response:
    async with httpx.AsyncClient(base_url=gateway.base_url.removesuffix("/api/v1")) as stranger:
        return await stranger.request(method, path)


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
async def test_a_serving_node_is_alive_and_ready(gateway: Gateway, path: str) -> None:
    assert (await ask(gateway, "GET", path)).status_code == 200


async def test_a_draining_node_is_alive_and_not_ready(gateway: Gateway) -> None:
    gateway.running.node.status.draining = True
    assert (await ask(gateway, "GET", "/healthz")).status_code == 200
    assert (await ask(gateway, "GET", "/readyz")).status_code == 503
    gateway.running.node.status.draining = False


@pytest.mark.parametrize("path", ["/", "/api", "/api/v1", "/api/v1/"])
async def test_a_probe_is_answered_with_nothing(gateway: Gateway, path: str) -> None:
    reply = await ask(gateway, "HEAD", path)
    assert reply.status_code == 204
    assert reply.content == b""


async def test_what_is_not_served_is_refused_in_our_envelope(gateway: Gateway) -> None:
    unknown = await ask(gateway, "GET", "/api/v1/nothing")
    assert (unknown.status_code, unknown.json()["error"]["type"]) == (404, "not_found_error")
    method = await ask(gateway, "GET", "/api/v1/chat/completions")
    assert (method.status_code, method.json()["error"]["code"]) == (405, "method_not_allowed")


async def test_a_browser_goes_on_to_the_page_and_a_program_is_told_where_things_are(
    gateway: Gateway,
) -> None:
    root = gateway.base_url.removesuffix("/api/v1")
    moved = await gateway.client.get(f"{root}/", headers={"accept": "text/html,*/*;q=0.8"})
    assert (moved.status_code, moved.headers["location"]) == (302, "/app/")
    plain = await gateway.client.get(f"{root}/")
    assert plain.headers["content-type"].startswith("text/plain")
    assert gateway.base_url in plain.text
    assert "/app/" in plain.text
    assert (await gateway.client.head(f"{root}/")).status_code == 204


async def test_without_the_page_a_browser_is_told_what_this_is(tmp_path: Path) -> None:
    async with open_gateway(tmp_path, environment={"GWD_SERVER_PAGE": "false"}) as gateway:
        root = gateway.base_url.removesuffix("/api/v1")
        page = await gateway.client.get(f"{root}/", headers={"accept": "text/html,*/*;q=0.8"})
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        assert "model gateway" in page.text
        links = re.findall(r'href="([^"]+)"', page.text)
        assert "/metrics" in links
        for link in links:
            assert (await gateway.client.get(f"{root}{link}")).status_code == 200
        for path in ("/app", "/app/", "/app/keys", "/keys/key_1", "/app/static/app.css"):
            gone = await gateway.client.get(f"{root}{path}")
            assert (gone.status_code, gone.json()["error"]["code"]) == (404, "not_found")
        refused = await gateway.operator.post("/sign-in-links", json={})
        assert refused.status_code == 409


async def test_pages_behind_the_path_of_a_proxy_are_linked_with_it(tmp_path: Path) -> None:
    given = {"GWD_SERVER_BASE_URL": "https://gw.example/gw/api/v1", "GWD_SERVER_PAGE": "false"}
    async with open_gateway(tmp_path, environment=given) as node:
        root = f"http://127.0.0.1:{node.running.port}/"
        page = (await node.client.get(root, headers={"accept": "text/html"})).text
    assert re.findall(r'href="([^"]+)"', page) == [
        "/gw/api/v1/models",
        "/gw/healthz",
        "/gw/readyz",
        "/gw/metrics",
    ]
