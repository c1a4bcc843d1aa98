"""An open-loop client of fixed rate over HTTP/1.1.

    olc.py URL RATE SECONDS BODYFILE [Header=Value ...]

A request is sent at every tick, whether or not earlier ones are back; latency counts from the moment of sending.
Prints one line of JSON, times in microseconds.
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

ANSWER_LIMIT_S = 20
END_LIMIT_S = 25


class Connection(asyncio.Protocol):
    """One request at a time; knows the end of an answer by its length or its last chunk."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.answer: asyncio.Future[int] | None = None
        self.first_byte_s: float | None = None
        self._buffer = b""
        self._length: int | None = None
        self._status = 0
        self._is_chunked = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        if self.answer is not None and not self.answer.done():
            self.answer.set_exception(ConnectionError("lost"))

    def send(self, request: bytes) -> asyncio.Future[int]:
        assert self.transport is not None
        self._buffer, self._length, self._is_chunked = b"", None, False
        self.first_byte_s = None
        self.answer = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return self.answer

    def data_received(self, data: bytes) -> None:
        if self.first_byte_s is None:
            self.first_byte_s = time.perf_counter()
        self._buffer += data
        if self._length is None and not self._read_head():
            return
        assert self._length is not None
        is_whole = (
            self._buffer.endswith(b"0\r\n\r\n")
            if self._is_chunked
            else len(self._buffer) >= self._length
        )
        if is_whole and self.answer is not None and not self.answer.done():
            self.answer.set_result(self._status)

    def _read_head(self) -> bool:
        head, end, _ = self._buffer.partition(b"\r\n\r\n")
        if not end:
            return False
        head = head.lower()
        self._status = int(head[9:12])
        self._is_chunked = b"transfer-encoding: chunked" in head
        _, found, rest = head.partition(b"content-length:")
        length = int(rest.split(b"\r\n", 1)[0]) if found else 0
        self._length = len(head) + len(end) + length
        return True


class Client:
    """Sends on kept connections, opens one where none is free, and keeps the times."""

    def __init__(self, url: str, body: bytes, headers: list[str]) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port or 80
        lines = [f"POST {parts.path} HTTP/1.1", f"host: {parts.netloc}"]
        lines += ["content-type: application/json", f"content-length: {len(body)}"]
        lines += [": ".join(header.split("=", 1)) for header in headers]
        self._request = "\r\n".join([*lines, "", ""]).encode() + body
        self._free: list[Connection] = []
        self.latencies_s: list[float] = []
        self.first_bytes_s: list[float] = []
        self.errors: Counter[str] = Counter()

    async def one(self) -> None:
        try:
            connection = await self._connection()
            sent_s = time.perf_counter()
            status = await asyncio.wait_for(connection.send(self._request), ANSWER_LIMIT_S)
        except (OSError, TimeoutError) as error:
            self.errors[type(error).__name__] += 1
            return
        if status == 200:
            assert connection.first_byte_s is not None
            self.latencies_s.append(time.perf_counter() - sent_s)
            self.first_bytes_s.append(connection.first_byte_s - sent_s)
        else:
            self.errors[str(status)] += 1
        self._free.append(connection)

    async def _connection(self) -> Connection:
        while self._free:
            kept = self._free.pop()
            if kept.transport is not None:
                return kept
        loop = asyncio.get_running_loop()
        return (await loop.create_connection(Connection, self._host, self._port))[1]


async def main(url: str, rate: float, seconds: float, body: bytes, headers: list[str]) -> None:
    client = Client(url, body, headers)
    start_s = time.perf_counter() + 0.2
    running = []
    for number in range(int(rate * seconds)):
        rest_s = start_s + number / rate - time.perf_counter()
        if rest_s > 0:
            await asyncio.sleep(rest_s)
        running.append(asyncio.create_task(client.one()))
    await asyncio.wait(running, timeout=END_LIMIT_S)
    elapsed_s = time.perf_counter() - start_s
    reported = {
        "rate": rate,
        "done": len(client.latencies_s),
        "err": dict(client.errors),
        "rps": round(len(client.latencies_s) / elapsed_s, 1),
        "p50": quantile_us(client.latencies_s, 0.5),
        "p90": quantile_us(client.latencies_s, 0.9),
        "p99": quantile_us(client.latencies_s, 0.99),
        "ttfb50": quantile_us(client.first_bytes_s, 0.5),
        "ttfb99": quantile_us(client.first_bytes_s, 0.99),
    }
    print(json.dumps(reported))


def quantile_us(seconds: list[float], share: float) -> int:
    if not seconds:
        return -1
    return round(sorted(seconds)[min(len(seconds) - 1, int(len(seconds) * share))] * 1e6)


if __name__ == "__main__":
    with contextlib.suppress(ImportError):
        import uvloop  # type: ignore[import-not-found, unused-ignore]

        uvloop.install()
    arguments = sys.argv[1:]
    payload = Path(arguments[3]).read_bytes()
    asyncio.run(
        main(arguments[0], float(arguments[1]), float(arguments[2]), payload, arguments[4:])
    )
