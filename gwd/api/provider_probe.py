"""POST /catalog/providers/{slug}/test: one cheap call to a provider, the way requests go."""

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from gwd.api.management import Answer, Call, one
from gwd.catalog import providers
from gwd.catalog.snapshot import Catalog, Endpoint, Model
from gwd.catalog.targets import target_of
from gwd.core.cost import Price
from gwd.core.errors import Conflict, Fault, UpstreamFailed
from gwd.core.fields import Id, Milliseconds, Slug
from gwd.core.request import Embed, Generate, Message, Request, TextPart
from gwd.core.target import Credential, Target

LIMIT_S: Final = 30.0
OUTPUT_TOKENS: Final = 16  # the least that every vendor takes
TEXT: Final = "Answer with the word: yes"


class ProbeRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A call to a provider that went well."""

    ok: Annotated[Literal[True], Meta(description="That it answered as it should.")]
    provider: Annotated[Slug, Meta(description="The provider that was called.")]
    model: Annotated[Slug, Meta(description="The model that was asked: the provider's cheapest.")]
    endpoint_id: Annotated[Id, Meta(description="The endpoint that was called.")]
    credential_id: Annotated[
        Id | None,
        Meta(description="The credential that was used; null where the provider takes none."),
    ]
    latency_ms: Annotated[Milliseconds, Meta(description="How long the whole call took.")]


async def probe(call: Call) -> Answer:
    """Ask a provider for a very short answer.

    Calls the provider's cheapest endpoint with its first usable credential; nothing is charged.

    A provider that does not answer is a 502 with the vendor's reason.
    """
    node, slug = call.node, call.path["slug"]
    await node.store.read(providers.get, slug)
    target, embeds = _target(await node.state.load(), call)
    began_s = node.clock.monotonic_s()
    fault = await node.line.dispatcher.probe(
        _request(target, embeds=embeds), target, limit_s=LIMIT_S
    )
    took_ms = round((node.clock.monotonic_s() - began_s) * 1000)
    if fault is not None:
        raise failed(slug, fault, target.credential, endpoint_id=target.endpoint_id)
    record = ProbeRecord(
        ok=True,
        provider=slug,
        model=target.model,
        endpoint_id=target.endpoint_id,
        credential_id=target.credential.record_id,
        latency_ms=took_ms,
    )
    return one(record, subject=("provider", slug))


def _target(catalog: Catalog, call: Call) -> tuple[Target, bool]:
    """Where to call, and whether the model there makes embeddings."""
    slug = call.path["slug"]
    found = [
        (price, model, endpoint)
        for model in catalog.models.values()
        for endpoint in model.live_endpoints
        if endpoint.provider == slug and (price := endpoint.price_at(call.now_us)) is not None
    ]
    if not found:
        raise Conflict(
            f"provider `{slug}` has no endpoint that is enabled and has a price; add one first",
            metadata={"reason": "no_endpoint", "provider": slug},
        )
    price, model, endpoint = min(found, key=_dearness)
    return target_of(model, endpoint, usable_credential(call), price), model.is_embedding


def usable_credential(call: Call) -> Credential:
    """The first credential of the path's provider that can be used. Raises Conflict without one."""
    slug = call.path["slug"]
    keys = call.node.state.vendor_keys.get(slug, ())
    ready = [key for key in keys if key.is_usable(call.now_us)]
    if not ready:
        problem = next((key.problem for key in keys if key.problem is not None), None)
        raise Conflict(
            f"provider `{slug}` has no usable credential"
            + (f": {problem}" if problem else "; add one with POST /catalog/credentials"),
            metadata={"reason": "no_credential", "provider": slug},
        )
    return ready[0].credential


def _dearness(found: tuple[Price, Model, Endpoint]) -> tuple[int, str]:
    price, _, endpoint = found
    return price.completion_pico + price.prompt_pico, endpoint.id


def _request(target: Target, *, embeds: bool) -> Request:
    body: Generate | Embed
    if embeds:
        body = Embed(inputs=(TEXT,))
    else:
        message = Message(role="user", parts=(TextPart(text=TEXT),))
        body = Generate(messages=(message,), max_output_tokens=OUTPUT_TOKENS)
    return Request(
        dialect="embeddings" if embeds else "chat_completions",
        family="openai_embeddings" if embeds else "openai_chat",
        models=(target.model,),
        body=body,
        body_bytes=len(TEXT),
    )


def failed(
    slug: str, fault: Fault, credential: Credential, *, endpoint_id: str | None = None
) -> UpstreamFailed:
    """The 502 of a provider that was called outside any generation: with the vendor's reason."""
    status = f" (status {fault.status})" if fault.status is not None else ""
    return UpstreamFailed(
        f"provider `{slug}` did not answer as it should: {fault.reason}{status}: {fault.message}",
        metadata={
            "reason": fault.reason,
            "status": fault.status,
            "endpoint_id": endpoint_id,
            "credential_id": credential.record_id,
        },
    )
