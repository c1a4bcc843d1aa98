"""A vendor that speaks Gemini's format, as strict about a conversation as the real one; it plays scripted answers."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import zip_longest
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec

Json = dict[str, Any]


class GeminiVendor:
    """Notes each call's body and answers with the next of `script`: chunks of a stream, one answer, an error."""

    def __init__(self) -> None:
        self.script: list[list[Json] | Json] = []
        self.bodies: list[Json] = []
        self.paths: list[str] = []
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            line, *lines = head.strip().split("\r\n")
            headers = {name.lower(): value for name, value in (one.split(": ", 1) for one in lines)}
            body = msgspec.json.decode(
                await reader.readexactly(int(headers.get("content-length", "0")))
            )
            writer.write(self._answer(line.split()[1], headers, body))
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def _answer(self, target: str, headers: dict[str, str], body: Json) -> bytes:
        url = urlsplit(target)
        self.bodies.append(body)
        self.paths.append(url.path)
        if headers.get("x-goog-api-key") != "sk-demo-0000":
            return _refusal(
                400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."
            )
        if complaint := _complaint(body.get("contents", [])):
            return _refusal(400, "INVALID_ARGUMENT", complaint)
        answer = self.script.pop(0)
        streams = url.path.endswith(":streamGenerateContent")
        assert streams == isinstance(answer, list), "the script does not fit the call"
        assert not streams or parse_qs(url.query) == {"alt": ["sse"]}
        if isinstance(answer, list):
            frames = [b"data: " + msgspec.json.encode(one) + b"\r\n\r\n" for one in answer]
            return _reply(200, b"".join(frames), "text/event-stream")
        status = answer["error"]["code"] if "error" in answer else 200
        return _reply(status, msgspec.json.format(msgspec.json.encode(answer)))


def _complaint(turns: list[Json]) -> str | None:
    """What the real vendor answers 400 to (its pages on function calling and thought signatures)."""
    for turn, following in zip_longest(turns, turns[1:]):
        calls = [part for part in turn["parts"] if "functionCall" in part]
        if turn["role"] == "model" and calls:
            if "thoughtSignature" not in calls[0]:
                return "Function call is missing a thought_signature in functionCall parts."
            answers = [
                p["functionResponse"]
                for p in (following or turn)["parts"]
                if "functionResponse" in p
            ]
            if [a["name"] for a in answers] != [c["functionCall"]["name"] for c in calls]:
                return "Please ensure that the number of function response parts is equal to the number of calls."
        if any(part.get("text") == "" and len(part) == 1 for part in turn["parts"]):
            return "Unable to submit request because it must have a text parameter."
    return None


def _refusal(status: int, word: str, message: str) -> bytes:
    error = {"error": {"code": status, "message": message, "status": word}}
    return _reply(status, msgspec.json.encode([error]))


def _reply(status: int, body: bytes, kind: str = "application/json; charset=UTF-8") -> bytes:
    head = f"HTTP/1.1 {status} Scripted\r\ncontent-type: {kind}\r\nconnection: close\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


@asynccontextmanager
async def gemini_vendor() -> AsyncIterator[GeminiVendor]:
    vendor = GeminiVendor()
    server = await asyncio.start_server(vendor.serve, "127.0.0.1", 0)
    vendor.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield vendor
    finally:
        server.close()
        await server.wait_closed()
