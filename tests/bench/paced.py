"""Paced streams: the vendor that sends them and the client that reads them.

paced.py serve PORT GAP_MS SSEFILE      every POST gets the file's events one by one, GAP_MS apart
paced.py load URL CONNECTIONS SECONDS BODYFILE [Header=Value ...]
    so many connections, each asking for one stream after another; prints one line of JSON
"""

import asyncio
import contextlib
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

END = b"0\r\n\r\n"
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


class Vendor(asyncio.Protocol):
    """Answers each request with the events, at its pace."""

    def __init__(self, events: list[bytes], gap_s: float) -> None:
        self._events, self._gap_s = events, gap_s
        self._loop = asyncio.get_running_loop()
        self._buffer = b""
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, end, rest = self._buffer.partition(b"\r\n\r\n")
        _, found, text = head.lower().partition(b"content-length:")
        length = int(text.split(b"\r\n", 1)[0]) if found else 0
        if not end or len(rest) < length:
            return
        self._buffer = rest[length:]
        self._transport.write(HEAD)
        self._tick(0, self._loop.time())

    def _tick(self, number: int, at_s: float) -> None:
        event = self._events[number]
        is_last = number + 1 == len(self._events)
        chunk = b"%x\r\n%s\r\n" % (len(event), event)
        self._transport.write(chunk + END if is_last else chunk)
        if not is_last:
            at_s += self._gap_s
            self._timer = self._loop.call_at(at_s, self._tick, number + 1, at_s)


class Seen:
    """What all readers have seen together."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.first_bytes_s: list[float] = []
        self.streams_s: list[float] = []


class Reader(asyncio.Protocol):
    """Asks for a stream, reads it to its end, asks for the next."""

    def __init__(self, request: bytes, seen: Seen) -> None:
        self._request, self._seen = request, seen
        self._tail = b""
        self._sent_s = 0.0
        self._waits = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass
        self._ask()

    def connection_lost(self, exc: Exception | None) -> None:
        self._seen.counts["lost"] += 1

    def data_received(self, data: bytes) -> None:
        seen = self._seen
        if self._waits:
            self._waits = False
            seen.first_bytes_s.append(time.perf_counter() - self._sent_s)
            seen.counts["bad"] += not data.startswith(b"HTTP/1.1 200")
        seen.counts["events"] += data.count(b"data: ")
        self._tail = (self._tail + data)[-len(END) :]
        if self._tail == END:
            seen.counts["streams"] += 1
            seen.streams_s.append(time.perf_counter() - self._sent_s)
            self._ask()

    def _ask(self) -> None:
        self._tail, self._waits, self._sent_s = b"", True, time.perf_counter()
        self._transport.write(self._request)


async def serve(port: int, gap_s: float, events: list[bytes]) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: Vendor(events, gap_s), "127.0.0.1", port, backlog=2048
    )
    await server.serve_forever()


async def load(url: str, connections: int, seconds: float, body: bytes, headers: list[str]) -> None:
    parts = urlsplit(url)
    place = parts.hostname or "", parts.port or 80
    lines = [f"POST {parts.path} HTTP/1.1", f"host: {parts.netloc}"]
    lines += ["content-type: application/json", f"content-length: {len(body)}"]
    lines += [": ".join(header.split("=", 1)) for header in headers]
    request = "\r\n".join([*lines, "", ""]).encode() + body
    seen, loop = Seen(), asyncio.get_running_loop()
    for number in range(connections):
        await loop.create_connection(lambda: Reader(request, seen), *place)
        if number % 20 == 19:
            await asyncio.sleep(0.02)
    await asyncio.sleep(0.5)
    before, began_s = seen.counts["events"], time.perf_counter()
    print("START", flush=True)
    await asyncio.sleep(seconds)
    events, elapsed_s = seen.counts["events"] - before, time.perf_counter() - began_s
    print("STOP", flush=True)
    reported = {
        "connections": connections,
        "events": events,
        "events_s": round(events / elapsed_s),
        "streams": seen.counts["streams"],
        "bad": seen.counts["bad"],
        "lost": seen.counts["lost"],
        "ttfb99_ms": quantile_ms(seen.first_bytes_s, 0.99),
        "stream50_ms": quantile_ms(seen.streams_s, 0.5),
    }
    print(json.dumps(reported), flush=True)


def quantile_ms(seconds: list[float], share: float) -> float:
    if not seconds:
        return -1
    return round(sorted(seconds)[min(len(seconds) - 1, int(len(seconds) * share))] * 1e3, 2)


if __name__ == "__main__":
    with contextlib.suppress(ImportError):
        import uvloop  # type: ignore[import-not-found, unused-ignore]

        uvloop.install()
    match sys.argv[1:]:
        case ["serve", port_, gap_ms, file]:
            frames = [event + b"\n\n" for event in Path(file).read_bytes().split(b"\n\n") if event]
            asyncio.run(serve(int(port_), float(gap_ms) / 1e3, frames))
        case ["load", url_, count, duration, file, *given]:
            asyncio.run(load(url_, int(count), float(duration), Path(file).read_bytes(), given))
        case _:
            sys.exit(__doc__)
