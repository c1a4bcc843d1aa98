"""Reading the answers of a gateway in tests."""

import json
from typing import Any

import httpx


def frames_of(text: str) -> list[Any]:
    """The JSON of every data line."""
    return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]


def text_of(frames: list[Any]) -> str:
    """The answer's text in a chat stream."""
    return "".join(
        choice["delta"].get("content") or "" for f in frames for choice in f.get("choices", ())
    )


def receipt_of(reply: httpx.Response) -> Any:
    """The receipt of a chat answer or error, whole or streamed."""
    if reply.headers["content-type"].startswith("text/event-stream"):
        last = frames_of(reply.text)[-1]
        if "gateway_metadata" in last:
            return last["gateway_metadata"]
        errors = [f["error"] for f in frames_of(reply.text) if "error" in f]
        return errors[0]["metadata"]["gateway_metadata"]
    body = reply.json()
    if "error" in body:
        return body["error"]["metadata"]["gateway_metadata"]
    return body["gateway_metadata"]


def error_of(reply: httpx.Response) -> Any:
    """The error a chat client sees, in the body or the first in the stream; fails if there is none."""
    if reply.headers["content-type"].startswith("text/event-stream"):
        return next(f["error"] for f in frames_of(reply.text) if "error" in f)
    return reply.json()["error"]
