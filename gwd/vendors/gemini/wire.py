"""What Gemini answers, as typed shapes. Read from its Python SDK 3.6.1 models, 2026-11-28.

Anything that may be wrong without spoiling the answer (counts, ids, signatures) is typed loosely on purpose. Zeros and
empty lists are left out by the vendor, so every field may be missing.
"""

from typing import Any

import msgspec


class FunctionCallWire(msgspec.Struct, rename="camel"):
    name: str | None = None
    args: msgspec.Raw = msgspec.Raw()  # empty where there are none: Raw takes no part in unions
    id: Any = None


class PartWire(msgspec.Struct, rename="camel"):
    text: str | None = None
    thought: Any = None
    thought_signature: Any = None
    function_call: FunctionCallWire | None = None


class ContentWire(msgspec.Struct, rename="camel"):
    parts: list[PartWire] | None = None


class CandidateWire(msgspec.Struct, rename="camel"):
    content: ContentWire | None = None
    finish_reason: Any = None
    finish_message: Any = None
    grounding_metadata: Any = None
    citation_metadata: Any = None
    url_context_metadata: Any = None
    safety_ratings: Any = None
    index: Any = None
    logprobs_result: Any = None


class AnswerWire(msgspec.Struct, rename="camel"):
    """A whole answer, or one chunk of a stream."""

    candidates: list[CandidateWire] | None = None
    usage_metadata: Any = None
    prompt_feedback: Any = None
    error: Any = None
    response_id: Any = None
    model_version: Any = None


class EmbeddingWire(msgspec.Struct):
    values: tuple[float, ...]


class EmbeddingsWire(msgspec.Struct, rename="camel"):
    """The answer of a batch; `embedding` is that of a single call."""

    embeddings: list[EmbeddingWire] | None = None
    embedding: EmbeddingWire | None = None
    usage_metadata: Any = None
    error: Any = None


class RawEmbeddingWire(msgspec.Struct):
    """Its numbers are read one embedding at a time: together they may be millions."""

    values: msgspec.Raw


class RawEmbeddingsWire(EmbeddingsWire, rename="camel"):
    embeddings: list[RawEmbeddingWire] | None = None  # type: ignore[assignment]
    embedding: RawEmbeddingWire | None = None  # type: ignore[assignment]
