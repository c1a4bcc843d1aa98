"""A method that a path does not take: 405 in the shape of the path's errors, with the methods that it takes."""

import re

import httpx

from tests.support.node import Gateway

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW")


async def test_every_path_names_the_methods_that_it_takes(gateway: Gateway) -> None:
    taken: dict[str, set[str]] = {}
    for route in gateway.running._listeners[0].app.router.routes:
        path = "/" + re.sub(r"<(\w+)(:\w+)?>", lambda found: f"any-{found[1]}", route.path)
        taken.setdefault(path, set()).update(str(method) for method in route.methods)
    wrong = []
    root = gateway.base_url.removesuffix("/api/v1")
    async with httpx.AsyncClient(base_url=root, verify=False) as client:
        for path, methods in sorted(taken.items()):
            for method in METHODS:
                if method in methods:
                    continue
                reply = await client.request(method, path)
                allow = reply.headers.get("allow", "")
                found = (reply.status_code, allow)
                if found != (405, ", ".join(sorted(methods))):
                    wrong.append((method, path, found))
    assert wrong == []


async def test_the_error_has_the_shape_of_its_path(gateway: Gateway) -> None:
    found = {}
    for path in ("/keys", "/chat/completions", "/messages", "/messages/count_tokens", "/responses"):
        body = (await gateway.client.put(path)).json()
        error = body["error"]
        found[path] = (
            error.get("code") or error["details"]["error_code"],
            body.get("type"),
            error["message"],
        )
    posts = "this endpoint does not take that method; it takes OPTIONS, POST"
    assert found == {
        "/keys": ("method_not_allowed", None, posts.replace("OPTIONS", "GET")),
        "/chat/completions": ("method_not_allowed", None, posts),
        "/messages": ("method_not_allowed", "error", posts),
        "/messages/count_tokens": ("method_not_allowed", "error", posts),
        "/responses": ("method_not_allowed", None, posts),
    }
