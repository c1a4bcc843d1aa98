"""Asking a provider which models it has: page by page, bounded in time, bytes and number."""

import asyncio
from typing import Final

import msgspec

from gwd.core.errors import Fault
from gwd.core.target import Service
from gwd.pipeline.dispatch.attempt import MAX_ERROR_BYTES, Resources, undecodable
from gwd.pipeline.dispatch.incoming import UNDECODABLE
from gwd.pipeline.dispatch.redaction import body_without_secrets, without_secrets
from gwd.upstream.base import UpstreamFault, UpstreamReply
from gwd.upstream.decompression import decompressed
from gwd.vendors.model_list import ListedModel, Page, call_for, read_page

MAX_MODELS: Final = 5_000
MAX_BYTES: Final = 4 * 1024 * 1024
"""Of all pages together."""

MAX_PAGES: Final = 100


class FoundModels(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider lists, each model once. `truncated` tells that it goes on beyond what is read."""

    models: list[ListedModel]
    truncated: bool


async def find_models(
    resources: Resources, service: Service, *, limit_s: float
) -> FoundModels | Fault:
    """The models of a provider, or why they could not be read. Health is not told."""
    found = await _find(_Reading(resources, service), limit_s)
    return without_secrets(found, service) if isinstance(found, Fault) else found


async def _find(reading: "_Reading", limit_s: float) -> FoundModels | Fault:
    models: dict[str, ListedModel] = {}
    place: str | None = None
    seen: set[str] = set()
    try:
        async with asyncio.timeout(limit_s):
            for _ in range(MAX_PAGES):
                page = await reading.page(place, limit_s)
                if isinstance(page, Fault):
                    return page
                for model in page.models:
                    models.setdefault(model.id, model)
                place = page.next
                if place is None or place in seen or len(models) > MAX_MODELS:
                    return _found(models, goes_on=False)
                seen.add(place)
    except UpstreamFault as broken:
        return broken.fault
    except TimeoutError:
        return Fault(reason="timeout", message="the vendor did not answer in time")
    except UNDECODABLE as error:
        return undecodable(error)
    return _found(models, goes_on=True)


def _found(models: dict[str, ListedModel], *, goes_on: bool) -> FoundModels:
    return FoundModels(
        models=list(models.values())[:MAX_MODELS], truncated=goes_on or len(models) > MAX_MODELS
    )


class _Reading:
    """The pages of one list, and how many bytes of it were read."""

    def __init__(self, resources: Resources, service: Service) -> None:
        self._resources = resources
        self._service = service
        self._left = MAX_BYTES

    async def page(self, place: str | None, limit_s: float) -> Page | Fault:
        """Raises UpstreamFault, and what is UNDECODABLE."""
        reply = await self._resources.upstream.send(call_for(self._service, place), limit_s)
        try:
            reply = decompressed(reply)
            body = await self._body(reply, limit_s)
            if reply.status != 200:
                adapter = self._resources.adapters[self._service.format.name]
                body = body_without_secrets(body[:MAX_ERROR_BYTES], self._service)
                return adapter.fault(reply.status, reply.headers, body)
            return await self._resources.offload.run(len(body), read_page, body, self._service)
        finally:
            reply.close()

    async def _body(self, reply: UpstreamReply, limit_s: float) -> bytes:
        pieces = []
        while data := await reply.read(limit_s):
            pieces.append(data)
            self._left -= len(data)
            if self._left < 0:
                raise UpstreamFault(
                    "upstream_error", f"the vendor's list is longer than {MAX_BYTES >> 20} MiB"
                )
        return b"".join(pieces)
