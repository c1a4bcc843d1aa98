"""The five inference endpoints: authenticate, rate, parse, hand to the line, write what comes out of it."""

import asyncio
from collections.abc import Callable, Mapping
from typing import TypeVar, cast

from sanic import HTTPResponse, Request

from gwd.api import headers as response_headers
from gwd.api.access import INFERENCE
from gwd.api.auth import check_access, count_auth_failure
from gwd.api.bodies import decoded_body
from gwd.api.headers import JSON, Rate, rate_of
from gwd.api.http_guard import GuardedProtocol
from gwd.api.inference_response import InferenceResponse
from gwd.api.load import Place
from gwd.api.node import Node
from gwd.api.readiness import require_serving
from gwd.api.stream import Stream
from gwd.core.errors import GatewayError, InvalidRequest, RateLimited, StorageUnavailable
from gwd.core.ids import mint, mint_in_runs
from gwd.core.structure import bytes_when_read
from gwd.core.trace_context import TraceContext
from gwd.dialects.base import Dialect
from gwd.dialects.extensions import clean_text, with_model
from gwd.dialects.responses import Responses
from gwd.keys.admission import KeyRow
from gwd.keys.rate_limit import Admitted, Refused, unusable_bucket
from gwd.pipeline import inference as line
from gwd.pipeline.admit.identity import GenerationIdentity, identity_of
from gwd.pipeline.client.head import Head
from gwd.pipeline.inference import Generation
from gwd.pipeline.plan.plan_input import Asker
from gwd.pipeline.settle.observer import Ended, tell
from gwd.pricing.hold import LARGE_BYTES
from gwd.replay.items import KeyItems

T = TypeVar("T")


async def serve(
    request: Request,
    node: Node,
    dialect: Dialect,
    address: str,
    *,
    refusal: GatewayError | None = None,
) -> HTTPResponse | None:
    """One inference request, from its bytes to the last byte of its answer.

    `refusal` is what the framework has against the body: it is told and recorded when the key is good.
    """
    request_id, generation_id = mint("req_"), mint_in_runs("gen-")
    headers = request.headers
    now_us, began_s = node.clock.now_us(), node.clock.monotonic_s()
    rate: Rate | None = None
    identity: GenerationIdentity | None = None
    recorded = False
    try:
        row = await node.authenticator.find(headers, address)
        tracing = node.line.tracing
        trace = None if tracing is None else tracing.begin(headers.get("traceparent"))
        identity = _identity(row, dialect, generation_id, request_id, headers, now_us, trace)
        counted, error = _counted(row, node, now_us, began_s)
        rate = rate_of(counted)
        if error is not None:
            raise error
        require_serving(node)
        if refusal is not None:
            raise refusal
        place = node.load.enter(
            row.caller.organization_id, len(request.body), in_reserve=in_reserve(request)
        )
        try:
            generation = await _start(request, node, dialect, row, identity, place)
        except BaseException:
            place.leave()
            raise
        generation.when_ended(place.leave)
        recorded = True  # from here on the line records what happens
        return await _answer(
            request, node, dialect, generation, rate, request_id, now_us=now_us, began_s=began_s
        )
    except GatewayError as error:
        count_refusal(node, error)
        if identity is not None and not recorded and not isinstance(error, StorageUnavailable):
            record = node.refusals.refuse(identity, error, now_us)
            if node.line.observer is not None and record is not None:
                ended = Ended(
                    row=record,
                    trace=identity.trace,
                    now_us=node.clock.now_us(),
                    now_s=node.clock.monotonic_s(),
                )
                tell(node.line.observer, ended)
        known = generation_id if identity is not None else None
        refused = error_response(dialect, error, request_id, known, rate, now_us=now_us)
        refused.headers["x-gw-overhead-ms"] = _overhead(node, began_s)
        return refused


def in_reserve(request: Request) -> bool:
    """Whether it came over a connection that was taken for management and health alone."""
    return cast("GuardedProtocol", request.protocol).in_reserve


def _counted(
    row: KeyRow, node: Node, now_us: int, now_s: float
) -> tuple[Admitted | Refused, GatewayError | None]:
    """The request counted against the key's minute, and why it may not go on; also keys that may not act have one."""
    caller = row.caller
    bucket, error = caller.family_id, None
    try:
        check_access(row, INFERENCE, now_us=now_us)
    except GatewayError as refusal:
        bucket, error = unusable_bucket(caller.key_id), refusal
    counted = node.limiter.admit(bucket, caller.rate_limit_per_minute, now_s)
    if isinstance(counted, Refused):
        error = rate_limited(counted)
    return counted, error


async def _start(
    request: Request,
    node: Node,
    dialect: Dialect,
    row: KeyRow,
    identity: GenerationIdentity,
    place: Place,
) -> Generation:
    if isinstance(dialect, Responses):
        dialect = dialect.remembering(KeyItems(node.items, row.caller.key_id))
    parsed = await parsed_body(request, node, dialect.parse, place.weigh)
    parsed = with_model(parsed, row.policy.text_model)
    complete = identity_of(
        row.caller,
        generation_id=identity.generation_id,
        dialect=dialect.name,
        requested_model=parsed.models[0],
        stream=parsed.stream,
        sender=parsed.sender,
        tags=row.policy.tags,
        dropped_tools=parsed.dropped_tools,
        request_id=identity.request_id,
        user_agent=identity.user_agent,
        created_us=identity.created_us,
        trace=identity.trace,
    )
    return line.start(
        node.line,
        parsed,
        dialect,
        complete,
        row.policy,
        Asker(
            family_id=row.caller.family_id,
            workspace_id=row.caller.workspace_id,
            user_id=row.caller.user_id,
        ),
    )


async def parsed_body(
    request: Request,
    node: Node,
    parse: Callable[[bytes, Mapping[str, str]], T],
    weigh: Callable[[int], None] | None = None,
) -> T:
    """The body, unpacked and parsed; a large one beside the event loop, and only after it was weighed.

    `weigh` is told what it takes once it is read, in bytes. Raises InvalidRequest and its kin, and what `weigh` does.
    """
    offload, max_bytes = node.line.offload, node.settings.limits.request_body_max_bytes
    size = max_bytes if "content-encoding" in request.headers else len(request.body)

    def unpacked() -> tuple[bytes, int]:
        body = decoded_body(request.body, request.headers, max_bytes=max_bytes)
        return body, bytes_when_read(body) if size > LARGE_BYTES else 0

    try:
        body, weight = await offload.run(size, unpacked)
        if weight and weigh is not None:
            weigh(weight)
        return await offload.run(size, parse, body, request.headers)
    except RecursionError:
        raise InvalidRequest("the body is nested too deeply") from None


async def _answer(
    request: Request,
    node: Node,
    dialect: Dialect,
    generation: Generation,
    rate: Rate,
    request_id: str,
    *,
    now_us: int,
    began_s: float,
) -> HTTPResponse | None:
    """The answer; `now_us` is when the request was counted, `began_s` the same on the monotonic clock."""
    try:
        head = await generation.head
        overhead = _overhead(node, began_s, waited_s=generation.waited_s)
        generation_id = generation.identity.generation_id
        if head.error is not None:
            if head.served is None:  # no upstream was called
                node.counters.refuse(head.error.code, node.clock.monotonic_s())
            refused = error_response(
                dialect, head.error, request_id, generation_id, rate, head, now_us=now_us
            )
            refused.headers["x-gw-overhead-ms"] = overhead
            refused.headers.update(await _lifecycle(node, head, now_us))
            return refused
        headers = response_headers.inference(
            request_id, generation_id, rate, head.served, now_us=now_us
        )
        headers["x-gw-overhead-ms"] = overhead
        headers |= await _lifecycle(node, head, now_us)
        if head.body is not None:
            return InferenceResponse(head.body, headers, JSON)
        response = await request.respond(
            InferenceResponse(
                None, headers | response_headers.stream(), dialect.framing.content_type
            )
        )
        stream = Stream(cast("asyncio.Transport", request.transport), response)
        frame_queue = generation.frame_queue
        try:
            while (frames := await frame_queue.next()) is not None:
                await stream.send(frames)
                frame_queue.try_write = stream.try_write
            await response.eof()
        finally:
            frame_queue.try_write = None
    except asyncio.CancelledError:
        generation.client_left()
        raise
    except Exception:
        generation.client_left()
        raise
    return None


def _overhead(node: Node, began_s: float, *, waited_s: float = 0.0) -> str:
    """What the gateway itself took until now, in milliseconds with one decimal; it is counted, too."""
    overhead_s = max(0.0, node.clock.monotonic_s() - began_s - waited_s)
    node.counters.overhead.observe(overhead_s)
    return f"{overhead_s * 1_000:.1f}"


def count_refusal(node: Node, error: GatewayError) -> None:
    """Count a request that was refused before the line."""
    node.counters.refuse(error.code, node.clock.monotonic_s())
    count_auth_failure(node.counters, error)


def error_response(
    dialect: Dialect,
    error: GatewayError,
    request_id: str,
    generation_id: str | None,
    rate: Rate | None,
    head: Head | None = None,
    *,
    now_us: int,
) -> HTTPResponse:
    """An error in the dialect's envelope with all headers that are known."""
    if generation_id is None:
        headers = response_headers.base(request_id)
    else:
        served = head.served if head is not None else None
        headers = response_headers.inference(request_id, generation_id, rate, served, now_us=now_us)
    headers |= response_headers.of_error(error)
    return HTTPResponse(dialect.error(error, request_id), error.status, headers, JSON)


async def _lifecycle(node: Node, head: Head, now_us: int) -> dict[str, str]:
    if head.served is None:
        return {}
    model = (await node.state.catalog()).models.get(head.served.model)
    if model is None or model.life.deprecated_at_us is None:
        return {}
    return response_headers.lifecycle(model.life, node.base_url, now_us)


def _identity(
    row: KeyRow,
    dialect: Dialect,
    generation_id: str,
    request_id: str,
    headers: Mapping[str, str],
    now_us: int,
    trace: TraceContext | None,
) -> GenerationIdentity:
    agent = headers.get("user-agent")
    return identity_of(
        row.caller,
        generation_id=generation_id,
        dialect=dialect.name,
        tags=row.policy.tags,
        request_id=request_id,
        user_agent=clean_text(agent) if agent else None,
        created_us=now_us,
        trace=trace,
    )


def rate_limited(counted: Refused) -> RateLimited:
    """The 429 of a key whose minute is full."""
    return RateLimited(
        f"this key may make {counted.limit} requests a minute; try again in {counted.retry_after_s} s",
        retry_after_s=counted.retry_after_s,
        metadata={
            "limit": counted.limit,
            "window_seconds": 60,
            "retry_after": counted.retry_after_s,
        },
    )
