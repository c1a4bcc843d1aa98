"""A vendor format that this gateway does not have: its folder, one line of the list, and it is served."""

import asyncio
import importlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from gwd.vendors.formats import ADAPTERS
from tests.flows.frames import frames_of, text_of
from tests.support.node import Gateway, Nodes

FOLDER = {
    "__init__.py": """
from tiny_say.adapter import ADAPTER

__all__ = ["ADAPTER"]
""",
    "format.py": """
from gwd.core.vendor_format import VendorFormat

FORMAT = VendorFormat(name="tiny_say", least_output=8, no_field_for=frozenset(("top_k",)))
""",
    "adapter.py": """
import msgspec

from gwd.core.errors import InvalidRequest
from gwd.core.events import Failed, Finished, PartDelta, PartEnded, PartStarted, Started
from gwd.core.request import Generate, TextPart
from gwd.core.target import UpstreamCall
from gwd.core.usage import Usage
from gwd.vendors.base import UndecodableError
from gwd.vendors.faults import fault_of
from tiny_say.format import FORMAT


class Decoder:
    # One word a frame; `end` and two counts stand in the last.
    usage = None
    given = None

    def __init__(self):
        self._begun = self._ended = False

    def feed(self, frame):
        return self.said(frame.data.decode())

    def said(self, word):
        events = [] if self._begun else [Started(), PartStarted(0, "text")]
        self._begun = True
        return [*events, *(self._end(word) if word.startswith("end ") else [PartDelta(0, word)])]

    def _end(self, text):
        _, prompt, answer = text.split()
        self.usage = Usage(input=int(prompt), output=int(answer))
        self._ended = True
        return [PartEnded(0), Finished("stop", usage=self.usage)]

    def close(self):
        return [] if self._ended else [Failed(fault_of(502, {}, b""))]


class TinySay:
    format = FORMAT
    signatures = None

    def build(self, request, target):
        if not isinstance(request.body, Generate):
            raise InvalidRequest("it says texts")
        said = [part.text for message in request.body.messages for part in message.parts
                if isinstance(part, TextPart)]
        cap = max(request.body.max_output_tokens or 0, FORMAT.least_output)
        return UpstreamCall(
            url=target.base_url + "/say",
            headers={"x-key": target.credential.secret, "content-type": "application/json"},
            body=msgspec.json.encode({"say": said, "cap": cap, "stream": request.stream}),
            stream=request.stream,
            output_cap=cap,
        )

    def takes(self, part, request, target):
        return False

    def decode(self, body, request, target):
        *words, end = body.decode().split("|")
        if not end.startswith("end "):
            raise UndecodableError("it has no end")
        decoder = Decoder()
        return [event for word in [*words, end] for event in decoder.said(word)]

    def decoder(self, request, target):
        return Decoder()

    def without_signatures(self, request):
        return request

    def fault(self, status, headers, body):
        return fault_of(status, headers, body)


ADAPTER = TinySay()
""",
}
COMPLETE = "end 5 2"


class Vendor:
    """Speaks the format: says back what it was told, one connection a call; it keeps the bodies."""

    def __init__(self) -> None:
        self.heard: list[dict[str, Any]] = []
        self.status = 200
        self.url = ""

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Vendor"]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with server:
            yield self

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer):
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = int(head.split(b"content-length: ")[1].split(b"\r\n")[0])
            asked = json.loads(await reader.readexactly(length))
            self.heard.append(asked | {"head": head.decode()})
            words = [*asked["say"], " indeed", COMPLETE]
            kind, body = "text/plain", "|".join(words)
            if self.status != 200:
                kind, body = "application/json", '{"error": {"message": "busy"}}'
            elif asked["stream"]:
                kind, body = "text/event-stream", "".join(f"data: {word}\n\n" for word in words)
            answer = (
                f"HTTP/1.1 {self.status} X\r\nContent-Type: {kind}\r\nConnection: close\r\n\r\n"
            )
            writer.write(answer.encode() + body.encode())
            await writer.drain()


@pytest.fixture
def registered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The format's folder, and its line."""
    folder = tmp_path / "formats" / "tiny_say"
    folder.mkdir(parents=True)
    for name, text in FOLDER.items():
        (folder / name).write_text(text)
    monkeypatch.syspath_prepend(folder.parent)
    module = importlib.import_module("tiny_say")
    monkeypatch.setattr("gwd.wiring.ADAPTERS", (*ADAPTERS, module.ADAPTER))


@pytest.mark.usefixtures("registered")
async def test_a_new_format_is_its_folder_and_one_line(tmp_path: Path) -> None:
    nodes = Nodes(tmp_path)
    management_key = nodes.init()
    async with Vendor().running() as vendor, nodes.running() as running:
        gateway = Gateway(running, vendor, management_key)  # type: ignore[arg-type]
        try:
            await _serve(gateway, vendor)
            await gateway.verify()
        finally:
            await gateway.client.aclose()
            await gateway.operator.aclose()


async def _serve(gateway: Gateway, vendor: Vendor) -> None:
    unknown = {"slug": "x", "name": "x", "adapter": "shout", "base_url": vendor.url}
    refused = await gateway.manage("POST", "/catalog/providers", unknown, status=400)
    assert refused["error"]["message"].endswith("openai_embeddings, tiny_say")
    await gateway.add_provider("tiny", "tiny_say", vendor.url)
    await gateway.add_model("tiny/talker", pricing={"prompt": "0.0001", "completion": "0.0002"})
    await gateway.add_endpoint("tiny/talker", "tiny", "talker-1")
    key, _ = await gateway.new_key()
    gateway.client.headers["authorization"] = f"Bearer {key}"

    # Whole and streamed, through dialects that have never heard of it, and billed by its counts.
    whole = await gateway.chat("hi", model="tiny/talker", max_tokens=3)
    assert whole.json()["choices"][0]["message"]["content"] == "hi indeed"
    record = await gateway.generation(whole)
    assert (record["tokens_prompt"], record["tokens_completion"]) == (5, 2)
    assert record["total_cost"] == 0.0009
    assert vendor.heard[0]["cap"] == 8  # its least; the client's three are below that
    assert "x-key: sk-demo-0000" in vendor.heard[0]["head"]
    streamed = await gateway.chat("yes", model="tiny/talker", stream=True)
    assert text_of(frames_of(streamed.text)) == "yes indeed"
    messages = {
        "model": "tiny/talker",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "so"}],
    }
    said = await gateway.client.post("/messages", json=messages)
    assert said.json()["content"][0]["text"] == "so indeed"

    # What the format says of itself decides where requests may go.
    fields = {"top_k": 3, "provider": {"require_parameters": True}}
    lacking = await gateway.chat("hi", model="tiny/talker", **fields)
    assert lacking.status_code == 404
    assert "top_k" in lacking.text
    picture = [{"type": "image_url", "image_url": {"url": "https://a.example/p.png"}}]
    unseen = await gateway.client.post(
        "/chat/completions",
        json={"model": "tiny/talker", "messages": [{"role": "user", "content": picture}]},
    )
    assert unseen.status_code == 400
    assert "by their address" in unseen.text

    # Its faults, the operator's test call and the counters know it too.
    vendor.status = 529
    busy = await gateway.chat("hi", model="tiny/talker")
    assert busy.status_code == 503
    vendor.status = 200
    tested = await gateway.manage("POST", "/catalog/providers/tiny/test", {})
    assert tested["data"]["ok"] is True
    host = gateway.base_url.removesuffix("/api/v1")
    metrics = (await gateway.operator.get(f"{host}/metrics")).text
    assert 'gwd_upstream_attempts_total{adapter="tiny_say",reason="overloaded"} 1.0' in metrics
