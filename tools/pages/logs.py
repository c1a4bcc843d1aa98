"""docs/logs.md and docs/logs.schema.json: every field that a line of the JSON log may have."""

import json
from typing import Any, get_args

import msgspec
from msgspec import Meta

from gwd.node.log import LogError, LogLine
from tools.pages.markdown import page as whole
from tools.pages.markdown import table

_INTRODUCTION = """\
The log goes to standard error, one event after the other. `[logging] format = "json"` makes each line one JSON object
in ASCII with no other fields than these; [logs.schema.json](logs.schema.json) is the same as a JSON Schema.
`[logging] requests = true` writes a line of the logger `gwd.requests` for every request of inference that has a record;
refusals that a client can repeat at will (rate limit, a key that may not act) have none.

What was asked and answered, headers, bodies, query strings and secrets are never in it. The text of an error that is
neither the gateway's, the system's nor SQLite's is left out: its class and where it came from are there."""

_EXAMPLE = """\
```json
{"time":"2026-11-01T09:12:44.031Z","level":"info","logger":"gwd.requests",
 "event":"request %s: %s, %d tokens in, %d out, %s ms",
 "message":"request succeeded: openai/gpt-5, 12 tokens in, 34 out, 812 ms",
 "request_id":"req_…","generation_id":"gen-…","organization_id":"org_…","key_id":"key_…","dialect":"chat_completions",
 "model":"openai/gpt-5","provider":"openai","status":"succeeded","finish_reason":"stop","streamed":true,"attempts":1,
 "tokens_prompt":12,"tokens_completion":34,"cost_nano":355000,"ttft_ms":390,"latency_ms":812}
```

`event` is the sentence without its values: count and search by it."""


_WORDS = {
    "string": "text",
    "integer": "number",
    "boolean": "true or false",
    "array": "list of texts",
    "object": "object",
}


def page() -> str:
    """The page."""
    return whole(
        "Logs",
        _INTRODUCTION,
        _EXAMPLE,
        "## Fields",
        table(("field", "type", "there", "meaning"), _rows(LogLine)),
        "## `error`",
        table(("field", "type", "there", "meaning"), _rows(LogError)),
    )


def schema() -> str:
    """The same for programs."""
    made = msgspec.json.schema(LogLine)
    for record in made["$defs"].values():
        record["additionalProperties"] = False
    made = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "gwd log", **made}
    return json.dumps(made, indent=2) + "\n"


def _rows(kind: type[msgspec.Struct]) -> list[tuple[str, str, str, str]]:
    described = msgspec.json.schema(kind)["$defs"][kind.__name__]["properties"]
    return [
        (
            f"`{field.name}`",
            _type(described[field.name]),
            "always" if field.required else "where known",
            next(meta.description or "" for meta in get_args(field.type) if isinstance(meta, Meta)),
        )
        for field in msgspec.structs.fields(kind)
    ]


def _type(described: dict[str, Any]) -> str:
    """In words; what may be null is left out instead."""
    kinds = described.get("anyOf", [described])[0]
    if "enum" in kinds:
        return ", ".join(f"`{name}`" for name in kinds["enum"])
    return _WORDS[kinds.get("type", "object")]
