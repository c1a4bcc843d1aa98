"""A running gateway in front of the simulated vendor: what client libraries are pointed at."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any, Final

import httpx
import msgspec

from gwd.core.clock import SystemClock
from gwd.demo import SimulatedVendor
from gwd.management.setup import NewNode
from gwd.node.init import initialize
from gwd.settings import load
from gwd.wiring import RunningNode

WORDS: Final = [
    "max_tokens",
    "temperature",
    "top_p",
    "stop",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "response_format",
    "structured_outputs",
    "reasoning",
]
PLAIN: Final = "test/gpt"  # does not reason and refuses to be asked to
PRICING: Final = {
    "prompt": "0.000003",
    "completion": "0.000015",
    "input_cache_read": "0.0000003",
    "input_cache_write": "0.00000375",
    "input_cache_write_1h": "0.000006",
}
# Slug, provider, name upstream, flags of the endpoint.
MODELS: Final[tuple[tuple[str, str, str, dict[str, Any]], ...]] = (
    ("test/claude", "ant", "claude-demo", {"thinking_form": "budget"}),
    (
        "test/claude-next",
        "ant",
        "claude-demo-next",
        {
            "thinking_form": "adaptive",
            "supports_prefill": False,
            "rejects_sampling": True,
            "rejects_forced_tools": True,
            "mid_system": True,
        },
    ),
    (PLAIN, "oai", "gpt-demo", {}),
    ("test/open", "oai", "open-demo", {}),
)
_names = count(1)


@dataclass(frozen=True)
class Gateway:
    """Its addresses and keys. `url` is what an SDK for the messages dialect takes as its base URL."""

    vendor: SimulatedVendor
    node: RunningNode
    key: str
    management_key: str

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.node.port}/api"

    @property
    def openai_url(self) -> str:
        return f"{self.url}/v1"


@asynccontextmanager
async def running_gateway(directory: Path) -> AsyncIterator[Gateway]:
    """A node with 100 USD, the models above and one key; everything ends with the block."""
    new = NewNode(organization="Acme", credit_usd=Decimal(100))
    made = initialize(directory / "node", new, SystemClock())
    settings = load(made.config, {})
    server = msgspec.structs.replace(settings.server, port=0)
    settings = msgspec.structs.replace(settings, server=server)
    name = f"gwd_clients_{next(_names)}"
    async with (
        SimulatedVendor() as vendor,
        RunningNode(settings, {}, name=name) as node,
        httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{node.port}/api/v1",
            headers={"authorization": f"Bearer {made.created.management_key}"},
            verify=False,
        ) as api,
    ):
        await _fill_catalog(api, vendor)
        issued = await _post(api, "/keys", {"name": "clients"})
        yield Gateway(vendor, node, issued["key"], made.created.management_key)


async def _fill_catalog(api: httpx.AsyncClient, vendor: SimulatedVendor) -> None:
    for slug, adapter, base_url in (
        ("ant", "anthropic_messages", vendor.url),
        ("oai", "openai_chat", vendor.openai_url),
    ):
        provider = {"slug": slug, "name": slug, "adapter": adapter, "base_url": base_url}
        await _post(api, "/catalog/providers", provider)
        await _post(api, "/catalog/credentials", {"provider": slug, "key": "up-key"})
    for slug, provider_slug, upstream, flags in MODELS:
        model: dict[str, Any] = {
            "id": slug,
            "name": slug,
            "vendor": "Test",
            "context_length": 128_000,
            "max_completion_tokens": 64_000 if provider_slug == "ant" else 16_000,
            "default_max_tokens": 4_096,
            "supported_parameters": [
                word for word in WORDS if word != "reasoning" or slug != PLAIN
            ],
            "input_modalities": ["text", "image", "file"],
            "output_modalities": ["text"],
            "pricing": PRICING,
        }
        await _post(api, "/catalog/models", model)
        endpoint = {
            "model": slug,
            "provider": provider_slug,
            "upstream_model": upstream,
            "flags": flags,
        }
        await _post(api, "/catalog/endpoints", endpoint)


async def _post(api: httpx.AsyncClient, path: str, body: dict[str, Any]) -> Any:
    answer = await api.post(path, json=body)
    assert answer.status_code < 300, answer.text
    return answer.json()
