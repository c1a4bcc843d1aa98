"""docs/api.md: every route by the noun it is about, made from the document that the node serves at /openapi.json."""

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

from gwd.api.openapi import document
from tools.pages.markdown import page as whole
from tools.pages.markdown import table

Json = dict[str, Any]

_INTRODUCTION = """\
The base path is `/api/v1`; `/v1` serves the same. A running node has the same in a form for programs, OpenAPI 3.1, at
`/api/v1/openapi.json`; this page is made from it. In the examples `$GATEWAY` is a node's address up to the base path,
such as `http://127.0.0.1:8080/api/v1`, and `$KEY` a key of it.

**Keys.** A key is sent as `Authorization: Bearer KEY`, or as `x-api-key: KEY`. Inference keys (`gwi_…`) ask models,
management keys (`gwm_…`) do everything else, as far as their role goes: each route names the right that it needs, and
the roles that have it.

**Bodies** are JSON. A field of a management body that is not in its table is an error, and so is an unknown query
parameter; an inference body may hold more, which is passed on to vendors of the same dialect. Amounts are US dollars:
a number, or a text such as `"12.50"`. Times are ISO 8601 with an offset: `2026-11-27T22:00:00Z`. In a PATCH what is
absent stays, and null clears where a table says that it may be null.

**Answers** hold one record under `data`, or a page of records with `total_count`. Lists that grow at their head have
`next` and `previous`, too: give them as `after` and `before` to go on until `next` is null. Their `total_count` is null
in a walk, and where there are more than 10,000. A page for which 20,000 records were looked at is cut short: it holds
few records, or none, and its `next` leads on; an `offset` beyond that is a 400.

**Errors** are `{"error": {…}}` with [type, code, message, param, status and metadata](#errordetail); those of the
messages dialect are [its own](#messageserrorenvelope). The codes are in [errors.md](errors.md). Beside the statuses
that a route names, every route can answer 400 (the request is wrong), 408 (it took too long to arrive), 413 (it is too
large), 415 (it is not JSON), 500 (the gateway's fault) and 503 (not now), and every route with a key 401, 403 and 429.

**Again.** A POST with the header `Idempotency-Key` changes something once: a repetition with the same key and body gets
the first answer, without secrets."""
_EVERYWHERE = {"400", "401", "403", "408", "413", "415", "429", "500", "503"}
_PAGED = {"data", "total_count", "next", "previous"}
_EXAMPLES: Json = {
    "name": "web",
    "email": "ada@example.com",
    "slug": "openai",
    "base_url": "https://api.openai.com/v1",
    "id": "openai/gpt-5",
    "model": "openai/gpt-5",
    "provider": "openai",
    "upstream_model": "gpt-5",
    "vendor": "OpenAI",
    "context_length": 400000,
    "max_completion_tokens": 128000,
    "supported_parameters": ["temperature", "tools"],
    "user_ids": ["usr_…"],
    "token": "…",
    "path": "/keys",
    "note": "paid back",
    "reason": "booked twice",
    "amount": 25,
    "limit": 100,
    "limit_usd": 100,
    "month": "2026-11",
    "key": "key_…",
    "user": "usr_…",
    "invitation": "inv_…",
    "session": "ses_…",
    "event": "evt_…",
    "destination": "dst_…",
    "delivery": "dlv_…",
    "type": "email",
    "from": "2026-11-01T00:00:00Z",
    "workspace": "default",
    "organization": "org_…",
    "budget": "bud_…",
    "interval": "monthly",
    "endpoint": "ep_…",
    "credential": "pk_…",
    "byok": "pk_…",
}


def page() -> str:
    """The page."""
    written = document()
    schemas = written["components"]["schemas"]
    parts = []
    for tag in written["tags"]:
        routes = [
            _route(method, path, operation, schemas)
            for path, methods in written["paths"].items()
            for method, operation in methods.items()
            if operation["tags"] == [tag["name"]]
        ]
        parts.append(f"## {tag['name'].capitalize()}\n\n{tag['description']}")
        if tag["name"] == "inference":
            parts.append(_headers(written["paths"]["/chat/completions"]["post"]))
        parts += routes
    parts.append(
        "## Records\n\nWhat the tables above link to: what bodies and answers are made of."
    )
    parts += [
        _record(name, schema)
        for name, schema in schemas.items()
        if "properties" in schema and not name.startswith(("One_", "Listed_", "Walked_"))
    ]
    return whole("The API", _INTRODUCTION, *parts)


def _route(method: str, path: str, operation: Json, schemas: Json) -> str:
    parts = [f"### `{method.upper()} {path}`", operation["summary"], operation["description"]]
    parameters = [each for each in operation["parameters"] if each["in"] != "header"]
    if parameters:
        rows: list[tuple[str, str, str, str]] = [
            (
                f"`{parameter['name']}`" + (", required" if parameter.get("required") else ""),
                parameter["in"],
                _kind(parameter["schema"]),
                parameter["description"] + _default(parameter["schema"]),
            )
            for parameter in parameters
        ]
        parts.append(table(("parameter", "in", "type", "what it is"), rows))
    if body := operation.get("requestBody"):
        schema = body["content"]["application/json"]["schema"]
        shown = _resolved(schema, schemas)
        required = {*shown.get("required", ()), *_more_required(schema)}
        fields = list(_fields(shown, required))
        titles = ("field", "type", "what it is")
        parts.append(table(titles, fields) if fields else "The body is empty.")
    parts.append(_answers(operation, schemas))
    others = [
        f"{status}: {_status(written)}"
        for status, written in operation["responses"].items()
        if "$ref" in written and status not in _EVERYWHERE
    ]
    if others:
        parts.append("Its other errors:\n\n" + "\n".join(f"- {other}." for other in others))
    parts.append(f"```sh\n{_curl(method, path, operation, schemas)}\n```")
    return "\n\n".join(part for part in parts if part)


def _answers(operation: Json, schemas: Json) -> str:
    good = {status: r for status, r in operation["responses"].items() if status.startswith("2")}
    content = next(iter(good.values()))["content"]
    schema = content["application/json"]["schema"]
    statuses = " (or 200 if it was there already)" if len(good) > 1 else ""
    head = f"Answers {next(s for s in good if s == '201' or len(good) == 1)}{statuses}"
    shown = _resolved(schema, schemas)
    data = shown.get("properties", {}).get("data")
    if data is not None and set(shown["properties"]) <= _PAGED:
        return f"{head} with `data`: {_kind(data)}."
    rows = list(_held(shown))
    stream = content.get("text/event-stream")
    if stream is not None:
        event = _kind(stream["schema"]["x-event"])
        head += f"; with `stream: true` server-sent events, the data of each {event}"
    if not rows:
        return f"{head}."
    return f"{head}:\n\n{table(('field', 'type', 'what it is'), rows)}"


def _record(name: str, schema: Json) -> str:
    is_sent = schema.get("additionalProperties") is False or name.endswith("Wire")
    rows = list(_fields(schema, set(schema.get("required", ()))) if is_sent else _held(schema))
    about = schema.get("description", "")
    parts = [f"### {name}", about, table(("field", "type", "what it is"), rows) if rows else ""]
    return "\n\n".join(part for part in parts if part)


def _fields(schema: Json, required: set[str]) -> Iterator[tuple[str, str, str]]:
    for name, field in schema.get("properties", {}).items():
        mark = ", required" if name in required else ""
        about = field.get("description", "") + _default(field)
        yield f"`{name}`{mark}", _kind(field), about


def _held(schema: Json) -> Iterator[tuple[str, str, str]]:
    """The fields of an answer; most are always there."""
    always = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        mark = "" if name in always or "default" in field else ", not always"
        yield f"`{name}`{mark}", _kind(field), field.get("description", "")


def _headers(operation: Json) -> str:
    rows = [
        (f"`{each['name']}`", each["description"])
        for each in operation["parameters"]
        if each["in"] == "header"
    ]
    answered = [
        (f"`{name}`", header["description"])
        for name, header in operation["responses"]["200"]["headers"].items()
    ]
    sent = table(("header of a request", "what it does"), rows)
    return f"{sent}\n\n{table(('header of an answer', 'what it says'), answered)}"


def _resolved(schema: Json, schemas: Json) -> Json:
    """The struct that a schema leads to."""
    if "allOf" in schema:
        return _resolved(schema["allOf"][0], schemas)
    reference = schema.get("$ref")
    return schemas[reference.rpartition("/")[2]] if reference else schema


def _more_required(schema: Json) -> list[str]:
    return [name for part in schema.get("allOf", ()) for name in part.get("required", ())]


def _kind(schema: Json) -> str:
    """A type in words, with a link where it is a record."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower().replace('.', '')})"
    if "anyOf" in schema:
        kinds = [_kind(each) for each in schema["anyOf"]]
        return ", ".join(
            [*(kind for kind in kinds if kind != "null"), *(["null"] * ("null" in kinds))]
        )
    if words := schema.get("enum") or [schema[name] for name in ("const",) if name in schema]:
        return ", ".join(
            f"`{word}`" if isinstance(word, str) else f"`{json.dumps(word)}`" for word in words
        )
    if schema.get("x-kind") == "usd":
        return "USD"
    return "time" if schema.get("format") == "date-time" else _plain(schema)


def _plain(schema: Json) -> str:
    kind = schema.get("type")
    match kind:
        case "array":
            return f"list of {_kind(schema.get('items', {}))}{_most(schema, 'maxItems')}"
        case "object":
            return "object"
        case "integer":
            return _span(schema) or "whole number"
        case "number" | ["number", "string"]:
            return "number"
        case "string":
            return f"text{_most(schema, 'maxLength')}"
        case "boolean":
            return "`true`, `false`"
        case "null":
            return "null"
        case _:
            return "any"


def _most(schema: Json, name: str) -> str:
    return f", at most {schema[name]:,}" if name in schema else ""


def _span(schema: Json) -> str:
    least, most = schema.get("minimum"), schema.get("maximum")
    if most is None:
        return "" if least is None else f"whole number from {least:,}"
    return f"{least or 0:,} to {most:,}"


def _default(schema: Json) -> str:
    value = schema.get("default")
    return "" if value in (None, [], {}, "") else f" If absent: `{json.dumps(value)}`."


def _status(response: Json) -> str:
    name = response["$ref"].rpartition("/")[2]
    text: str = document_responses()[name]["description"]
    return text[0].lower() + text.partition(" Codes:")[0][1:].rstrip(".")


@cache
def document_responses() -> Json:
    """The error answers by their names."""
    responses: Json = document()["components"]["responses"]
    return responses


def _curl(method: str, path: str, operation: Json, schemas: Json) -> str:
    for parameter in operation["parameters"]:
        if parameter["in"] == "path":
            path = path.replace(f"{{{parameter['name']}}}", str(_EXAMPLES[parameter["name"]]))
    asked = [p["name"] for p in operation["parameters"] if p["in"] == "query" and p["required"]]
    path += "".join(f"?{name}=gen-…" for name in asked)
    words = ["curl", f'"$GATEWAY{path}"']
    if method not in ("get", "post"):
        words.insert(1, f"-X {method.upper()}")
    if operation["security"] and {} not in operation["security"]:
        words.append('-H "Authorization: Bearer $KEY"')
    if body := operation.get("requestBody"):
        content = body["content"]["application/json"]
        sent = content.get("example") or _example(_resolved(content["schema"], schemas))
        text = json.dumps(sent, ensure_ascii=False)
        words.append("-H 'Content-Type: application/json' \\\n  -d '" + text + "'")
    return " ".join(words)


def _example(schema: Json) -> Json:
    """What is required; for a change of something its first field."""
    names = schema.get("required") or list(schema.get("properties", {}))[:1]
    return {name: _value(name, schema["properties"][name]) for name in names}


def _value(name: str, schema: Json) -> Any:
    for value in (schema.get("const"), next(iter(schema.get("enum", ())), None)):
        if value is not None:
            return value
    if name in _EXAMPLES:
        return _EXAMPLES[name]
    if "anyOf" in schema:
        return _value(name, schema["anyOf"][0])
    return {"boolean": True, "integer": 1, "array": [], "object": {}}.get(
        str(schema.get("type")), "…"
    )
