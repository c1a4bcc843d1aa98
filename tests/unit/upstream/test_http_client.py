"""The upstream client against servers that say exactly what a test wants, byte by byte."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from gwd.core.target import UpstreamCall
from gwd.upstream import http_client
from gwd.upstream.base import Timeouts, Upstream, UpstreamFault
from gwd.upstream.http_client import HttpClient

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter, int], Awaitable[None]]


class Server:
    """Runs `talk` for each connection, numbered from 1, and keeps the requests it read."""

    def __init__(self, talk: Talk) -> None:
        self.talk = talk
        self.connections = 0
        self.requests: list[bytes] = []
        self.port = 0

    async def request(self, reader: asyncio.StreamReader) -> bytes:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        whole = head + await reader.readexactly(length)
        self.requests.append(whole)
        return whole

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            await self.talk(reader, writer, self.connections)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def call(self, body: bytes = b"{}", **headers: str) -> UpstreamCall:
        return UpstreamCall(
            url=f"http://127.0.0.1:{self.port}/v1/x?y=1", headers=headers, body=body, stream=False
        )


@pytest.fixture
async def client() -> AsyncIterator[Upstream]:
    made = HttpClient(Timeouts(connect_s=2.0))
    yield made
    await made.close()


async def started(talk: Talk) -> tuple[Server, asyncio.Server]:
    server = Server(talk)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.port = listening.sockets[0].getsockname()[1]
    return server, listening


def answers(*replies: bytes) -> Talk:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _: int) -> None:
        for reply in replies:
            await reader.readuntil(b"\r\n\r\n{}")
            writer.write(reply)
            await writer.drain()

    return talk


OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\ncontent-length: 2\r\n\r\n{}"


async def test_request_is_one_head_with_the_caller_s_headers_and_the_body(client: Upstream) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _: int) -> None:
        await server.request(reader)
        writer.write(OK)

    server, listening = await started(talk)
    async with listening:
        reply = await client.send(server.call(b'{"a":1}', authorization="Bearer x"), 5)
        assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
        assert await reply.read_all(5) == b"{}"
        reply.close()
    [sent] = server.requests
    head, _, body = sent.partition(b"\r\n\r\n")
    assert head.split(b"\r\n") == [
        b"POST /v1/x?y=1 HTTP/1.1",
        f"host: 127.0.0.1:{server.port}".encode(),
        b"accept-encoding: identity",
        b"authorization: Bearer x",
        b"content-length: 7",
    ]
    assert body == b'{"a":1}'


async def test_connection_is_used_again_after_a_whole_answer(client: Upstream) -> None:
    server, listening = await started(answers(OK, OK))
    async with listening:
        for _ in range(2):
            reply = await client.send(server.call(), 5)
            assert await reply.read_all(5) == b"{}"
            reply.close()
    assert server.connections == 1


async def test_connection_that_was_paused_hears_the_next_answer(
    client: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer that came whole but was given up unread has left its connection paused."""
    monkeypatch.setattr(http_client, "HIGH_WATER_BYTES", 100)
    large = b"HTTP/1.1 200 OK\r\ncontent-length: 5000\r\n\r\n" + b"x" * 5_000
    server, listening = await started(answers(large, OK))
    async with listening:
        reply = await client.send(server.call(), 5)
        await asyncio.sleep(0.05)
        reply.close()
        reply = await client.send(server.call(), 1)
        assert await reply.read_all(1) == b"{}"
        reply.close()
        assert server.connections == 1


async def test_connection_is_cut_when_the_answer_was_not_read_to_its_end(client: Upstream) -> None:
    half = b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n{}"
    server, listening = await started(answers(half, OK))
    async with listening:
        reply = await client.send(server.call(), 5)
        assert await reply.read(5) == b"{}"
        reply.close()
        reply = await client.send(server.call(), 5)
        reply.close()
    assert server.connections == 2


async def test_chunks_trailers_and_interim_answers_are_understood(client: Upstream) -> None:
    said = (
        b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n"
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
        b"3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\nx-trailer: 1\r\n\r\n"
    )
    server, listening = await started(answers(said))
    async with listening:
        reply = await client.send(server.call(), 5)
        assert await reply.read_all(5) == b"abcdefg"
        assert "x-trailer" not in reply.headers
        assert "link" not in reply.headers
        reply.close()


async def test_body_without_a_length_ends_with_the_connection(client: Upstream) -> None:
    server, listening = await started(answers(b"HTTP/1.1 200 OK\r\n\r\nabc"))
    async with listening:
        reply = await client.send(server.call(), 5)
        assert await reply.read_all(5) == b"abc"
        reply.close()


@pytest.mark.parametrize(
    "said",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab",
    ],
)
async def test_cut_body_is_a_network_fault(client: Upstream, said: bytes) -> None:
    server, listening = await started(answers(said))
    async with listening:
        reply = await client.send(server.call(), 5)
        with pytest.raises(UpstreamFault) as caught:
            await reply.read_all(5)
        reply.close()
    assert caught.value.fault.reason == "network"


NO_ANSWERS = [
    (b"", "network"),
    *(
        (said, "upstream_error")
        for said in (
            b"SSH-2.0\r\n",
            b"HTTP/1.1 200 OK\r\nx: " + b"y" * 20_000 + b"\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nx: " + b"y" * 40_000,
            b"HTTP/1.1 " + b"y" * 40_000,
            b"HTTP/1.1 200 " + b"y" * 40_000,
            b"HTTP/1.1 200 OK\r\n" + b"x" * 40_000,
            b"HTTP/1.1 100 Continue\r\n\r\n" * 40,
            b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
            b"HTTP/1.1\r\n\r\n",
            b"HTTP/1.1 \r\n\r\n",
            b"\r\n" * 20_000,
            *(
                b"HTTP/1.1 %b Odd\r\ncontent-length: 2\r\n\r\n{}" % status
                for status in (
                    *(b"000", b"001", b"99", b"099", b"600", b"700", b"999", b"1000", b"2000"),
                    *(b"-1", b"20", b"2", b"0", b"20x", b"", b"two"),
                )
            ),
        )
    ),
]


async def test_what_is_no_answer_fails_at_once_and_is_not_sent_again(client: Upstream) -> None:
    """Also where the vendor keeps the connection open: nothing may be waited for."""

    wrong: list[tuple[object, ...]] = []
    for said, reason in NO_ANSWERS:

        async def talk(
            reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _: int, said: bytes = said
        ) -> None:
            await reader.readuntil(b"\r\n\r\n{}")
            writer.write(said)
            await writer.drain()
            if said:
                await reader.read()

        server, listening = await started(talk)
        async with listening:
            try:
                async with asyncio.timeout(3):
                    await client.send(server.call(), 60)
                wrong.append((said[:40], "an answer"))
            except UpstreamFault as broken:
                if (broken.fault.reason, server.connections) != (reason, 1):
                    wrong.append((said[:40], broken.fault.reason, server.connections))
            except TimeoutError:
                wrong.append((said[:40], "nothing"))
    assert wrong == []


async def test_framing_without_content_is_given_up(client: Upstream) -> None:
    """An endless chunk extension, an endless trailer: the parser takes them for ever and tells nothing."""
    head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n"
    for endless in (b"2;" + b"x" * 200_000, b"0\r\nx: " + b"y" * 200_000):
        server, listening = await started(answers(head + endless))
        async with listening:
            reply = await client.send(server.call(), 5)
            with pytest.raises(UpstreamFault):
                await reply.read_all(5)
            reply.close()


async def test_call_on_an_idle_connection_that_breaks_at_once_goes_out_once_more(
    client: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_client, "IDLE_S", 0.0)

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, place: int) -> None:
        await server.request(reader)
        writer.write(OK)
        await writer.drain()
        if place == 1:
            await reader.readuntil(b"\r\n\r\n")  # the second call is read, then dropped

    server, listening = await started(talk)
    async with listening:
        for _ in range(2):
            reply = await client.send(server.call(), 5)
            assert await reply.read_all(5) == b"{}"
            reply.close()
    assert server.connections == 2


async def test_call_that_breaks_on_a_busy_connection_is_not_sent_again(client: Upstream) -> None:
    server, listening = await started(answers(OK, b""))
    async with listening:
        reply = await client.send(server.call(), 5)
        await reply.read_all(5)
        reply.close()
        with pytest.raises(UpstreamFault):
            await client.send(server.call(), 5)
    assert server.connections == 1


async def test_silence_is_a_timeout_before_the_head_and_in_the_body(client: Upstream) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, place: int) -> None:
        await server.request(reader)
        if place == 2:
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc")
        await reader.read()

    server, listening = await started(talk)
    async with listening:
        with pytest.raises(UpstreamFault) as caught:
            await client.send(server.call(), 0.1)
        assert caught.value.fault.reason == "timeout"
        reply = await client.send(server.call(), 5)
        assert await reply.read(5) == b"abc"
        with pytest.raises(UpstreamFault) as caught:
            await reply.read(0.1)
        assert caught.value.fault.reason == "timeout"
        reply.close()


@pytest.mark.alone
async def test_each_wait_has_its_own_deadline_however_the_one_before_ended(
    client: Upstream,
) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _: int) -> None:
        await server.request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n")
        for _ in range(6):
            await asyncio.sleep(0.1)
            writer.write(b"abc")
        await reader.read()

    server, listening = await started(talk)
    async with listening:
        reply = await client.send(server.call(), 30)
        for _ in range(6):
            assert await reply.read(0.3) == b"abc"  # together they take longer than any one may
        began_s = asyncio.get_running_loop().time()
        with pytest.raises(UpstreamFault) as caught:
            await reply.read(0.1)
        assert caught.value.fault.reason == "timeout"
        assert 0.09 <= asyncio.get_running_loop().time() - began_s < 0.3
        reply.close()


async def test_fast_vendor_and_slow_reader_do_not_fill_the_memory(
    client: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = 20_000_000
    sent = 0

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _: int) -> None:
        nonlocal sent
        await server.request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % size)
        for _ in range(size // 100_000):
            writer.write(b"x" * 100_000)
            await writer.drain()
            sent += 100_000

    server, listening = await started(talk)
    async with listening:
        reply = await client.send(server.call(), 5)
        await asyncio.sleep(0.3)
        assert sent < size
        assert len(await reply.read_all(10)) == size
        reply.close()


async def test_answer_that_is_too_large_is_given_up(
    client: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_client, "MAX_BODY_BYTES", 10)
    server, listening = await started(
        answers(b"HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\n" + b"x" * 20)
    )
    async with listening:
        with pytest.raises(UpstreamFault) as caught:
            await client.send(server.call(), 5)
    assert caught.value.fault.reason == "upstream_error"


@pytest.mark.parametrize("value", ["a\r\nx: y", "é", "\0"])
async def test_header_that_cannot_be_sent_is_a_fault_before_anything_is(
    client: Upstream, value: str
) -> None:
    server, listening = await started(answers(OK))
    async with listening:
        with pytest.raises(UpstreamFault):
            await client.send(server.call(x=value), 5)
    assert server.connections == 0


async def test_cancelled_calls_leave_their_places_in_flight_to_others(
    client: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, place: int) -> None:
        await server.request(reader)
        if place <= 3:
            await reader.read()  # until the caller leaves
            return
        while True:
            writer.write(OK)
            await server.request(reader)

    assert isinstance(client, HttpClient)
    monkeypatch.setattr(client, "_in_flight", asyncio.Semaphore(3))
    server, listening = await started(talk)
    async with listening:
        calls = [asyncio.create_task(client.send(server.call(), 5)) for _ in range(3)]
        await asyncio.sleep(0.1)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        for _ in range(4):
            reply = await client.send(server.call(), 2)
            await reply.read_all(2)
            reply.close()


async def test_nobody_there_is_a_network_fault(client: Upstream) -> None:
    server, listening = await started(answers())
    listening.close()
    await listening.wait_closed()
    with pytest.raises(UpstreamFault) as caught:
        await client.send(server.call(), 5)
    assert caught.value.fault.reason == "network"
