"""Calls with an inference key: finding one (or making one for an hour), streaming, receipts."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any

from gwctl import jsontext, text, time_input
from gwctl.client import sse_data
from gwctl.errors import NOT_ALLOWED, CommandError, from_error
from gwctl.profile import change_file
from gwctl.session import Session

HOUR = timedelta(hours=1)
WHOLE_ANSWER_S = 920  # the gateway itself gives up after 900


def inference_key(session: Session) -> str:
    """The key of the environment or the profile; else an offer to make one for an hour."""
    session.settings.require_known_profile()
    key = session.settings.secret("inference_key")
    if key and not _outlived(session):
        return key
    session.agree(
        "There is no inference key. Make one for an hour with a limit of 1 USD?",
        refused=CommandError(
            "there is no inference key",
            exit_code=NOT_ALLOWED,
            code="no_inference_key",
            why="GWCTL_INFERENCE_KEY is not set and the profile holds none that is still valid",
            do="set GWCTL_INFERENCE_KEY, or add --yes to make a one-hour key with a 1 USD limit",
        ),
    )
    expires = time_input.iso(time_input.utc_now() + HOUR)
    wanted = {"name": "gwctl-chat", "limit": Decimal(1), "expires_at": expires}
    key = str(session.api.post("/keys", wanted)["key"])
    session.out.note(f"made a key for an hour with a limit of 1 USD ({text.mask(key)})")
    _keep(session, key, expires)
    return key


def _keep(session: Session, key: str, expires: str) -> None:
    """Keep it for its hour: neither a person is asked again for every line, nor a script makes a hundred keys."""
    changes: dict[str, str | None] = {
        "inference_key": key,
        "inference_key_expires_at": expires,
        "inference_key_made_for": _made_for(session),
    }
    try:
        change_file(session.settings.path, session.settings.profile, changes)
    except CommandError as error:
        session.out.note(f"note: not kept for the next time: {error.what}")
        return
    session.out.note(f"kept in profile {session.settings.profile} until it expires")


def _outlived(session: Session) -> bool:
    """Whether the profile's key is one that was made for an hour, and the hour is over or it is another's."""
    if not session.settings.get("inference_key").origin.startswith("profile"):
        return False
    values = session.settings.values
    ends = text.parse_time(values.get("inference_key_expires_at"))
    if ends is None:
        return False
    return ends <= time_input.utc_now() or values.get("inference_key_made_for") != _made_for(
        session
    )


def _made_for(session: Session) -> str:
    """The gateway and the management key that made it; another one's key would spend another's money."""
    key = session.settings.get("key").value
    return f"{session.settings.url()} {text.mask(key) if key else ''}".strip()


def call(session: Session, path: str, body: Mapping[str, Any], *, receipt: bool = False) -> Any:
    """One whole answer."""
    headers = {"x-gw-metadata": "enabled"} if receipt else {}
    return session.anonymous.request(
        "POST",
        path,
        body=dict(body),
        headers=headers,
        key=inference_key(session),
        patience_s=WHOLE_ANSWER_S,
    )


def stream_chat(
    session: Session, body: Mapping[str, Any], *, receipt: bool
) -> Iterator[tuple[str, Any]]:
    """Pieces of an answer as they arrive: ("text", …), ("reasoning", …), ("end", last chunk)."""
    headers = {"accept": "text/event-stream"} | ({"x-gw-metadata": "enabled"} if receipt else {})
    last: dict[str, Any] = {}
    wanted = {**body, "stream": True}
    with session.anonymous.stream(
        "/chat/completions", wanted, key=inference_key(session), headers=headers
    ) as chunks:
        for event in sse_data(chunks):
            if event == "[DONE]":
                break
            try:
                chunk = jsontext.loads(event)
            except ValueError:
                raise CommandError("the stream holds what is not JSON", code="bad_stream") from None
            if chunk.get("error"):
                raise from_error(chunk["error"], request_id=str(chunk.get("id") or ""))
            for choice in chunk.get("choices") or []:
                delta = choice.get("delta") or {}
                if delta.get("reasoning"):
                    yield "reasoning", delta["reasoning"]
                if delta.get("content") or delta.get("refusal"):
                    yield "text", delta.get("content") or delta["refusal"]
            if chunk.get("usage"):
                last = chunk
    if not last:
        raise CommandError(
            "the stream ended before the answer was complete",
            code="stream_cut",
            why="no usage came before the connection closed",
            do="gwctl activity list --last 1h shows what was billed",
        )
    yield "end", last


def receipt_lines(receipt: Mapping[str, Any]) -> list[str]:
    """The route receipt as a person reads it."""
    routing = receipt.get("routing") or {}
    timing = receipt.get("timing_ms") or {}
    cost = receipt.get("cost") or {}
    pipeline = receipt.get("pipeline") or {}
    lines = [
        f"generation  {receipt.get('generation_id')}",
        f"model       {receipt.get('model')} ({receipt.get('vendor')})"
        + (
            f", asked for {receipt['requested_model']}"
            if receipt.get("requested_model") not in (None, receipt.get("model"))
            else ""
        ),
        f"routing     {routing.get('strategy')}, sort {routing.get('sort') or 'default'},"
        f" attempt {routing.get('attempt')} of {routing.get('attempts')},"
        f" {routing.get('eligible_endpoints')} eligible",
    ]
    lines += [
        f"failed      {tried.get('vendor')}: {tried.get('reason')}"
        f" after {tried.get('duration_ms')} ms"
        for tried in routing.get("fallbacks") or []
    ]
    if pipeline.get("sticky"):
        lines.append("sticky      it served this conversation last")
    if pipeline.get("forwarded_from"):
        lines.append(f"forwarded   from {pipeline['forwarded_from']}")
    lines.append(
        f"time        {timing.get('total')} ms in all, first token {timing.get('ttft')} ms,"
        f" routing {timing.get('routing')} ms"
    )
    classes = ("prompt", "cache_read", "cache_write", "completion", "reasoning")
    fees = ("request_fee", "web_search", "platform_fee")
    parts = [
        f"{name.replace('_', ' ')} {text.money(cost[name])}"
        for name in (*classes, *fees)
        if text.decimal(cost.get(name))
    ]
    notes = "".join(f", {word}" for word in ("insured", "byok") if cost.get(word))
    detail = f" ({', '.join(parts)})" if parts else ""
    lines.append(f"cost        {text.money(cost.get('total'))}{detail}{notes}")
    pricing = receipt.get("pricing") or {}
    lines += [
        f"factor      {field} {factor.get('value')}: tokens at {factor.get('factor')} times the list price"
        for field, factor in (pricing.get("modifiers") or {}).items()
    ]
    if pricing.get("searches"):
        each = text.money(pricing.get("web_search"))
        lines.append(f"searches    {pricing['searches']} by the vendor, {each} each")
    return lines
