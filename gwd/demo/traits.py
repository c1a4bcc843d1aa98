"""The models of the simulated vendor and what each of them takes."""

from typing import Literal

import msgspec


class ModelTraits(msgspec.Struct, frozen=True, kw_only=True):
    """One model. The defaults describe a plain chat model that takes every parameter."""

    name: str
    snapshot: str = ""
    """The dated name that answers carry instead of the asked one, as vendors do; empty: the same."""

    kind: Literal["chat", "embedding"] = "chat"
    context_length: int = 128_000
    max_output: int = 16_384
    dimensions: int = 1536

    reasoning: bool = False
    """OpenAI formats: a reasoning model; it takes `max_completion_tokens` only, and no sampling parameters."""

    shown_reasoning: Literal["none", "reasoning_content", "reasoning"] = "none"
    """Chat: the message field in which compatible servers show their reasoning; such a server takes it back in the
    assistant's messages, and takes the sampling parameters of open-weight servers."""

    thinking: Literal["none", "budget", "adaptive", "both"] = "both"
    """Messages and Gemini: how the caller says how much. A Gemini model that takes levels signs its calls."""

    prefill: bool = True
    sampling: Literal["any", "one", "none"] = "any"
    """Messages: all of temperature, top_p and top_k; not temperature with top_p; none of them."""

    forced_tools: bool = True
    mid_system: bool = False
    """Messages: takes a `system` role inside `messages`."""

    @property
    def open_server(self) -> bool:
        """An OpenAI-compatible server of someone else."""
        return self.shown_reasoning != "none"


DEFAULT_MODELS = (
    ModelTraits(name="gpt-demo", snapshot="gpt-demo-2026-08-06"),
    ModelTraits(name="gpt-demo-mini"),
    ModelTraits(name="o-demo", reasoning=True, max_output=100_000, context_length=200_000),
    ModelTraits(name="open-demo", shown_reasoning="reasoning_content"),
    ModelTraits(name="claude-demo", thinking="budget", max_output=64_000, context_length=200_000),
    ModelTraits(
        name="claude-demo-next",
        thinking="adaptive",
        prefill=False,
        sampling="none",
        forced_tools=False,
        mid_system=True,
        max_output=64_000,
        context_length=200_000,
    ),
    ModelTraits(
        name="gemini-demo", thinking="adaptive", max_output=65_536, context_length=1_000_000
    ),
    ModelTraits(name="embed-demo", kind="embedding", context_length=8192, max_output=0),
    ModelTraits(
        name="gemini-embed-demo",
        kind="embedding",
        context_length=8192,
        max_output=0,
        dimensions=768,
    ),
)
