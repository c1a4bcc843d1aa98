"""The vendor formats that this gateway speaks: the one list of them."""

from collections.abc import Mapping
from typing import Final

from gwd.core.vendor_format import VendorFormat
from gwd.vendors import (
    anthropic_messages,
    gemini,
    openai_chat,
    openai_embeddings,
    openai_responses,
)
from gwd.vendors.base import Adapter

ADAPTERS: Final[tuple[Adapter, ...]] = (
    openai_chat.ADAPTER,
    openai_responses.ADAPTER,
    anthropic_messages.ADAPTER,
    gemini.ADAPTER,
    openai_embeddings.ADAPTER,
)
FORMATS: Final[Mapping[str, VendorFormat]] = {
    adapter.format.name: adapter.format for adapter in ADAPTERS
}
