"""The HTTP front over raw sockets: one strict reading of each request, absolute deadlines, caps on connections."""

import asyncio
import os
import re
import shutil
import sys
import urllib.request
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from time import thread_time

import httpx
import pytest
import pytest_asyncio

from gwd.api import body_intake, http_guard
from gwd.api.http_guard import BadHead, Front, HeadTooLarge, check_head
from gwd.core.counters import Counters
from gwd.wiring import RunningNode
from tests.cases.caserunner.ports import free_port
from tests.support.node import Nodes

ROOT = Path(__file__).parents[2]
HOST = b"Host: gateway.example"
START = b"GET /healthz HTTP/1.1"
SECOND = b"GET /api/v1/smuggled HTTP/1.1\r\nHost: gateway.example\r\n\r\n"


def head(*lines: bytes, start: bytes = START) -> bytes:
    return b"\r\n".join((start, *lines)) + b"\r\n\r\n"


def post(*lines: bytes) -> bytes:
    return head(HOST, *lines, start=b"POST /api/v1/chat/completions HTTP/1.1")


# What a kinder server took, and what would make a proxy and us disagree.
REFUSED: dict[str, tuple[bytes, int]] = {
    "space before the colon of content-length": (post(b"Content-Length : 56") + SECOND, 400),
    "bare LF hides content-length": (post(b"X-A: b\nContent-Length: 56") + SECOND, 400),
    "all lines end with LF": (b"GET /healthz HTTP/1.1\nHost: gateway.example\n\n", 400),
    "bare CR in a value": (head(HOST, b"X-A: b\rX-B: c"), 400),
    "NUL in a value": (head(HOST, b"X-A: b\x00c"), 400),
    "obsolete folding": (head(HOST, b"X-A: b", b" continued"), 400),
    "two hosts": (head(HOST, b"Host: other.example"), 400),
    "no host": (head(b"Accept: */*"), 400),
    "a path in the host": (head(b"Host: a/api/v1/models?x="), 400),
    "two content-lengths that differ": (post(b"Content-Length: 5", b"Content-Length: 56"), 400),
    "two content-lengths that agree": (post(b"Content-Length: 5", b"content-length: 5"), 400),
    "digits of another script": (post("Content-Length: ٥".encode()), 400),
    "a signed content-length": (post(b"Content-Length: +5") + b"hello", 400),
    "a list as content-length": (post(b"Content-Length: 5, 5") + b"hello", 400),
    "chunked": (post(b"Transfer-Encoding: chunked") + b"0\r\n\r\n", 400),
    "chunked and a length": (
        post(b"Content-Length: 5", b"Transfer-Encoding: chunked") + b"0\r\n\r\n" + SECOND,
        400,
    ),
    "an unknown transfer-encoding": (post(b"Transfer-Encoding: xchunked") + b"0\r\n\r\n", 400),
    "two authorizations": (
        post(b"Authorization: Bearer a", b"Authorization: Bearer b", b"Content-Length: 0"),
        400,
    ),
    "two x-api-keys": (post(b"X-Api-Key: a", b"x-api-key: b", b"Content-Length: 0"), 400),
    "an absolute target": (head(HOST, start=b"GET http://other.example/healthz HTTP/1.1"), 400),
    "a target with two slashes": (head(HOST, start=b"GET //other.example/healthz HTTP/1.1"), 400),
    "a fragment": (head(HOST, start=b"GET /healthz#a HTTP/1.1"), 400),
    "a fragment in the query": (head(HOST, start=b"GET /healthz?a=b#c HTTP/1.1"), 400),
    "a fragment alone": (head(HOST, start=b"GET /# HTTP/1.1"), 400),
    "a target of no path": (head(HOST, start=b"OPTIONS * HTTP/1.1"), 400),
    "two spaces in the first line": (head(HOST, start=b"GET  /healthz HTTP/1.1"), 400),
    "an unknown version": (head(HOST, start=b"GET /healthz HTTP/3.0"), 400),
    "bytes beyond ASCII in the target": (head(HOST, start="GET /é HTTP/1.1".encode()), 400),
    "an empty line first": (b"\r\n" + head(HOST), 400),
    "a line without a colon": (head(HOST, b"X-A"), 400),
    "an empty name": (head(HOST, b": b"), 400),
    "101 lines": (head(HOST, *(b"X-%d: a" % number for number in range(101))), 413),
    "nine KiB": (head(HOST, b"X-A: " + b"a" * 9_000), 413),
    "a head without an end": (START + b"\r\nX-A: " + b"a" * 9_000, 413),
    "a body above the limit": (
        head(HOST, b"Content-Length: 99999999", start=b"POST /api/v1/keys HTTP/1.1") + b"hello",
        413,
    ),
    "a body above the limit, and no key": (post(b"Content-Length: 99999999") + b"hello", 401),
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningNode]:
    """One node for the whole file: nothing here changes it."""
    nodes = Nodes(tmp_path_factory.mktemp("front"))
    nodes.init()
    async with nodes.running() as node:
        yield node


pytestmark = pytest.mark.asyncio(loop_scope="module")


async def listening(port: int) -> None:
    for _ in range(200):
        with suppress(ConnectionError):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            return
        await asyncio.sleep(0.05)
    raise AssertionError("the daemon does not listen")


async def until(happened: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not happened():
            await asyncio.sleep(0.01)


async def rest(reader: asyncio.StreamReader) -> bytes:
    """All that comes until the end; where our bytes crossed with the answer, the end is a reset."""
    said = b""
    with suppress(ConnectionResetError):
        while chunk := await reader.read(65_536):
            said += chunk
    return said


@asynccontextmanager
async def connected(
    port: int,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def answer_to(port: int, sent: bytes, limit_s: float = 5.0) -> bytes:
    """All the node says until it closes; the sender keeps its side open."""
    async with connected(port) as (reader, writer):
        writer.write(sent)
        async with asyncio.timeout(limit_s):
            return await rest(reader)


def statuses(answer: bytes) -> list[int]:
    return [int(status) for status in re.findall(rb"HTTP/1\.1 ([0-9]{3}) ", answer)]


@pytest.mark.parametrize("shape", REFUSED)
async def test_what_can_be_read_in_two_ways_is_refused_and_the_connection_closed(
    running: RunningNode, shape: str
) -> None:
    sent, status = REFUSED[shape]
    answer = await answer_to(running.port, sent)
    assert statuses(answer) == [status]
    assert b"connection: close" in answer.lower()
    assert b'"message":"' in answer
    assert b"smuggled" not in answer


@pytest.mark.parametrize("shape", REFUSED)
async def test_it_is_refused_however_the_network_cuts_it(running: RunningNode, shape: str) -> None:
    sent, status = REFUSED[shape]
    middle = len(sent) // 2
    async with connected(running.port) as (reader, writer):
        writer.write(sent[:middle])
        await asyncio.sleep(0.02)
        writer.write(sent[middle:])
        async with asyncio.timeout(5):
            assert statuses(await rest(reader)) == [status]


async def test_the_daemon_whose_framework_rewrote_itself_refuses_the_same(tmp_path: Path) -> None:
    """`gwd serve` lets the framework drop what nobody listens to; the guard is no listener and stays."""
    Nodes(tmp_path).init()
    port = free_port()
    daemon = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "gwd", "serve"),
        *("--config", str(tmp_path / "node" / "gwd.toml"), "--port", str(port)),
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)},
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        await listening(port)
        found = {shape: statuses(await answer_to(port, REFUSED[shape][0])) for shape in REFUSED}
        assert found == {shape: [status] for shape, (_, status) in REFUSED.items()}
        assert statuses(await answer_to(port, head(HOST, b"Connection: close"))) == [200]
    finally:
        daemon.kill()
        await daemon.wait()


async def test_refused_heads_are_counted_by_the_rule_they_broke(running: RunningNode) -> None:
    counted = running.node.counters.heads_refused
    before = counted["transfer_encoding"]
    await answer_to(running.port, REFUSED["chunked"][0])
    assert counted["transfer_encoding"] == before + 1
    await answer_to(running.port, REFUSED["two hosts"][0])
    assert counted["repeated"] >= 1


async def test_the_error_names_what_would_fix_it(running: RunningNode) -> None:
    assert b"Content-Length" in await answer_to(running.port, REFUSED["chunked"][0])
    assert b"X-A" in await answer_to(running.port, REFUSED["a line without a colon"][0])


async def test_ordinary_clients_pass(running: RunningNode) -> None:
    url = f"http://127.0.0.1:{running.port}"
    async with httpx.AsyncClient() as client:
        reply = await client.get(f"{url}/healthz", headers={b"x-title": "Grüße".encode()})
        assert reply.status_code == 200
        assert (await client.get(f"{url}/api/v1/models")).status_code == 200
    with await asyncio.to_thread(urllib.request.urlopen, f"{url}/healthz") as got:
        assert got.status == 200
    ipv6 = head(b"Host: [::1]:8080", b"Connection: close")
    assert statuses(await answer_to(running.port, ipv6)) == [200]


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
async def test_curl_passes_with_a_body_that_waits_for_a_hundred_continue(
    running: RunningNode, tmp_path: Path
) -> None:
    body = tmp_path / "body.json"
    body.write_bytes(b'{"model": "' + b"a" * 2_000_000 + b'"}')
    process = await asyncio.create_subprocess_exec(
        *("curl", "-s", "-o", str(tmp_path / "out"), "-w", "%{http_code}"),
        *("-d", f"@{body}", f"http://127.0.0.1:{running.port}/api/v1/chat/completions"),
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await process.communicate()
    assert out == b"401"


async def test_a_connection_is_reused_and_requests_may_follow_each_other_closely(
    running: RunningNode,
) -> None:
    async with connected(running.port) as (reader, writer):
        writer.write(head(HOST) + head(HOST, b"Connection: close"))
        async with asyncio.timeout(5):
            assert statuses(await rest(reader)) == [200, 200]


@pytest.mark.alone
async def test_a_head_has_an_absolute_deadline_from_the_connection(
    running: RunningNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each byte starts an ordinary timer anew; ours runs on."""
    monkeypatch.setattr(http_guard, "HEAD_S", 0.4)
    cut = running.node.counters.connections_cut
    before = cut["slow_head"]
    loop = asyncio.get_running_loop()
    async with connected(running.port) as (reader, writer):
        began_s = loop.time()
        answering = asyncio.ensure_future(rest(reader))
        for byte in START + b"\r\nX-A: " + b"a" * 100:
            if answering.done():
                break
            writer.write(bytes((byte,)))
            await asyncio.sleep(0.05)
        answer = await answering
    assert 0.3 < loop.time() - began_s < 3  # all bytes would take five
    assert statuses(answer) == [408]
    assert cut["slow_head"] == before + 1


async def test_a_connection_on_which_nothing_is_said_is_closed(
    running: RunningNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_guard, "HEAD_S", 0.2)
    assert await answer_to(running.port, b"", limit_s=30) == b""


async def test_the_deadline_starts_anew_on_a_reused_connection_and_idleness_is_no_slowness(
    running: RunningNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_guard, "HEAD_S", 0.3)
    async with connected(running.port) as (reader, writer):
        writer.write(head(HOST))
        first = await reader.readuntil(b"ok")
        await asyncio.sleep(0.5)  # longer than a head may take
        writer.write(head(HOST)[:-4])
        await asyncio.sleep(0.1)
        writer.write(b"\r\n\r\n")
        second = await reader.readuntil(b"ok")
        writer.write(START)
        async with asyncio.timeout(30):
            third = await rest(reader)
    assert statuses(first) == statuses(second) == [200]
    assert statuses(third) == [408]


async def test_a_body_keeps_up_a_least_rate(
    running: RunningNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(body_intake, "GRACE_S", 0.2)
    cut = running.node.counters.connections_cut
    before = cut["slow_body"]
    async with connected(running.port) as (reader, writer):
        writer.write(post(b"Content-Length: 5000"))
        answering = asyncio.ensure_future(rest(reader))
        for _ in range(80):
            if answering.done():
                break
            writer.write(b"a")
            await asyncio.sleep(0.05)
        answer = await answering
    assert statuses(answer) == [408]
    assert cut["slow_body"] == before + 1


async def test_a_body_that_nobody_wants_any_more_is_cut_too(
    running: RunningNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The 404 goes out at once; the rest of the body may not hold the connection."""
    monkeypatch.setattr(body_intake, "GRACE_S", 0.2)
    sent = head(HOST, b"Content-Length: 5000", start=b"POST /nowhere HTTP/1.1") + b"a"
    assert statuses(await answer_to(running.port, sent)) == [404]


async def test_a_body_above_the_least_rate_may_take_its_time(
    running: RunningNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(body_intake, "GRACE_S", 0.1)
    async with connected(running.port) as (reader, writer):
        writer.write(post(b"Content-Length: 10000", b"Connection: close"))
        for _ in range(10):
            writer.write(b"a" * 1_000)
            await asyncio.sleep(0.2)
        assert statuses(await rest(reader)) == [401]
    assert len(running._listeners[0].front.body_intake) == 0


async def test_who_sends_too_much_without_a_pause_reads_the_answer_all_the_same(
    running: RunningNode,
) -> None:
    """A connection that is closed while bytes come is reset, and what was written to it is gone."""
    length = running.settings.limits.request_body_max_bytes + 1_000_000
    sent = head(HOST, b"Content-Length: %d" % length, start=b"POST /api/v1/keys HTTP/1.1")
    async with connected(running.port) as (reader, writer), asyncio.timeout(60):
        writer.write(sent)
        for _ in range(length // 1_000_000):
            writer.write(b"a" * 1_000_000)
            await writer.drain()
        assert statuses(await reader.readuntil(b"}}")) == [413]


async def test_a_body_that_came_fast_and_then_stops_is_cut(
    running: RunningNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What came at once buys no silence: the least rate holds for what came since it was last looked at."""
    monkeypatch.setattr(body_intake, "GRACE_S", 0.2)
    cut = running.node.counters.connections_cut
    before = cut["slow_body"]
    async with connected(running.port) as (reader, writer):
        writer.write(post(b"Content-Length: 5000000") + b"a" * 4_000_000)
        async with asyncio.timeout(5):
            assert statuses(await rest(reader)) == [408]
    assert cut["slow_body"] == before + 1
    assert running._listeners[0].front.body_intake.bytes_here == 0


async def test_large_bodies_have_a_ceiling_and_small_ones_pass_it(
    running: RunningNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(body_intake, "MAX_BYTES", 1_000_000)
    bodies = running._listeners[0].front.body_intake
    async with connected(running.port) as (_, first), connected(running.port) as (reader, writer):
        first.write(post(b"Content-Length: 1000000") + b"a" * 900_000)
        await until(lambda: bodies.bytes_here == 900_000)
        writer.write(post(b"Content-Length: 400000") + b"a" * 300_000)
        async with asyncio.timeout(5):
            refused = await rest(reader)
        assert statuses(refused) == [503]
        assert b"retry-after: 5" in refused
        assert b'"code":"overloaded"' in refused
        await until(lambda: bodies.bytes_here == 900_000)
        async with connected(running.port) as (small_reader, small):
            small.write(post(b"Content-Length: 60000", b"Connection: close") + b"a" * 20_000)
            await asyncio.sleep(0.05)
            small.write(b"a" * 40_000)
            assert statuses(await rest(small_reader)) == [401]
    await until(lambda: bodies.bytes_here == 0)


async def test_room_for_a_large_body_is_made_by_the_largest_of_those_that_take_long(
    running: RunningNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slow senders without a key that fill the ceiling do not keep the others out."""
    monkeypatch.setattr(body_intake, "MAX_BYTES", 1_000_000)
    monkeypatch.setattr(body_intake, "GRACE_S", 0.2)
    monkeypatch.setattr(body_intake, "BYTES_PER_S", 1)
    bodies = running._listeners[0].front.body_intake
    cut = running.node.counters.connections_cut
    before = cut["bodies_full"]
    async with (
        connected(running.port) as (slow_reader, slow),
        connected(running.port) as (
            reader,
            writer,
        ),
    ):
        slow.write(post(b"Content-Length: 1000000") + b"a" * 900_000)
        await until(lambda: bodies.bytes_here == 900_000)
        await asyncio.sleep(0.25)
        writer.write(post(b"Content-Length: 800000", b"Connection: close") + b"a" * 800_000)
        async with asyncio.timeout(5):
            assert statuses(await rest(reader)) == [401]
            assert statuses(await rest(slow_reader)) == [503]
    assert cut["bodies_full"] == before + 1


async def test_values_that_are_no_utf8_are_read_as_latin(running: RunningNode) -> None:
    odd = b"\xff\xfe"
    sent = head(
        HOST,
        b"Origin: " + odd,
        b"Access-Control-Request-Headers: x-a, " + odd + b"x\xc3\xa9-b",
        b"Connection: close",
        start=b"OPTIONS /api/v1/models HTTP/1.1",
    )
    answer = await answer_to(running.port, sent)
    assert statuses(answer) == [204]
    assert b"access-control-allow-headers: x-a, x-b\r\n" in answer
    assert answer.isascii()


async def test_connections_above_the_cap_are_refused_and_the_others_kept(
    running: RunningNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    front = running._listeners[0].front
    async with asyncio.timeout(30):
        while front.open:
            await asyncio.sleep(0.01)
    monkeypatch.setattr(front, "cap", 5)
    monkeypatch.setattr(front, "reserve", 0)
    kept = [await asyncio.open_connection("127.0.0.1", running.port) for _ in range(5)]
    await asyncio.sleep(0.05)
    try:
        refused = await answer_to(running.port, b"")
        assert statuses(refused) == [503]
        assert b'"code":"overloaded"' in refused
        for reader, writer in kept:
            writer.write(head(HOST, b"Connection: close"))
            assert statuses(await rest(reader)) == [200]
    finally:
        for _, writer in kept:
            writer.close()
    async with asyncio.timeout(30):
        while front.open:
            await asyncio.sleep(0.01)
    assert statuses(await answer_to(running.port, head(HOST, b"Connection: close"))) == [200]


async def test_one_address_has_its_share_and_loopback_speaks_for_many() -> None:
    front = Front(Counters(), cap=10, cap_per_address=2)
    assert [front.admit("203.0.113.7") for _ in range(3)] == [True, True, False]
    assert front.admit("203.0.113.8")
    assert all(front.admit("127.0.0.1") for _ in range(4))
    front.leave("203.0.113.7")
    assert front.admit("203.0.113.7")
    assert front.counters.connections_cut == {"too_many_of_address": 1}
    assert front.open == front.counters.connections == 7
    for address in ("203.0.113.7", "203.0.113.7", "203.0.113.8", *["127.0.0.1"] * 4):
        front.leave(address)
    assert front.open == 0
    assert front._by_address == {}


async def test_a_cap_of_zero_is_none() -> None:
    front = Front(Counters(), cap=0, cap_per_address=0)
    assert all(front.admit("203.0.113.7") for _ in range(5_000))


@pytest.mark.parametrize(
    "lines",
    [
        (b"host: a",),
        (b"HOST:a_b.example:65535 ",),
        (b"Host: [fe80::1]",),
        (b"Host: a", b"X-Title: Gr\xc3\xbc\xc3\x9fe \xf0\x9f\x91\x8b"),
        (b"Host: a", b"X-Empty:"),
        (b"Host: a", b"Accept: a", b"accept: b"),
        (b"Host: a", *(b"x: a" for _ in range(99))),
        (b"Host: a", b"Content-Length: 0033554432 "),
    ],
)
async def test_what_real_clients_send_is_right(lines: tuple[bytes, ...]) -> None:
    check_head(b"\r\n".join((START, *lines)))


async def test_the_longest_head_and_one_byte_more() -> None:
    room = http_guard.HEAD_MAX_BYTES - len(b"\r\n".join((START, HOST, b"X: ")))
    check_head(b"\r\n".join((START, HOST, b"X: " + b"a" * room)))
    with pytest.raises(HeadTooLarge):
        check_head(b"\r\n".join((START, HOST, b"X: " + b"a" * (room + 1))))


@pytest.mark.parametrize("hostile", [b"X" * 8_000, b"a:" * 4_000, b": " * 4_000, b"\t" * 8_000])
async def test_no_head_takes_long_to_judge(hostile: bytes) -> None:
    began_s = thread_time()
    with pytest.raises(BadHead):
        check_head(b"\r\n".join((START, hostile + b"\x7f", HOST)))
    assert thread_time() - began_s < 0.1
