"""The examples for nginx and Caddy, run by the real programs: streams, clients that leave, large bodies, paths."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from gwd.demo import Behaviour
from tests.flows.conftest import Opened
from tests.flows.frames import frames_of, text_of
from tests.support.node import Gateway
from tests.support.proxies_in_front import PROGRAMS, InFront, in_front, is_there

MIB = 1024**2
TRUSTING = {"GWD_SERVER_TRUSTED_PROXIES": "127.0.0.1"}
STALLS = Behaviour(stall_after=6)

pytestmark = pytest.mark.parametrize(
    "program",
    [
        pytest.param(
            name, marks=pytest.mark.skipif(not is_there(name), reason=f"{name} is not installed")
        )
        for name in PROGRAMS
    ],
)


class Curl:
    """A client of its own process: what it was sent so far, and what it says when it has ended."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.received = b""

    async def until(self, text: bytes) -> None:
        assert self._process.stdout is not None
        async with asyncio.timeout(60):
            while text not in self.received:
                piece = await self._process.stdout.read(65_536)
                assert piece, f"it ended with {self.received!r}"
                self.received += piece

    async def end(self) -> str:
        assert self._process.stdout is not None
        async with asyncio.timeout(60):
            self.received += await self._process.stdout.read()
            await self._process.wait()
        return self.received.decode()

    async def leave(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()


@asynccontextmanager
async def curl(url: str, key: str, *more: str, trust: Path | None = None) -> AsyncIterator[Curl]:
    process = await asyncio.create_subprocess_exec(
        *("curl", "-sN", "--http2", "-H", f"authorization: Bearer {key}"),
        *("-H", "content-type: application/json", *(("--cacert", str(trust)) if trust else ())),
        *(*more, url),
        stdout=asyncio.subprocess.PIPE,
    )
    made = Curl(process)
    try:
        yield made
    finally:
        await made.leave()


def asked(content: str = "Write about the sea.", **fields: Any) -> str:
    messages = [{"role": "user", "content": content}]
    return json.dumps({"model": "demo/chat", "messages": messages, **fields})


def through(front: InFront, gateway: Gateway, path: str, *more: str) -> Any:
    return curl(f"{front.root}{path}", gateway.key, *more, trust=front.trust)


async def test_a_stream_comes_as_it_is_made_and_who_leaves_ends_the_call_and_pays_as_without(
    opened: Opened, program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The proxy has nothing to write meanwhile, by which it would notice at last."""
    monkeypatch.setattr("gwd.pipeline.client.side.KEEPALIVE_S", 300.0)
    async with opened() as gateway, in_front(program, gateway.running.port) as front:
        records: list[Any] = []
        for url, trust in (
            (f"{gateway.base_url}/chat/completions", None),
            (f"{front.root}/api/v1/chat/completions", front.trust),
        ):
            gateway.vendor.script.next(STALLS)
            session = f"leaving-{len(records)}"
            body = asked(stream=True, session_id=session)
            async with curl(url, gateway.key, "-d", body, trust=trust) as client:
                await client.until(b'"content"')  # the vendor has fallen silent: nothing pushes it
                upstream = gateway.vendor.calls.last
                assert not upstream.finished.is_set()
                await asyncio.sleep(0.3)
                await client.leave()
                await asyncio.wait_for(upstream.finished.wait(), 30)
                assert upstream.closed_early
            await gateway.at_rest()
            [record] = (await gateway.manage("GET", f"/generations?session_id={session}"))["data"]
            records.append(record)
        alone, behind = records
        assert behind["status"] == alone["status"] == "cancelled"
        assert behind["total_cost"] == alone["total_cost"] > Decimal(0)
        assert behind["tokens_completion"] == alone["tokens_completion"]


async def test_whole_streams_and_streams_that_the_vendor_cuts_come_to_their_end_over_http2(
    opened: Opened, program: str
) -> None:
    async with opened() as gateway, in_front(program, gateway.running.port) as front:
        for behaviour, last in (
            (Behaviour(), "data: [DONE]"),
            (Behaviour(cut="reset", cut_after=5), '"error"'),
        ):
            gateway.vendor.script.next(behaviour)
            more = ("-w", "%{http_version} %{http_code}", "-d", asked(stream=True))
            async with through(front, gateway, "/api/v1/chat/completions", *more) as client:
                said = await client.end()
            assert said.endswith("2 200")
            assert last in said
            assert text_of(frames_of(said.rpartition("\n\n")[0] + "\n\n"))


async def test_large_bodies_pass_and_those_that_are_too_large_are_told_so(
    opened: Opened, program: str, tmp_path: Path
) -> None:
    """Twenty MiB is a picture; the 413 of what is a little too large is gwd's own."""
    async with opened() as gateway, in_front(program, gateway.running.port) as front:
        for size, code in ((20 * MIB, 200), (32 * MIB + 200_000, 413)):
            picture = "data:image/png;base64," + "A" * size
            parts = [{"type": "image_url", "image_url": {"url": picture}}]
            body = tmp_path / "body"
            body.write_text(
                json.dumps({"model": "demo/chat", "messages": [{"role": "user", "content": parts}]})
            )
            more = ("-w", " %{http_code}", "-d", f"@{body}")
            async with through(front, gateway, "/api/v1/chat/completions", *more) as client:
                said = await client.end()
            assert said.endswith(f" {code}"), said[-300:]
            assert ('"request_too_large"' in said) == (code == 413)


async def test_the_address_in_the_audit_log_is_the_client_s_and_not_what_it_claims(
    opened: Opened, program: str
) -> None:
    async with opened(**TRUSTING) as gateway, in_front(program, gateway.running.port) as front:
        claims = ("-H", "x-forwarded-for: 198.51.100.1", "-H", "forwarded: for=198.51.100.2")
        key = gateway.management_key
        more = (*claims, "--interface", "127.0.0.3", "-d", '{"name": "k"}')
        async with curl(f"{front.root}/api/v1/keys", key, *more, trust=front.trust) as client:
            assert '"key"' in await client.end()
        [line] = (await gateway.manage("GET", "/audit?limit=1"))["data"]
        assert (line["action"], line["address"]) == ("key.create", "127.0.0.3")


@pytest.mark.parametrize("leaves", [False, True], ids=["takes it off", "leaves it"])
async def test_a_path_of_the_proxy_s_own(opened: Opened, program: str, *, leaves: bool) -> None:
    def under_a_path(example: str) -> str:
        if program == "nginx":
            to = "proxy_pass http://gwd;" if leaves else "proxy_pass http://gwd/;"
            example = example.replace("location / {", "location /gw/ {")
            return example.replace("proxy_pass http://gwd;", to)
        kind = "handle" if leaves else "handle_path"
        return (
            example.replace("\treverse_proxy", f"\t{kind} /gw/* {{\n\treverse_proxy").rstrip()[:-1]
            + "}\n}\n"
        )

    settings = {"GWD_SERVER_BASE_URL": "https://gateway.example.com/gw/api/v1"}
    if leaves:
        settings["GWD_SERVER_PATH_PREFIX"] = "/gw"
    async with (
        opened(**settings) as gateway,
        in_front(program, gateway.running.port, under_a_path) as front,
    ):
        for path, holds in (
            ("/gw/healthz", "ok"),
            ("/gw/api/v1/models", '"demo/chat"'),
            ("/gw/api/v1/openapi.json", '"servers":[{"url":"/gw/api/v1"}]'),
            ("/gw/", "https://gateway.example.com/gw/api/v1"),
        ):
            async with through(front, gateway, path) as client:
                assert holds in await client.end(), path
        async with through(front, gateway, "/gw/api/v1/chat/completions", "-d", asked()) as client:
            assert '"choices"' in await client.end()


async def test_metrics_stay_inside(opened: Opened, program: str) -> None:
    async with opened() as gateway, in_front(program, gateway.running.port) as front:
        for path, code in (("/metrics", 404), ("/readyz", 200)):
            more = ("-o", "/dev/null", "-w", "%{http_code}")
            async with through(front, gateway, path, *more) as client:
                assert await client.end() == str(code), path
