"""POST /catalog/providers/{slug}/test: one cheap call to a provider, the way requests go."""

from collections.abc import Callable, Sequence
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from gwd.api.management import Answer, Call, one
from gwd.api.node import Node
from gwd.catalog import providers
from gwd.catalog.snapshot import Catalog, Endpoint, Model
from gwd.catalog.targets import target_of
from gwd.core.cost import Price
from gwd.core.errors import Conflict, Fault, UpstreamFailed
from gwd.core.fields import Id, Milliseconds, Slug
from gwd.core.request import Embed, Generate, Message, Request, TextPart
from gwd.core.target import Credential, Target
from gwd.credentials.service import VendorKey

LIMIT_S: Final = 30.0
OUTPUT_TOKENS: Final = 16  # the least that every vendor takes
TEXT: Final = "Answer with the word: yes"
ADD_ONE: Final = "add one with POST /catalog/credentials"


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


class Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """Where a probe goes, and whether the model there makes embeddings."""

    target: Target
    embeds: bool


class Probed(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a probe: no fault where the vendor answered in its format."""

    target: Target
    fault: Fault | None
    latency_ms: int

    def record(self) -> ProbeRecord:
        """Raises UpstreamFailed with what the vendor said."""
        if self.fault is not None:
            target = self.target
            raise failed(
                target.provider, self.fault, target.credential, endpoint_id=target.endpoint_id
            )
        return ProbeRecord(
            ok=True,
            provider=self.target.provider,
            model=self.target.model,
            endpoint_id=self.target.endpoint_id,
            credential_id=self.target.credential.record_id,
            latency_ms=self.latency_ms,
        )


async def probe(call: Call) -> Answer:
    """Ask a provider for a very short answer.

    Calls the provider's cheapest endpoint with its first usable credential; nothing is charged.

    A provider that does not answer is a 502 with the vendor's reason.
    """
    node, slug = call.node, call.path["slug"]
    await node.store.read(providers.get, slug)
    catalog = await node.state.load()
    keys = node.state.vendor_keys.get(slug, ())
    chosen = choice(catalog, slug, keys, now_us=call.now_us, remedy=ADD_ONE)
    return one((await asked(node, chosen)).record(), subject=("provider", slug))


def choice(
    catalog: Catalog,
    provider: str,
    keys: Sequence[VendorKey],
    *,
    now_us: int,
    remedy: str,
    serves: Callable[[Model], bool] = lambda model: True,
) -> Chosen:
    """The provider's cheapest endpoint that one of the keys may go to, with the first of them.

    Raises Conflict where there is none; `remedy` is what gives the provider a usable key.
    """
    found = [
        (price, model, endpoint)
        for model in catalog.models.values()
        for endpoint in model.live_endpoints
        if endpoint.provider == provider
        and serves(model)
        and (price := endpoint.price_at(now_us)) is not None
    ]
    if not found:
        raise Conflict(
            f"provider `{provider}` has no endpoint that is enabled and has a price; add one first",
            metadata={"reason": "no_endpoint", "provider": provider},
        )
    for price, model, endpoint in sorted(found, key=_dearness):
        key = usable(keys, endpoint.origin, now_us=now_us)
        if key is not None:
            target = target_of(model, endpoint, key.credential, price)
            return Chosen(target=target, embeds=model.is_embedding)
    raise no_usable(provider, keys, remedy, now_us=now_us)


def usable(keys: Sequence[VendorKey], origin: str | None, *, now_us: int) -> VendorKey | None:
    """The first of the keys that can be used at this origin."""
    ready = (key for key in keys if key.is_usable(now_us) and key.goes_to(origin))
    return next(ready, None)


def no_usable(provider: str, keys: Sequence[VendorKey], remedy: str, *, now_us: int) -> Conflict:
    """What stands in the way of calling a provider with these keys, or what gives it one."""
    problem = next((key.problem for key in keys if key.problem is not None), None)
    elsewhere = next((key.origin for key in keys if key.is_usable(now_us)), None)
    if elsewhere is not None:
        problem = f"its keys were made for {elsewhere}, and it is called at another origin"
    return Conflict(
        f"provider `{provider}` has no usable credential: {problem or remedy}",
        metadata={"reason": "no_credential", "provider": provider},
    )


async def asked(node: Node, chosen: Chosen) -> Probed:
    """Make the call."""
    began_s = node.clock.monotonic_s()
    request = _request(chosen.target, embeds=chosen.embeds)
    fault = await node.line.dispatcher.probe(request, chosen.target, limit_s=LIMIT_S)
    took_ms = round((node.clock.monotonic_s() - began_s) * 1000)
    return Probed(target=chosen.target, fault=fault, latency_ms=took_ms)


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
