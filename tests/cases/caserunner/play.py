"""One case from start to verdict: set up, play the exchanges, evaluate the assertions."""

import asyncio
import contextlib
import gzip
import json
import time
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from email.utils import format_datetime
from typing import Any

from .assertions import (
    BadCase,
    NothingThere,
    failure,
    fill,
    fill_assertion,
    find,
    load_json,
    plain_decimal,
)
from .gateway import FAKETIME_LIBRARY, SETUP_BEFORE_NOW_S, Gateway, Options, SetupError
from .preparation import Management, endpoint_names, spending_exchange
from .stream import Frame, Json, client_stream, text_of
from .vendors import Vendors
from .wire import LeaveWhen, Reply, send

SETTLE_LIMIT_S = 2.0
AFTER_LEAVING_S = 1.0  # a charge may come a moment after the client has left
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "identity": bytes,
    "gzip": gzip.compress,
    "deflate": zlib.compress,
}
OWN_PROCESS_FIXTURES = {"now", "tz", "env", "restart"}


@dataclass
class Result:
    case: Json
    verdict: str  # passed, failed, skipped
    reasons: list[str] = field(default_factory=list)
    last_words: str = ""


async def run_case(case: Json, options: Options) -> Result:
    fixture = case.get("fixture") or {}
    if options.base_url and fixture.keys() & OWN_PROCESS_FIXTURES:
        return Result(case, "skipped", ["needs a gateway process of its own"])
    if "now" in fixture and FAKETIME_LIBRARY is None and not options.warm:
        return Result(case, "skipped", ["libfaketime is not installed (Debian package faketime)"])
    gateway, vendors = Gateway(options, fixture), Vendors()
    try:
        await vendors.start(endpoint_names(fixture))
        await gateway.start(vendors)
        reasons = await CasePlay(case, fixture, gateway, vendors).play()
    except SetupError as error:
        reasons = [f"setup: {error}"]
    except BadCase as error:
        reasons = [f"case file: {error}"]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        reasons = [f"a management reply has another form than expected: {error!r}"]
    finally:
        await gateway.stop()
        vendors.stop()
    return Result(case, "failed" if reasons else "passed", reasons, gateway.last_words)


class CasePlay:
    def __init__(self, case: Json, fixture: Json, gateway: Gateway, vendors: Vendors) -> None:
        self._case = case
        self._fixture = fixture
        self._gateway = gateway
        self._vendors = vendors
        self._management = Management(gateway)
        self._names: dict[str, Any] = {}

    async def play(self) -> list[str]:
        """The failures of the first exchange that has any."""
        await self._set_up()
        for number, item in enumerate(self._case.get("before") or []):
            for time_number in range(item.get("times", 1)):
                failures = await self._exchange(item)
                if failures:
                    return [
                        f"before[{number}], time {time_number + 1}: {text}" for text in failures
                    ]
            if "advance_s" in item:
                await self._pass_time(item["advance_s"])
        return await self._exchange(self._case)

    async def _set_up(self) -> None:
        fixture, clock = self._fixture, self._gateway.clock
        prefix = ""
        if not self._gateway.is_own:
            await self._management.clear()
            prefix = f"case-{time.time_ns():x}-"
        if not self._gateway.has_catalogue:
            await self._management.catalogue(
                fixture, self._case["upstream_kind"], self._vendors, prefix
            )
        created = await self._management.money_and_key(fixture)
        self._names = {
            "key": created["key"],
            "key_id": created["data"]["id"],
            "management_key": self._gateway.management_key,
            "upstream_url": self._vendors.url("a", self._case["upstream_kind"]),
            "http_date": lambda seconds: format_datetime(
                self._now() + timedelta(seconds=seconds), usegmt=True
            ),
        }
        for budget in fixture.get("budgets", []):
            if clock:
                clock.set(budget["spent_at"])
            await self._management.budget(budget, created["data"])
            await self._spend(budget["spent_usd"])
        if clock:
            clock.set(fixture["now"], before_s=SETUP_BEFORE_NOW_S)
        if fixture.get("restart"):
            await self._gateway.restart()
        if clock:
            clock.set(fixture["now"])

    async def _spend(self, amount: str) -> None:
        before = await self._management.credits()
        body, answer = spending_exchange(amount)
        self._vendors.play("openai", answer)
        reply = await self._send({"method": "POST", "path": "/chat/completions", "body": body})
        charged = (await self._management.credits())["total_usage"] - before["total_usage"]
        if reply.status != 200 or charged != Decimal(amount):
            raise SetupError(
                f"spending {amount} USD: status {reply.status}, charged {charged}: {reply.text[:200]}"
            )

    async def _pass_time(self, seconds: float) -> None:
        """Move the fake clock on; without one (rate windows read the monotonic clock) wait for real."""
        if self._gateway.clock:
            self._gateway.clock.advance(seconds)
        else:
            await asyncio.sleep(seconds)

    def _now(self) -> datetime:
        return self._gateway.clock.now() if self._gateway.clock else datetime.now(UTC)

    # --- one exchange ----------------------------------------------------------------------------

    async def _exchange(self, item: Json) -> list[str]:
        request = fill(item["client_request"], self._names)
        assertions = [
            fill_assertion(assertion, self._names) for assertion in item.get("expect") or []
        ]
        asks_ledger = any(assertion["where"] == "ledger" for assertion in assertions)
        usage_before = (await self._management.credits())["total_usage"] if asks_ledger else None
        self._vendors.play(
            self._case["upstream_kind"], fill(item.get("upstream_response"), self._names)
        )
        replies = await asyncio.gather(
            *(self._send(request) for _ in range(request.get("parallel", 1)))
        )
        roots = self._client_roots(replies)
        failures = await self._evaluate(assertions, roots, replies[0], usage_before)
        if failures:
            failures[0] += (
                f" (status {replies[0].status}{', ' * bool(replies[0].trouble)}{replies[0].trouble})"
            )
        for name, path in (item.get("save") or {}).items():
            try:
                self._names[name] = find(roots["client_response"], path)
            except NothingThere:
                failures.append(f"save {name}: nothing at {path}; status {replies[0].status}")
        return failures

    async def _send(self, request: Json) -> Reply:
        path = request["path"]
        target = path[5:] if path.startswith("root:") else self._gateway.base_path + path
        body = _body(request)
        headers = {"content-type": "application/json"} if body else {}
        if "encode" in request:
            headers["content-encoding"] = request["encode"]
        if path.startswith("/messages"):
            headers |= {"vendor-version": "2023-06-01", "anthropic-version": "2023-06-01"}
        key = {"none": None, "management": self._names["management_key"]}.get(
            request.get("auth", ""), self._names["key"]
        )
        if key:
            headers["authorization"] = f"Bearer {key}"
        headers |= {name.lower(): value for name, value in (request.get("headers") or {}).items()}
        return await send(
            self._gateway.address,
            request["method"],
            target,
            headers,
            body,
            abort_after_ms=request.get("abort_after_ms"),
            leave_when=self._leave_when(request),
        )

    def _leave_when(self, request: Json) -> LeaveWhen | None:
        wanted = request.get("abort_after_text_events")
        if wanted is None:
            return None
        seen = 0
        dialect = self._case["client_dialect"]

        def enough(frames: list[Frame]) -> bool:
            nonlocal seen
            events = (load_json(data) for _, data in frames if data != "[DONE]")
            seen += sum(1 for event in events if text_of(dialect, event))
            return bool(seen >= wanted)

        return enough

    def _client_roots(self, replies: list[Reply]) -> Json:
        first = replies[0]
        response = {
            "status": first.status,
            "headers": first.headers,
            "body_text": first.text,
            "statuses": dict(Counter(str(reply.status) for reply in replies)),
        }
        with contextlib.suppress(ValueError):
            response["body"] = load_json(first.text)
        stream = client_stream(
            self._case["client_dialect"], first.status, first.headers, first.text, first.frames
        )
        return {"client_response": response, "client_stream": stream}

    # --- assertions ------------------------------------------------------------------------------

    async def _evaluate(
        self, assertions: list[Json], roots: Json, reply: Reply, usage_before: Any
    ) -> list[str]:
        """All failures; what the gateway settles or closes after the answer gets up to two seconds."""
        started = time.monotonic()
        earliest = started + (AFTER_LEAVING_S if reply.trouble == "left on purpose" else 0)
        while True:
            if usage_before is not None:
                roots["ledger"] = await self._ledger(reply, usage_before)
            failed = [
                (assertion, text)
                for assertion in assertions
                if (text := self._failure(assertion, roots))
            ]
            final = not any(_may_change(assertion) for assertion, _ in failed)
            now = time.monotonic()
            if (final and now >= earliest) or now - started > SETTLE_LIMIT_S:
                return [text for _, text in failed]
            await asyncio.sleep(0.05)

    def _failure(self, assertion: Json, roots: Json) -> str | None:
        if assertion["where"] == "upstream_request":
            return failure(assertion, self._vendors.seen(assertion.get("attempt")))
        if assertion["where"] not in roots:
            raise BadCase(f"unknown root {assertion['where']!r}")
        return failure(assertion, roots[assertion["where"]])

    async def _ledger(self, reply: Reply, usage_before: Any) -> Json:
        money = await self._management.credits()
        ledger = {
            "charge_usd": plain_decimal(money["total_usage"] - usage_before),
            "balance_usd": plain_decimal(money["balance"]),
            "open_reservations": await self._management.open_reservations(money),
        }
        generation_id = reply.headers.get("x-gw-generation-id")
        if generation_id and (record := await self._management.generation(generation_id)):
            ledger["generation"] = record
        return ledger


def _may_change(assertion: Json) -> bool:
    """Whether time can still make it hold: settlement, and the closing of a vendor call."""
    return "ledger" in assertion["where"] or "aborted" in assertion["path"]


def _body(request: Json) -> bytes:
    if "body_raw" in request:
        body = request["body_raw"].encode()
    elif "body" in request:
        try:
            body = json.dumps(request["body"], ensure_ascii=False, default=float).encode()
        except UnicodeEncodeError:  # half of a surrogate pair cannot be written as UTF-8
            body = json.dumps(request["body"], default=float).encode()
    else:
        return b""
    body = bytes.fromhex(request.get("body_prefix_hex", "")) + body
    return PACKERS[request.get("encode", "identity")](body)
