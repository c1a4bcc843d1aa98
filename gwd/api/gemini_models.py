"""The list of models, and one of them, as Google's SDKs read it."""

from collections.abc import Mapping
from typing import Annotated, Final

import msgspec
from msgspec import UNSET, Meta, UnsetType

from gwd.api import models
from gwd.api.model_record import PublicModel
from gwd.api.node import Node
from gwd.api.query import Query, Text, Whole
from gwd.catalog.snapshot import Catalog
from gwd.core.errors import InvalidValue
from gwd.core.fields import Tokens
from gwd.orgs.policy import Policy

MAX_PAGE: Final = 1_000
DEFAULT_PAGE: Final = 50
QUERY: Final = (
    Query("pageSize", Whole(1), f"How many to list; at most {MAX_PAGE}.", DEFAULT_PAGE),
    Query("pageToken", Text(), "`nextPageToken` of an earlier answer: what comes behind it."),
)
_COLLECTION: Final = "models/"
_GENERATES: Final = ("generateContent", "streamGenerateContent", "countTokens")
_EMBEDS: Final = ("embedContent", "batchEmbedContents")


class GeminiModel(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A model or alias as Google's SDKs read it."""

    name: Annotated[str, Meta(description="`models/` and the id or alias.")]
    base_model_id: Annotated[str, Meta(description="The model's id, also of an alias.")]
    version: Annotated[str, Meta(description="The day of the model, such as 2026-11-01.")]
    display_name: Annotated[str, Meta(description="Its name for people.")]
    description: Annotated[str, Meta(description="What it is.")]
    input_token_limit: Annotated[Tokens, Meta(description="How many tokens a prompt may have.")]
    output_token_limit: Annotated[Tokens, Meta(description="How many tokens an answer may have.")]
    supported_generation_methods: Annotated[
        tuple[str, ...], Meta(description="The methods that it can be asked with.")
    ]
    thinking: Annotated[bool, Meta(description="Whether it can be asked to think.")]


class GeminiModelList(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One page of the list."""

    models: Annotated[list[GeminiModel], Meta(description="Models, and behind them aliases.")]
    next_page_token: Annotated[
        str | UnsetType, Meta(description="The `pageToken` of the next page, where there is one.")
    ] = UNSET


async def list_models(
    node: Node, query: Mapping[str, str], headers: Mapping[str, str], address: str
) -> bytes:
    """A page of all models, those that make embeddings too; what a key may use narrows it as in every list."""
    catalog = await node.state.catalog()
    may_use = await models.limits(node, headers, address)
    size = models.RECORD_BYTES * (
        len(catalog.models) + len(catalog.aliases) + len(catalog.families)
    )
    return await node.line.offload.run(size, _list, catalog, may_use, query, node)


async def get_model(node: Node, name: str) -> bytes:
    """One model by slug or alias. Raises ModelNotFound."""
    catalog, now_us = await node.state.catalog(), node.clock.now_us()
    plain = name.removeprefix(_COLLECTION)
    model = models.found_model(catalog, plain, now_us)
    record = models.model_record(model, catalog, node, now_us)
    return msgspec.json.encode(_record(msgspec.structs.replace(record, id=plain)))


def _list(
    catalog: Catalog, may_use: tuple[Policy, ...], query: Mapping[str, str], node: Node
) -> bytes:
    listed = models.records(catalog, may_use, node, node.clock.now_us())
    size = min(_whole(query, "pageSize", DEFAULT_PAGE) or DEFAULT_PAGE, MAX_PAGE)
    offset = _whole(query, "pageToken", 0)
    page = [_record(record) for record in listed[offset : offset + size]]
    is_last = offset + size >= len(listed)
    return msgspec.json.encode(
        GeminiModelList(models=page, next_page_token=UNSET if is_last else str(offset + size))
    )


def _record(record: PublicModel) -> GeminiModel:
    is_embedding = "embeddings" in record.architecture.output_modalities
    return GeminiModel(
        name=f"{_COLLECTION}{record.id}",
        base_model_id=record.canonical_slug,
        version=record.created_at[:10],
        display_name=record.display_name,
        description=record.description,
        input_token_limit=record.context_length,
        output_token_limit=record.max_tokens,
        supported_generation_methods=_EMBEDS if is_embedding else _GENERATES,
        thinking=record.reasoning is not UNSET,
    )


def _whole(query: Mapping[str, str], name: str, default: int) -> int:
    text = query.get(name) or str(default)
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise InvalidValue(f"`{name}` must be a whole number", param=name)
    return int(text)
