"""The catalog of `gwd demo`: the simulated vendor's models, and real vendors whose keys are at hand."""

from collections.abc import Mapping
from typing import Final

from gwd.catalog.inputs import EndpointInput, ModelInput, ProviderInput
from gwd.catalog.price_body import Pricing
from gwd.credentials.service import CredentialInput
from gwd.demo import SimulatedVendor
from gwd.node import price_book
from gwd.node.price_book import Entries

CHAT_MODEL: Final = "demo/gpt-demo"
MESSAGES_MODEL: Final = "demo/claude-demo"
GEMINI_MODEL: Final = "demo/gemini-demo"
EMBEDDING_MODEL: Final = "demo/embed-demo"
MODELS: Final = (CHAT_MODEL, MESSAGES_MODEL, GEMINI_MODEL, EMBEDDING_MODEL)

# Which variable holds whose key, and a model of that vendor to try.
REAL_VENDORS: Final = {
    "OPENAI_API_KEY": ("openai", "openai/gpt-5-mini"),
    "ANTHROPIC_API_KEY": ("anthropic", "anthropic/claude-haiku-4-5"),
    "GEMINI_API_KEY": ("google", "google/gemini-2.5-flash-lite"),
}

_PARAMETERS: Final = [
    "max_tokens",
    "temperature",
    "top_p",
    "stop",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
]

_FLAGS: Final[dict[str, dict[str, str]]] = {GEMINI_MODEL: {"thinking_form": "adaptive"}}


def simulated(vendor: SimulatedVendor) -> Entries:
    """Every dialect finds something to talk to; the chat model is served twice, so that routing has a choice."""
    places = {
        "demo-chat": ("openai_chat", vendor.openai_url),
        "demo-responses": ("openai_responses", vendor.openai_url),
        "demo-messages": ("anthropic_messages", vendor.url),
        "demo-gemini": ("gemini", vendor.gemini_url),
        "demo-embeddings": ("openai_embeddings", vendor.openai_url),
    }
    served = {
        "demo-chat": CHAT_MODEL,
        "demo-responses": CHAT_MODEL,
        "demo-messages": MESSAGES_MODEL,
        "demo-gemini": GEMINI_MODEL,
        "demo-embeddings": EMBEDDING_MODEL,
    }
    return Entries(
        providers=[
            ProviderInput(slug=slug, name="Simulated vendor", adapter=adapter, base_url=url)
            for slug, (adapter, url) in places.items()
        ],
        models=[
            ModelInput(
                id=CHAT_MODEL,
                name="Demo GPT",
                vendor="Demo",
                context_length=128_000,
                max_completion_tokens=16_384,
                supported_parameters=_PARAMETERS,
                pricing=Pricing(
                    prompt="0.00000125", completion="0.00001", input_cache_read="0.000000125"
                ),
            ),
            ModelInput(
                id=MESSAGES_MODEL,
                name="Demo Claude",
                vendor="Demo",
                context_length=200_000,
                max_completion_tokens=64_000,
                default_max_tokens=8_192,
                supported_parameters=_PARAMETERS,
                pricing=Pricing(
                    prompt="0.000003",
                    completion="0.000015",
                    input_cache_read="0.0000003",
                    input_cache_write="0.00000375",
                ),
            ),
            ModelInput(
                id=GEMINI_MODEL,
                name="Demo Gemini",
                vendor="Demo",
                context_length=1_000_000,
                max_completion_tokens=65_536,
                supported_parameters=[*_PARAMETERS, "reasoning", "reasoning_effort"],
                pricing=Pricing(
                    prompt="0.00000075", completion="0.00000375", input_cache_read="0.000000075"
                ),
            ),
            ModelInput(
                id=EMBEDDING_MODEL,
                name="Demo Embeddings",
                vendor="Demo",
                context_length=8_192,
                max_completion_tokens=0,
                supported_parameters=[],
                output_modalities=["embeddings"],
                pricing=Pricing(prompt="0.00000002"),
            ),
        ],
        endpoints=[
            EndpointInput(
                model=model,
                provider=slug,
                upstream_model=model.partition("/")[2],
                flags=_FLAGS.get(model, {}),
            )
            for slug, model in served.items()
        ],
        credentials=[CredentialInput(provider=slug, key="demo") for slug in places],
    )


def real(environ: Mapping[str, str]) -> dict[str, Entries]:
    """The shipped catalog of each vendor whose key is set, by the model to try."""
    return {
        model: price_book.of_vendor(slug, key_ref=f"env:{variable}")
        for variable, (slug, model) in REAL_VENDORS.items()
        if environ.get(variable, "").strip()
    }
